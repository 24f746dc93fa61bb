import type { Readable } from 'node:stream'
import type pg from 'pg'
import type { Log } from '../log/log.ts'
import { enterRestored } from '../log/restored.ts'
import { LOCKS, lock } from '../postgres/locks.ts'
import {
  type AppliedMigration,
  appliedMigrations,
  applyMigrations,
  foreignMigration,
  PREVIEW_SCHEMA,
} from '../postgres/migrate.ts'
import {
  analyze,
  type CopyIn,
  clearTable,
  copyIn,
  copyOut,
  createPartition,
  enableTriggers,
  findRelation,
  inStreamingTransaction,
  isMissingTable,
  listRootTables,
  listStoredTables,
  lockTables,
  readSequences,
  readServerVersion,
  type SequenceValue,
  type StoredTable,
  setSequences,
  withoutTimeouts,
} from '../postgres/tables.ts'
import { disableArchive } from '../store/archive/archive.ts'
import { disableDestinations } from '../store/destinations/destinations.ts'
import { countTenantsAndRecords } from '../store/tenants/tenants.ts'
import {
  type BackupReader,
  type BackupWriter,
  createBackupFile,
  openBackupFile,
  ROWS_BYTES,
  tooNew,
} from './backup-file.ts'
import { AdminError } from './error.ts'

type BackupOptions = {
  pool: pg.Pool
  path: string
  /** The version of this Kontor. */
  version: string
  /** The secret keys, if the file should contain them. */
  secretKeys: readonly Buffer[] | null
  progress: Progress
}

/**
 * Writes a consistent snapshot of everything to one file, while others read and write. It blocks no one: its only locks are
 * against dropping or altering tables, and it takes no transaction id that workers would wait for.
 */
export async function backUp(options: BackupOptions): Promise<BackupSummary> {
  const { pool, path } = options
  for (let attempt = 1; ; attempt++) {
    const roots = await listRootTables(pool)
    if (!roots.includes('schema_migrations')) throw nothingToBackUp()
    const file = await createBackupFile(path)
    try {
      return await inStreamingTransaction(pool, 'begin isolation level repeatable read read only', client =>
        writeMoment(client, roots, file, options),
      )
    } catch (error) {
      await file.abandon()
      // A table disappeared before it was locked: retention dropped it, or a new version has just started.
      if (!isMissingTable(error) || attempt === ATTEMPTS) throw error
    }
  }
}

const ATTEMPTS = 3

function nothingToBackUp(): AdminError {
  return new AdminError(
    'conflict',
    'nothing_to_back_up',
    'There is nothing to back up: Kontor has never started on this database.',
  )
}

// Raw requests of the last days serve only development, and their order is specific to this database.
const LEFT_OUT = new Set(['inbound_requests'])

async function writeMoment(
  client: pg.PoolClient,
  roots: readonly string[],
  file: BackupWriter,
  { path, version, secretKeys, progress }: BackupOptions,
): Promise<BackupSummary> {
  await lockTables(client, roots)
  await withoutTimeouts(client)
  const tables = (await listStoredTables(client)).filter(({ name }) => !LEFT_OUT.has(name))
  const header: Header = {
    version,
    postgres: await readServerVersion(client),
    taken_at: new Date().toISOString(),
    migrations: await appliedMigrations(client),
    tables: tables.map(({ bytes: _, ...table }) => table),
    sequences: await readSequences(client),
    ...(secretKeys && { secret_keys: secretKeys.map(key => key.toString('hex')) }),
  }
  await file.write('header', Buffer.from(JSON.stringify(header)))
  const streams = await writeTables(client, file, tables, progress)
  const counts = await countTenantsAndRecords(client)
  const rows = Object.fromEntries(tables.map(({ name }, i) => [name, streams[i]!.rowCount]))
  const events = sum(tables.filter(({ partitionOf }) => partitionOf === 'events').map(({ name }) => rows[name]!))
  const footer: Footer = { ...counts, events, rows }
  const bytes = await file.finish(footer)
  return toSummary({ path, bytes, header, footer })
}

