import type { Entry } from '../../domain/entries/entry.ts'
import { idToTime } from '../../domain/ids.ts'
import { readFileHandle } from '../../domain/providers/shops.ts'
import {
  isNewer,
  listNames,
  type OperationOutcome,
  type RecordChange,
  type RecordContext,
  type RecordDelete,
  type RecordDeleteByName,
  type RecordWrite,
  readChange,
  type Version,
} from '../../domain/records/records.ts'
import { type Handle, productsOfHandles } from '../../store/records/families.ts'
import {
  deleteByNames,
  deletesSurvived,
  insertOperations,
  keepTombstones,
  loadTombstones,
  loadVersions,
  lockRecordTypes,
  type RecordKey,
  type RecordNameKey,
  type RecordRow,
  upsertRecords,
} from '../../store/records/records.ts'
import type { Kind, Transaction, Unit } from '../unit.ts'

/** A change of a record, and the entry or event that caused it. */
export type Change<Work extends RecordChange = RecordChange> = {
  entry: Pick<Entry, 'id' | 'tenantId' | 'receivedAt'>
  work: Work
}

export type ChangedRecord = RecordKey & {
  sourceUpdatedAt: string
  receivedAt: Date
  /** null if the record is deleted now */
  data: Record<string, unknown> | null
}

// The real reason may name tables and constraints. The dead letter has it.
const NOT_APPLIED =
  'The change could not be applied. It is kept as a dead letter, and the operator of this service can replay it.'

export const recordKind: Kind<RecordChange> = {
  decode(entry) {
    return { works: [readChange(JSON.parse(entry.context) as RecordContext, entry.body)], rejected: [] }
  },
  narrow: entry => entry,
  deadLetter: (unit, error, attempts) => ({
    id: unit.entry.id,
    entry: unit.entry,
    sourceId: null,
    inboundEventId: null,
    reason: 'failed',
    error,
    attempts,
  }),
  async recordFailure({ client }, unit) {
    await insertOperations(client, [{ ...toOperation(unit.entry, unit.work), status: 'failed', error: NOT_APPLIED }])
  },
}

/** Writes the outcome of each record entry. */
export async function writeOperations(
  { client }: Transaction,
  units: Unit<RecordChange>[],
  outcomes: OperationOutcome[],
): Promise<void> {
  await insertOperations(
    client,
    units.map(({ entry, work }, i) => ({ ...toOperation(entry, work), status: outcomes[i]!, error: null })),
  )
}

function toOperation(entry: Entry, change: RecordChange | undefined) {
  const { entityType } = JSON.parse(entry.context) as RecordContext
  return {
    tenantId: entry.tenantId,
    id: entry.id,
    entityType,
    recordId: change && change.op !== 'delete-by-name' ? change.id : null,
  }
}

/** Writes changes of records. Returns the outcome of each change, in order, and the records that changed. */
export async function writeRecords({ client, now }: Transaction, units: Change[]) {
  await lockRecordTypes(client, locksFor(units))
  const direct = units.filter(unit => unit.work.op !== 'delete-by-name') as Change<RecordWrite | RecordDelete>[]
  const byName = units.filter(unit => unit.work.op === 'delete-by-name') as Change<RecordDeleteByName>[]
  const statuses = new Map<Change, OperationOutcome>()
  const changed = new Map<string, ChangedRecord>()

  if (direct.length > 0) {
    const tombstones = await tombstonesFor(client, direct)
    const newest = await findNewest(client, direct, tombstones, statuses)
    const rows = [...newest.values()].map(change => toRow(change, tombstones))
    if (rows.length > 0) await upsertRecords(client, rows)
    for (const row of rows) changed.set(keyText(row), changedRecord(row, newest))
  }
  if (byName.length > 0) {
    for (const record of await applyNameDeletes(client, byName, statuses)) {
      changed.set(keyText(record), { ...record, receivedAt: now, data: null })
    }
  }
  return { outcomes: units.map(unit => statuses.get(unit)!), changed: [...changed.values()] }
}

type Newest = { unit: Change<RecordWrite | RecordDelete>; version: Version }

/** Applies the changes in order to the stored versions. Each change is applied or superseded. Returns the last applied ones. */
async function findNewest(
  client: Transaction['client'],
  units: Change<RecordWrite | RecordDelete>[],
  tombstones: Tombstones,
  statuses: Map<Change, OperationOutcome>,
): Promise<Map<string, Newest>> {
  const keys = new Map(units.map(unit => [keyText(toKey(unit)), toKey(unit)]))
  const stored = await loadVersions(client, [...keys.values()])
  const versions = new Map<string, Version>(stored.map(row => [keyText(row), row]))
  const newest = new Map<string, Newest>()
  for (const unit of units) {
    const key = keyText(toKey(unit))
    const version = { sourceUpdatedAt: unit.work.sourceUpdatedAt, entryId: unit.entry.id }
    const before = versions.get(key)
    // Entries of one record arrive in order, so with equal source times this one is later, unless it is replayed.
    if (before && (version.sourceUpdatedAt < before.sourceUpdatedAt || isOutrun(unit.entry, version, before))) {
      statuses.set(unit, 'superseded')
      continue
    }
    statuses.set(unit, isDeletedByName(unit, tombstones) ? 'superseded' : 'applied')
    versions.set(key, version)
    newest.set(key, { unit, version })
  }
  return newest
}

