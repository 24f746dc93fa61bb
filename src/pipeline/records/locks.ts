import type { RecordChange } from '../../domain/records/records.ts'
import type { Change } from './change.ts'

type RecordLock = { tenantId: number; entityType: RecordChange['entityType']; exclusive: boolean }

export function locksFor(units: Change[]): RecordLock[] {
  return strictest(
    units.map(({ entry: { tenantId }, work: { op, entityType } }) => ({
      ...{ tenantId, entityType, exclusive: op === 'delete-by-name' },
    })),
  )
}

/** One lock for each tenant and type. */
export function strictest(locks: RecordLock[]): RecordLock[] {
  const found = new Map<string, RecordLock>()
  for (const lock of locks) {
    const key = `${lock.tenantId} ${lock.entityType}`
    if (!found.get(key)?.exclusive) found.set(key, lock)
  }
  return [...found.values()]
}