async function writeTables(
  client: pg.PoolClient,
  file: BackupWriter,
  tables: readonly (StoredTable & { bytes: number })[],
  progress: Progress,
): Promise<{ rowCount: number }[]> {
  const ofBytes = sum(tables.map(({ bytes }) => bytes))
  const streams: { rowCount: number }[] = []
  let before = 0
  for (const table of tables) {
    await file.write('table', Buffer.from(JSON.stringify({ name: table.name })))
    const stream = copyOut(client, table)
    let bytes = 0
    for await (const block of inBlocks(stream)) {
      await file.write('rows', block)
      bytes = Math.min(table.bytes, bytes + block.length)
      progress({ bytes: before + bytes, ofBytes, what: table.name })
    }
    streams.push(stream)
    before += table.bytes
  }
  return streams
}

/** PostgreSQL sends one row at a time. One block per row would consist mostly of framing. */
async function* inBlocks(stream: Readable): AsyncGenerator<Buffer> {
  let block = Buffer.allocUnsafeSlow(ROWS_BYTES)
  let length = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    for (let from = 0; from < chunk.length; ) {
      const copied = chunk.copy(block, length, from)
      from += copied
      length += copied
      if (length < ROWS_BYTES) continue
      yield block
      block = Buffer.allocUnsafeSlow(ROWS_BYTES)
      length = 0
    }
  }
  if (length > 0) yield block.subarray(0, length)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}

/** The first block of a backup: what is needed to create the tables before their rows are read. */
type Header = {
  /** The version of Kontor that created the backup. */
  version: string
  /** The version of PostgreSQL as a number: 180001. */
  postgres: number
  taken_at: string
  migrations: AppliedMigration[]
  tables: StoredTable[]
  sequences: SequenceValue[]
  /** The secret keys in hex, if requested. */
  secret_keys?: string[]
}

/** The last block: the actual content. */
type Footer = {
  tenants: number
  records: number
  events: number
  /** Rows by table. */
  rows: Record<string, number>
}

/** Precedes the rows of a table. */
type TableStart = { name: string }

type BackupSummary = {
  file: string
  bytes: number
  tenants: number
  records: number
  events: number
  taken_at: string
  version: string
}

export type Backup = BackupReader<Header, Footer>
export const openBackup = (path: string): Promise<Backup> => openBackupFile<Header, Footer>(path)

function toSummary({ path, bytes, header, footer }: Omit<Backup, 'blocks' | 'close'>): BackupSummary {
  const { tenants, records, events } = footer
  const { taken_at, version } = header
  return { file: path, bytes, tenants, records, events, taken_at, version }
}

/** Called from time to time with the progress: bytes of the total, and the current step. */
export type Progress = (done: { bytes: number; ofBytes: number; what: string }) => void

/** Reads every byte and compares checksums. */
export async function verifyBackup(path: string, progress: Progress): Promise<BackupSummary> {
  const backup = await openBackup(path)
  try {
    let bytes = 0
    let what = ''
    const onRead = (more: number) => {
      bytes += more
      progress({ bytes, ofBytes: backup.bytes, what })
    }
    for await (const block of backup.blocks(onRead))
      if (block.kind === 'table') what = (JSON.parse(block.bytes.toString()) as TableStart).name
    return toSummary(backup)
  } finally {
    await backup.close()
  }
}

export type Restored = BackupSummary & {
  /** Entries that were accepted but not processed yet. */
  waiting: number
  /** What is disabled in the copy, so that it does not act on behalf of the original. */
  disabled: { destinations: number; archive: boolean }
  /** Tables that do not belong to Kontor. */
  leftOut: string[]
}

/** Throws if this version cannot use the backup. */
export function rejectNewer({ path, header }: Backup): void {
  const foreign = foreignMigration(header.migrations)
  if (foreign === null) return
  const { name, reason } = foreign
  if (reason === 'unknown') throw tooNew(path, `it was created by ${header.version} with the migration ${name}`)
  throw new AdminError(
    'conflict',
    'backup_of_another_version',
    reason === 'preview'
      ? `${path} ${PREVIEW_SCHEMA}`
      : `${path} was created by another version of Kontor (${header.version}): its migration ${name} differs from the one of this version. Restore it with the version that created it.`,
  )
}