/** A replayed dead letter keeps the id of its first arrival. A change that arrived after that takes precedence. */
function isOutrun(entry: Change['entry'], version: Version, before: Version): boolean {
  const isReplayed = entry.receivedAt.getTime() !== idToTime(entry.id).getTime()
  return isReplayed && version.sourceUpdatedAt === before.sourceUpdatedAt && before.entryId > entry.id
}

function toRow({ unit, version }: Newest, tombstones: Tombstones): RecordRow {
  const { work } = unit
  return {
    ...toKey(unit),
    ...version,
    externalId: work.op === 'write' ? work.externalId : null,
    deleted: work.op === 'delete' || isDeletedByName(unit, tombstones),
    dataText: work.op === 'write' ? work.dataText : null,
  }
}

function changedRecord(row: RecordRow, newest: Map<string, Newest>): ChangedRecord {
  const { entry, work } = newest.get(keyText(row))!.unit
  return {
    tenantId: row.tenantId,
    entityType: row.entityType,
    id: row.id,
    sourceUpdatedAt: row.sourceUpdatedAt,
    receivedAt: entry.receivedAt,
    data: row.deleted || work.op !== 'write' ? null : work.data,
  }
}

function keyText(key: RecordKey): string {
  return `${key.tenantId} ${key.entityType} ${key.id}`
}

/** The newest delete of each name, by `nameText`. */
type Tombstones = Map<string, Version>

/** Loads the deletes by name that may apply to these writes. */
async function tombstonesFor(
  client: Transaction['client'],
  units: Change<RecordWrite | RecordDelete>[],
): Promise<Tombstones> {
  const names = new Map<string, RecordNameKey>()
  for (const { entry, work } of units) {
    if (work.op !== 'write') continue
    for (const name of listNames(work)) {
      const key = { tenantId: entry.tenantId, entityType: work.entityType, ...name }
      names.set(nameText(key), key)
    }
  }
  const found = names.size > 0 ? await loadTombstones(client, [...names.values()]) : []
  return new Map(found.map(tombstone => [nameText(tombstone), tombstone]))
}

/** Whether a write is older than a delete by one of its names. Such a record is written as deleted. */
function isDeletedByName(unit: Change<RecordWrite | RecordDelete>, tombstones: Tombstones): boolean {
  const { entry, work } = unit
  if (work.op !== 'write' || tombstones.size === 0) return false
  const version = { sourceUpdatedAt: work.sourceUpdatedAt, entryId: entry.id }
  return listNames(work).some(name => {
    const tombstone = tombstones.get(nameText({ ...toKey(unit), ...name }))
    return tombstone !== undefined && isNewer(tombstone, version)
  })
}

/** Applies deletes by name. One is superseded if a newer delete is known, or if all records of that name are newer. */
async function applyNameDeletes(
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

function toKey({ entry, work }: Change<RecordWrite | RecordDelete>): RecordKey {
  return { tenantId: entry.tenantId, entityType: work.entityType, id: work.id }
}

function nameText(key: RecordNameKey): string {
  return `${key.tenantId} ${key.entityType} ${key.name} ${key.value}`
}

type RecordLock = { tenantId: number; entityType: RecordChange['entityType']; exclusive: boolean }

export function locksFor(units: Change[]): RecordLock[] {
  return strictest(
    units.map(({ entry: { tenantId }, work: { op, entityType } }) => ({
      ...{ tenantId, entityType, exclusive: op === 'delete-by-name' },
    })),
  )
}

/** One lock per tenant and type. */
export function strictest(locks: RecordLock[]): RecordLock[] {
  const found = new Map<string, RecordLock>()
  for (const lock of locks) {
    const key = `${lock.tenantId} ${lock.entityType}`
    if (!found.get(key)?.exclusive) found.set(key, lock)
  }
  return [...found.values()]
}

/**
 * Rows of a shop's export file that identify a product by its handle, because the file has no ids, while the shop's
 * webhooks have sent this product under its id. Writing these rows would store the product twice. Webhooks are newer than
 * any file, whatever the file's time, because files are copied. A row that is newer than a deleted product is another
 * product.
 */
export async function findRowsSentByShops(
  client: Transaction['client'],
  changes: Change<RecordChange>[],
): Promise<Set<Change>> {
  const named = new Map<Change, Handle>()
  for (const change of changes) {
    const handle = change.work.op === 'write' ? readFileHandle(change.work) : null
    if (handle !== null) named.set(change, { tenantId: change.entry.tenantId, handle })
  }
  if (named.size === 0) return new Set()
  // Before the query: a concurrent webhook would neither be seen nor see these rows.
  await lockRecordTypes(client, locksFor(changes))
  const distinct = new Map([...named.values()].map(handle => [handleText(handle), handle]))
  const known = new Map((await productsOfHandles(client, [...distinct.values()])).map(row => [handleText(row), row]))
  const isSent = ([change, handle]: [Change, Handle]) => {
    const product = known.get(handleText(handle))
    return product !== undefined && (product.isLive || product.sentAt >= change.work.sourceUpdatedAt)
  }
  return new Set([...named].filter(isSent).map(([change]) => change))
}

function handleText({ tenantId, handle }: Handle): string {
  return `${tenantId} ${handle}`
}
