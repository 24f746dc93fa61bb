import {
  isNewer,
  namesOf,
  type RecordChange,
  type RecordContext,
  type RecordDelete,
  type RecordDeleteByName,
  type RecordWrite,
  readChange,
  type Version,
} from '../domain/records.ts'
import type { Entry } from '../log/log.ts'
import { insertOperations, type OperationStatus } from '../store/operations.ts'
import {
  deleteByNames,
  loadTombstones,
  loadVersions,
  lockRecordTypes,
  type RecordKey,
  type RecordNameKey,
  type RecordRow,
  upsertRecords,
} from '../store/records.ts'
import type { Kind, Transaction, Unit } from './unit.ts'

/** What other parts derive from records hears of every record whose state changed. */
export type RecordListener = (transaction: Transaction, changed: ChangedRecord[]) => Promise<void>

export type ChangedRecord = RecordKey & {
  sourceUpdatedAt: string
  /** null: the record is deleted now */
  data: Record<string, unknown> | null
}

export function recordKind(listeners: RecordListener[]): Kind<RecordChange> {
  return {
    decode(entry) {
      return { works: [readChange(JSON.parse(entry.context) as RecordContext, entry.body)], rejected: [] }
    },
    narrow: entry => entry,
    async apply(transaction, units) {
      const { statuses, changed } = await applyChanges(transaction, units)
      await insertOperations(
        transaction.client,
        units.map((unit, i) => ({
          ...operationOf(unit.entry, unit.work),
          status: statuses[i]!,
          error: null,
        })),
      )
      if (changed.length > 0) for (const listener of listeners) await listener(transaction, changed)
    },
    async giveUp({ client }, unit, error, attempts) {
      await insertOperations(client, [{ ...operationOf(unit.entry, unit.work), status: 'failed', error }])
      return {
        id: unit.entry.id,
        entry: unit.entry,
        sourceId: null,
        inboundEventId: null,
        reason: 'failed',
        error,
        attempts,
      }
    },
  }
}

function operationOf(entry: Entry, change: RecordChange | undefined) {
  const { entityType } = JSON.parse(entry.context) as RecordContext
  return {
    tenantId: entry.tenantId,
    id: entry.id,
    entityType,
    recordId: change && change.op !== 'delete-by-name' ? change.id : null,
  }
}

async function applyChanges({ client }: Transaction, units: Unit<RecordChange>[]) {
  await lockRecordTypes(client, locksFor(units))
  const direct = units.filter(unit => unit.work.op !== 'delete-by-name') as Unit<RecordWrite | RecordDelete>[]
  const byName = units.filter(unit => unit.work.op === 'delete-by-name') as Unit<RecordDeleteByName>[]
  const statuses = new Map<Unit, OperationStatus>()
  const changed = new Map<string, ChangedRecord>()

  if (direct.length > 0) {
    const newest = await newestOf(client, direct, statuses)
    const rows = await withTombstones(client, newest)
    if (rows.length > 0) await upsertRecords(client, rows)
    for (const row of rows) changed.set(keyText(row), changedRecord(row, newest))
  }
  if (byName.length > 0) {
    const deletes = byName.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      entityType: work.entityType,
      name: work.name,
      value: work.value,
      sourceUpdatedAt: work.sourceUpdatedAt,
      entryId: entry.id,
    }))
    const deleted = await deleteByNames(client, newestPerName(deletes))
    for (const [i, unit] of byName.entries()) {
      statuses.set(unit, 'applied')
      const { sourceUpdatedAt } = deletes[i]!
      for (const key of deleted) changed.set(keyText(key), { ...key, sourceUpdatedAt, data: null })
    }
  }
  return { statuses: units.map(unit => statuses.get(unit)!), changed: [...changed.values()] }
}

