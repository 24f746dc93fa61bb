import {
  isNewer,
  namesOf,
  type OperationOutcome,
  type RecordDelete,
  type RecordDeleteByName,
  type RecordWrite,
  type Version,
} from '../../domain/records/records.ts'
import type { RecordKey } from '../../store/records/records.ts'
import {
  deleteByNames,
  deletesSurvived,
  keepTombstones,
  loadTombstones,
  type RecordNameKey,
} from '../../store/records/tombstones.ts'
import type { Transaction } from '../unit.ts'
import type { Change } from './change.ts'

/** The newest delete of each name, by `nameText`. */
export type Tombstones = Map<string, Version>

/** The deletes that are known of the other names which these writes go by. */
export async function tombstonesFor(
  client: Transaction['client'],
  units: Change<RecordWrite | RecordDelete>[],
): Promise<Tombstones> {
  const names = new Map<string, RecordNameKey>()
  for (const { entry, work } of units) {
    if (work.op !== 'write') continue
    for (const name of namesOf(work)) {
      const key = { tenantId: entry.tenantId, entityType: work.entityType, ...name }
      names.set(nameText(key), key)
    }
  }
  const found = names.size > 0 ? await loadTombstones(client, [...names.values()]) : []
  return new Map(found.map(tombstone => [nameText(tombstone), tombstone]))
}

/** Whether a write is older than a delete of one of its other names: it is deleted from the start. */
export function isDeletedByName(unit: Change<RecordWrite | RecordDelete>, tombstones: Tombstones): boolean {
  const { entry, work } = unit
  if (work.op !== 'write' || tombstones.size === 0) return false
  const version = { sourceUpdatedAt: work.sourceUpdatedAt, entryId: entry.id }
  return namesOf(work).some(name => {
    const tombstone = tombstones.get(nameText({ ...keyOf(unit), ...name }))
    return tombstone !== undefined && isNewer(tombstone, version)
  })
}

/** A delete by name came too late where a newer one is known, or where all records of that name are newer. */
export async function applyNameDeletes(
  client: Transaction['client'],
  units: Change<RecordDeleteByName>[],
  statuses: Map<Change, OperationOutcome>,
) {
  const deletes = newestPerName(
    units.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      entityType: work.entityType,
      name: work.name,
      value: work.value,
      sourceUpdatedAt: work.sourceUpdatedAt,
      entryId: entry.id,
    })),
  )
  const newest = await keepTombstones(client, deletes)
  const deleted = await deleteByNames(client, deletes)
  const survived = await deletesSurvived(client, deletes)
  const effective = new Set(deleted.map(record => record.by))
  for (const unit of units) {
    const { id } = unit.entry
    const isApplied = effective.has(id) || (newest.has(id) && !survived.has(id))
    statuses.set(unit, isApplied ? 'applied' : 'superseded')
  }
  return deleted
}

function newestPerName<T extends RecordNameKey & Version>(deletes: T[]): T[] {
  const newest = new Map<string, T>()
  for (const deletion of deletes) {
    const other = newest.get(nameText(deletion))
    if (!other || isNewer(deletion, other)) newest.set(nameText(deletion), deletion)
  }
  return [...newest.values()]
}

export function keyOf({ entry, work }: Change<RecordWrite | RecordDelete>): RecordKey {
  return { tenantId: entry.tenantId, entityType: work.entityType, id: work.id }
}

function nameText(key: RecordNameKey): string {
  return `${key.tenantId} ${key.entityType} ${key.name} ${key.value}`
}
