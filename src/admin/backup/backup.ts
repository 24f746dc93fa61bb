import type { Readable } from 'node:stream'
import type pg from 'pg'
import { appliedMigrations } from '../../postgres/migrate.ts'
import {
  copyOut,
  inStreamingTransaction,
  isMissingTable,
  lockTables,
  rootTables,
  type StoredTable,
  sequenceValues,
  serverVersion,
  storedTables,
  withoutTimeouts,
} from '../../postgres/tables.ts'
import { countTenantsAndRecords } from '../../store/tenants/counts.ts'
import { AdminError } from '../error.ts'
import type { BackupSummary, Footer, Header, Progress } from './contents.ts'
import { summaryOf } from './contents.ts'
import { type BackupWriter, createBackupFile, ROWS_BYTES } from './file.ts'

type BackupOptions = {
  pool: pg.Pool
  path: string
  /** of this Kontor */
  version: string
  /** The master keys, where they shall go into the file. */
  secretKeys: readonly Buffer[] | null
  progress: Progress
}

/**
 * Everything, as of one moment, into one file, while others go on reading and writing. It holds nobody up: no lock but
 * against tables being dropped or altered, and no transaction id that the workers would wait for.
 */
export async function backUp(options: BackupOptions): Promise<BackupSummary> {
  const { pool, path } = options
  for (let attempt = 1; ; attempt++) {
    const roots = await rootTables(pool)
    if (!roots.includes('schema_migrations')) throw nothingThere()
    const file = await createBackupFile(path)
    try {
      return await inStreamingTransaction(pool, 'begin isolation level repeatable read read only', client =>
        writeMoment(client, roots, file, options),
      )
    } catch (error) {
      await file.abandon()
      // A table went away before it was locked: retention dropped it, or a new version has just started.
      if (!isMissingTable(error) || attempt === ATTEMPTS) throw error
    }
  }
}

const ATTEMPTS = 3

function nothingThere(): AdminError {
  return new AdminError(
    'conflict',
    'nothing_to_back_up',
    'There is nothing to back up: no Kontor has ever started on this database.',
  )
}

// Requests of the last days, for whoever builds what handles them; their order is this database's own.
const LEFT_OUT = new Set(['inbound_requests'])

async function writeMoment(
  client: pg.PoolClient,
  roots: readonly string[],
  file: BackupWriter,
  { path, version, secretKeys, progress }: BackupOptions,
): Promise<BackupSummary> {
  await lockTables(client, roots)
  await withoutTimeouts(client)
  const tables = (await storedTables(client)).filter(({ name }) => !LEFT_OUT.has(name))
  const header: Header = {
    version,
    postgres: await serverVersion(client),
    taken_at: new Date().toISOString(),
    migrations: await appliedMigrations(client),
    tables: tables.map(({ bytes: _, ...table }) => table),
    sequences: await sequenceValues(client),
    ...(secretKeys && { secret_keys: secretKeys.map(key => key.toString('hex')) }),
  }
  await file.write('header', Buffer.from(JSON.stringify(header)))
  const streams = await writeTables(client, file, tables, progress)
  const counts = await countTenantsAndRecords(client)
  const rows = Object.fromEntries(tables.map(({ name }, i) => [name, streams[i]!.rowCount]))
  const events = sum(
    tables.filter(({ partitionOf }) => partitionOf === 'events').map(({ name }) => rows[name]!),
  )
  const footer: Footer = { ...counts, events, rows }
  const bytes = await file.finish(footer)
  return summaryOf({ path, bytes, header, footer })
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

/** PostgreSQL sends a row at a time; a block of its own for each would be nothing but frames. */
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
