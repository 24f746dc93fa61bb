import type { Entry } from '../../domain/entries/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import {
  isNewer,
  namesOf,
  type OperationOutcome,
  type RecordChange,
  type RecordContext,
  type RecordDelete,
  type RecordDeleteByName,
  type RecordWrite,
  readChange,
  type Version,
} from '../../domain/records/records.ts'
import {
  insertOperations,
  loadVersions,
  type RecordKey,
  type RecordRow,
  upsertRecords,
} from '../../store/records/records.ts'
import {
  deleteByNames,
  deletesSurvived,
  keepTombstones,
  loadTombstones,
  lockRecordTypes,
  type RecordNameKey,
} from '../../store/records/tombstones.ts'
import type { Suppressions } from '../identity/suppressions.ts'
import type { Kind, Transaction } from '../unit.ts'
import type { Change } from './change.ts'
import { locksFor } from './locks.ts'
import { rowsToldByShops } from './shop-files.ts'

/** For what is derived from records: called with every record whose state changed. */
export type RecordListener = (transaction: Transaction, changed: ChangedRecord[]) => Promise<void>

type ChangedRecord = RecordKey & {
  sourceUpdatedAt: string
  /** null: the record is deleted now */
  data: Record<string, unknown> | null
}

// The real reason may name tables and constraints: it is kept with the dead letter.
const NOT_APPLIED =
  'The change could not be applied. It is kept, and the operator of this service can replay it.'

export function recordKind(applyRecords: ApplyRecords): Kind<RecordChange> {
  return {
    decode(entry) {
      return { works: [readChange(JSON.parse(entry.context) as RecordContext, entry.body)], rejected: [] }
    },
    narrow: entry => entry,
    async apply(transaction, units) {
      const told = await rowsToldByShops(transaction.client, units)
      const applied = told.size > 0 ? units.filter(unit => !told.has(unit)) : units
      const outcomes = applied.length > 0 ? await applyRecords(transaction, applied) : []
      const statuses = new Map(applied.map((unit, i) => [unit, outcomes[i]!]))
      await insertOperations(
        transaction.client,
        units.map(unit => ({
          ...operationOf(unit.entry, unit.work),
          status: statuses.get(unit) ?? 'superseded',
          error: null,
        })),
      )
    },
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
      await insertOperations(client, [
        { ...operationOf(unit.entry, unit.work), status: 'failed', error: NOT_APPLIED },
      ])
    },
  }
}

/** Returns what became of each change, in their order. */
export type ApplyRecords = (transaction: Transaction, changes: Change[]) => Promise<OperationOutcome[]>

/** The one way in which records change, whoever tells it. */
export function openRecords(listeners: RecordListener[], suppressions: Suppressions): ApplyRecords {
  return async (transaction, changes) => {
    const kept = await suppressions.changes(transaction, changes)
    const recorded = kept.filter(change => change !== null)
    const { statuses, changed } = await applyChanges(transaction, recorded)
    if (changed.length > 0) for (const listener of listeners) await listener(transaction, changed)
    const outcomes = statuses.values()
    // What an erasure has decided is newer than whatever comes.
    return kept.map(change => (change === null ? 'superseded' : outcomes.next().value!))
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

async function applyChanges({ client }: Transaction, units: Change[]) {
  await lockRecordTypes(client, locksFor(units))
  const direct = units.filter(unit => unit.work.op !== 'delete-by-name') as Change<
    RecordWrite | RecordDelete
  >[]
  const byName = units.filter(unit => unit.work.op === 'delete-by-name') as Change<RecordDeleteByName>[]
  const statuses = new Map<Change, OperationOutcome>()
  const changed = new Map<string, ChangedRecord>()

  if (direct.length > 0) {
    const tombstones = await tombstonesFor(client, direct)
    const newest = await newestOf(client, direct, tombstones, statuses)
    const rows = [...newest.values()].map(change => rowOf(change, tombstones))
    if (rows.length > 0) await upsertRecords(client, rows)
    for (const row of rows) changed.set(keyText(row), changedRecord(row, newest))
  }
  if (byName.length > 0) {
    for (const record of await applyNameDeletes(client, byName, statuses)) {
      changed.set(keyText(record), { ...record, data: null })
    }
  }
  return { statuses: units.map(unit => statuses.get(unit)!), changed: [...changed.values()] }
}

type Newest = { unit: Change<RecordWrite | RecordDelete>; version: Version }

/** Plays the changes in their order over what is stored: each one is applied or superseded; the last applied stays. */
async function newestOf(
  client: Transaction['client'],
  units: Change<RecordWrite | RecordDelete>[],
  tombstones: Tombstones,
  statuses: Map<Change, OperationOutcome>,
): Promise<Map<string, Newest>> {
  const keys = new Map(units.map(unit => [keyText(keyOf(unit)), keyOf(unit)]))
  const stored = await loadVersions(client, [...keys.values()])
  const versions = new Map<string, Version>(stored.map(row => [keyText(row), row]))
  const newest = new Map<string, Newest>()
  for (const unit of units) {
    const key = keyText(keyOf(unit))
    const version = { sourceUpdatedAt: unit.work.sourceUpdatedAt, entryId: unit.entry.id }
    const before = versions.get(key)
    // Entries of one record arrive here in their order: of equal source times this one is the later, unless it is replayed.
    if (
      before &&
      (version.sourceUpdatedAt < before.sourceUpdatedAt || isOutrun(unit.entry, version, before))
    ) {
      statuses.set(unit, 'superseded')
      continue
    }
    statuses.set(unit, isDeletedByName(unit, tombstones) ? 'superseded' : 'applied')
    versions.set(key, version)
    newest.set(key, { unit, version })
  }
  return newest
}

/** A replayed dead letter keeps its id, which tells when it first came in: what came later has the better claim. */
function isOutrun(entry: Change['entry'], version: Version, before: Version): boolean {
  const isReplayed = entry.receivedAt.getTime() !== timeOfId(entry.id).getTime()
  return isReplayed && version.sourceUpdatedAt === before.sourceUpdatedAt && before.entryId > entry.id
}

function rowOf({ unit, version }: Newest, tombstones: Tombstones): RecordRow {
  const { work } = unit
  return {
    ...keyOf(unit),
    ...version,
    externalId: work.op === 'write' ? work.externalId : null,
    deleted: work.op === 'delete' || isDeletedByName(unit, tombstones),
    dataText: work.op === 'write' ? work.dataText : null,
  }
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

function keyText(key: RecordKey): string {
  return `${key.tenantId} ${key.entityType} ${key.id}`
}

/** The newest delete of each name, by `nameText`. */
type Tombstones = Map<string, Version>

/** The deletes that are known of the other names which these writes go by. */
async function tombstonesFor(
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
function isDeletedByName(unit: Change<RecordWrite | RecordDelete>, tombstones: Tombstones): boolean {
  const { entry, work } = unit
  if (work.op !== 'write' || tombstones.size === 0) return false
  const version = { sourceUpdatedAt: work.sourceUpdatedAt, entryId: entry.id }
  return namesOf(work).some(name => {
    const tombstone = tombstones.get(nameText({ ...keyOf(unit), ...name }))
    return tombstone !== undefined && isNewer(tombstone, version)
  })
}

/** A delete by name came too late where a newer one is known, or where all records of that name are newer. */
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

function keyOf({ entry, work }: Change<RecordWrite | RecordDelete>): RecordKey {
  return { tenantId: entry.tenantId, entityType: work.entityType, id: work.id }
}

function nameText(key: RecordNameKey): string {
  return `${key.tenantId} ${key.entityType} ${key.name} ${key.value}`
}
