import type pg from 'pg'
import { type Db, queryPrepared, queryRow } from '../../postgres/database.ts'
import { sharePeople } from '../../postgres/locks.ts'
import { listenForNotices } from '../../postgres/notices.ts'

/**
 * Invalidates everything that nodes and workers cache. Triggers increment the version with every change of tenants, keys and
 * sources and with every erasure, in the same transaction.
 */
export async function configVersion(db: Db): Promise<number> {
  const { rows } = await queryPrepared<{ version: number }>(db, 'select version from config_version')
  return rows[0]!.version
}

/**
 * The version for a worker's transaction that writes profiles of these tenants. Until the transaction ends, no profile of them is
 * erased: erasures and these transactions wait for each other (see admin/erasure-run.ts). Data cached at this version is
 * therefore valid until the commit.
 *
 * Two statements, because each sees what was committed before it started: a single one that waited for the lock would read the
 * version from before the erasure.
 */
export async function holdConfigVersion(
  db: Db,
  tenantIds: Iterable<number>,
): Promise<{ configVersion: number; now: Date }> {
  await sharePeople(db, tenantIds)
  // Also returns PostgreSQL's time, which all workers share. This saves a round trip.
  return (await queryRow<{ configVersion: number; now: Date }>(
    db,
    'select version as "configVersion", now() from config_version',
  ))!
}

const CHECK_EVERY_MS = 1_000

/**
 * For caches outside of transactions: calls `changed` soon after a change. A notification arrives immediately. If notifications do
 * not arrive (behind a transaction pooler, while the listener reconnects), a check finds the change within a second.
 */
export async function watchConfigVersion(pool: pg.Pool, changed: () => void): Promise<{ stop(): Promise<void> }> {
  // Read before anything is cached, so that every later change is detected.
  let seen = await configVersion(pool)
  let checking = Promise.resolve()
  const check = () => {
    checking = checking.then(async () => {
      const version = await configVersion(pool).catch(() => null)
      // While the database is unreachable, the caches stay valid.
      if (version === null || version === seen) return
      seen = version
      changed()
    })
  }
  const notices = listenForNotices(pool, 'kontor_config', check)
  const timer = setInterval(check, CHECK_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await notices.stop()
      await checking
    },
  }
}
