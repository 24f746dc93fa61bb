import type pg from 'pg'
import type { Log } from '../../log/log.ts'
import { enterRestored } from '../../log/restored.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import { applyMigrations, foreignMigration } from '../../postgres/migrate.ts'
import {
  analyze,
  type CopyIn,
  copyIn,
  enableTriggers,
  inStreamingTransaction,
  makePartition,
  makeReady,
  rootTables,
  type StoredTable,
  setSequences,
  somethingIn,
  storedTables,
  withoutTimeouts,
} from '../../postgres/tables.ts'
import { disableArchive } from '../../store/archive/archive.ts'
import { disableDestinations } from '../../store/destinations/destinations.ts'
import { AdminError } from '../error.ts'
import type { Backup, BackupSummary, Progress, TableStart } from './contents.ts'
import { summaryOf } from './contents.ts'
import { tooNew } from './file.ts'

export type Restored = BackupSummary & {
  /** Entries that were accepted and not processed yet. */
  waiting: number
  /** What the copy does not do by itself, so that it does not speak for the original. */
  disabled: { destinations: number; archive: boolean }
  /** Tables that are not Kontor's. */
  leftOut: string[]
}

/** Throws where this version cannot use the backup. */
export function refuseNewer({ path, header }: Backup): void {
  const foreign = foreignMigration(header.migrations)
  if (foreign === null) return
  if (!foreign.isKnown)
    throw tooNew(path, `it comes from ${header.version} with the migration ${foreign.name}`)
  throw new AdminError(
    'conflict',
    'backup_of_another_version',
    `${path} was made by another version of Kontor (${header.version}): its migration ${foreign.name} is not the one here.`,
  )
}

/**
 * Into an empty database, in one transaction: all of it is there in the end, or nothing. Tables are made as they were when
 * the backup was taken, filled, and only then brought to the schema of this version.
 */
export async function restore({
  pool,
  log,
  backup,
  progress,
}: {
  pool: pg.Pool
  log: Pick<Log, 'lag'>
  backup: Backup
  progress: Progress
}): Promise<Restored> {
  refuseNewer(backup)
  const { header, footer } = backup
  const disabled = { destinations: 0, archive: false }
  const leftOut = await inStreamingTransaction(pool, 'begin', async client => {
    await withoutTimeouts(client)
    // A server that is started meanwhile waits, and finds everything there.
    await lock(client, LOCKS.migration)
    await refuseUnlessEmpty(client)
    await applyMigrations(client, { only: header.migrations })
    const tables = await makeTables(client, header.tables)
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
    return header.tables.map(({ name }) => name).filter(name => !known.has(name))
  })
  // So that the first queries are planned with the sizes in view; autovacuum would do it later.
  await analyze(pool)
  const lags = await log.lag({ withinPostgres: true })
  const waiting = lags.reduce((sum, { entries }) => sum + entries, 0)
  return { ...summaryOf(backup), waiting, leftOut, disabled }
}

async function refuseUnlessEmpty(client: pg.PoolClient): Promise<void> {
  const found = await somethingIn(client)
  if (found === null) return
  throw new AdminError(
    'conflict',
    'database_not_empty',
    `The database is not empty: it has ${JSON.stringify(found)}. A backup is restored into an empty one only: ` +
      'give another data directory with --data, or another database with DATABASE_URL. Nothing was changed.',
  )
}

/** Makes the partitions of the backup. Returns the tables of the backup that are there then, and empty. */
async function makeTables(client: pg.PoolClient, wanted: readonly StoredTable[]): Promise<StoredTable[]> {
  const roots = new Set(await rootTables(client))
  const made = new Set((await storedTables(client)).map(({ name }) => name))
  const tables = wanted.filter(({ name, partitionOf }) => roots.has(partitionOf ?? name))
  for (const table of tables) if (!made.has(table.name)) await makePartition(client, table)
  for (const { name } of tables) await makeReady(client, name)
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