function locksFor(units: Unit<RecordChange>[]) {
  const locks = new Map<
    string,
    { tenantId: number; entityType: RecordChange['entityType']; exclusive: boolean }
  >()
  for (const { entry, work } of units) {
    const key = `${entry.tenantId} ${work.entityType}`
    const exclusive = work.op === 'delete-by-name' || (locks.get(key)?.exclusive ?? false)
    locks.set(key, { tenantId: entry.tenantId, entityType: work.entityType, exclusive })
  }
  return [...locks.values()]
}

type Newest = { unit: Unit<RecordWrite | RecordDelete>; version: Version }

/** Plays the changes in their order over what is stored: each one is applied or superseded; the last applied stays. */
async function newestOf(
  client: Transaction['client'],
  units: Unit<RecordWrite | RecordDelete>[],
  statuses: Map<Unit, OperationStatus>,
): Promise<Map<string, Newest>> {
  const keys = new Map(units.map(unit => [keyText(keyOf(unit)), keyOf(unit)]))
  const stored = await loadVersions(client, [...keys.values()])
  const versions = new Map<string, Version>(stored.map(row => [keyText(row), row]))
  const newest = new Map<string, Newest>()
  for (const unit of units) {
    const key = keyText(keyOf(unit))
    const version = { sourceUpdatedAt: unit.work.sourceUpdatedAt, entryId: unit.entry.id }
    const before = versions.get(key)
    // Entries of one record arrive here in their order: of equal source times this one is the later.
    if (before && version.sourceUpdatedAt < before.sourceUpdatedAt) {
      statuses.set(unit, 'superseded')
      continue
    }
    statuses.set(unit, 'applied')
    versions.set(key, version)
    newest.set(key, { unit, version })
  }
  return newest
}

/** A write that is older than a delete of one of its other names is deleted from the start. */
async function withTombstones(
  client: Transaction['client'],
  newest: Map<string, Newest>,
): Promise<RecordRow[]> {
  const names: RecordNameKey[] = []
  for (const { unit } of newest.values()) {
    if (unit.work.op !== 'write') continue
    for (const name of namesOf(unit.work)) {
      names.push({ tenantId: unit.entry.tenantId, entityType: unit.work.entityType, ...name })
    }
  }
  const tombstones = names.length > 0 ? await loadTombstones(client, names) : []
  const deletedNames = new Map(tombstones.map(tombstone => [nameText(tombstone), tombstone]))
  return [...newest.values()].map(({ unit, version }) => {
    const { work } = unit
    const isDeleted =
      work.op === 'delete' ||
      namesOf(work).some(name => {
        const tombstone = deletedNames.get(nameText({ ...keyOf(unit), ...name }))
        return tombstone !== undefined && isNewer(tombstone, version)
      })
    return {
      ...keyOf(unit),
      ...version,
      externalId: work.op === 'write' ? work.externalId : null,
      deleted: isDeleted,
      dataText: work.op === 'write' ? work.dataText : null,
    }
  })
}

function newestPerName<T extends RecordNameKey & Version>(deletes: T[]): T[] {
  const newest = new Map<string, T>()
  for (const one of deletes) {
    const other = newest.get(nameText(one))
    if (!other || isNewer(one, other)) newest.set(nameText(one), one)
  }
  return [...newest.values()]
}

function changedRecord(row: RecordRow, newest: Map<string, Newest>): ChangedRecord {
  const { work } = newest.get(keyText(row))!.unit
  return {
    tenantId: row.tenantId,
    entityType: row.entityType,
    id: row.id,
    sourceUpdatedAt: row.sourceUpdatedAt,
    data: row.deleted || work.op !== 'write' ? null : work.data,
  }
}

function keyOf({ entry, work }: Unit<RecordWrite | RecordDelete>): RecordKey {
  return { tenantId: entry.tenantId, entityType: work.entityType, id: work.id }
}

function keyText(key: RecordKey): string {
  return `${key.tenantId} ${key.entityType} ${key.id}`
}

function nameText(key: RecordNameKey): string {
  return `${key.tenantId} ${key.entityType} ${key.name} ${key.value}`
}