/**
 * Restores into an empty database in one transaction. Tables are created with the schema of the backup, filled, and then
 * migrated to the schema of this version.
 */
export async function restore({
  pool,
  log,
  backup,
  progress,
  beforeCommit = () => {},
}: {
  pool: pg.Pool
  log: Pick<Log, 'lag'>
  backup: Backup
  progress: Progress
  beforeCommit?: () => void
}): Promise<Restored> {
  rejectNewer(backup)
  const { header, footer } = backup
  const disabled = { destinations: 0, archive: false }
  const leftOut = await inStreamingTransaction(pool, 'begin', async client => {
    await withoutTimeouts(client)
    // A server that starts meanwhile waits, and then finds everything.
    await lock(client, LOCKS.migration)
    await requireEmpty(client)
    await applyMigrations(client, { only: header.migrations })
    const tables = await createTables(client, header.tables)
    const rows = await fillTables(client, { backup, tables, progress })
    for (const { name } of tables)
      if (rows[name] !== footer.rows[name])
        throw new Error(`table ${name} took ${rows[name]} of ${footer.rows[name]} rows`)
    for (const { name } of tables) await enableTriggers(client, name)
    await setSequences(client, header.sequences)
    await applyMigrations(client)
    await enterRestored(client)
    disabled.archive = await disableArchive(client, 'Restored from a backup.')
    disabled.destinations = await disableDestinations(client, 'Restored from a backup.')
    const known = new Set(tables.map(({ name }) => name))
    beforeCommit()
    return header.tables.map(({ name }) => name).filter(name => !known.has(name))
  })
  // So that the first queries are planned with the actual sizes; autovacuum would do it later.
  await analyze(pool)
  const lags = await log.lag({ withinPostgres: true })
  const waiting = lags.reduce((sum, { entries }) => sum + entries, 0)
  return { ...toSummary(backup), waiting, leftOut, disabled }
}

async function requireEmpty(client: pg.PoolClient): Promise<void> {
  const found = await findRelation(client)
  if (found === null) return
  throw new AdminError(
    'conflict',
    'database_not_empty',
    `The database is not empty: it has ${JSON.stringify(found)}. A backup can only be restored into an empty database: ` +
      'choose another data directory with --data, or another database with DATABASE_URL. Nothing was changed.',
  )
}

/** Creates the partitions of the backup. Returns the tables of the backup that exist then; they are empty. */
async function createTables(client: pg.PoolClient, wanted: readonly StoredTable[]): Promise<StoredTable[]> {
  const roots = new Set(await listRootTables(client))
  const existing = new Set((await listStoredTables(client)).map(({ name }) => name))
  const tables = wanted.filter(({ name, partitionOf }) => roots.has(partitionOf ?? name))
  for (const table of tables) if (!existing.has(table.name)) await createPartition(client, table)
  for (const { name } of tables) await clearTable(client, name)
  return tables
}

async function fillTables(
  client: pg.PoolClient,
  { backup, tables, progress }: { backup: Backup; tables: readonly StoredTable[]; progress: Progress },
): Promise<Record<string, number>> {
  const byName = new Map(tables.map(table => [table.name, table]))
  const rows: Record<string, number> = {}
  let table: { name: string; copy: CopyIn | null } | null = null
  const end = async () => {
    if (table?.copy) rows[table.name] = await table.copy.end()
  }
  let bytes = 0
  const onRead = (more: number) => {
    bytes += more
    progress({ bytes, ofBytes: backup.bytes, what: table?.name ?? '' })
  }
  for await (const block of backup.blocks(onRead)) {
    if (block.kind === 'table') {
      await end()
      const { name } = JSON.parse(block.bytes.toString('utf8')) as TableStart
      const known = byName.get(name)
      table = { name, copy: known ? copyIn(client, known) : null }
    } else await table?.copy?.write(block.bytes)
  }
  await end()
  return rows
}
