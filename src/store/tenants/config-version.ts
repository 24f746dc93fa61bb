import type pg from 'pg'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { sharePeople } from '../../postgres/locks.ts'
import { listenForNotices } from '../../postgres/notices.ts'

/**
 * The one way to learn that something changed that nodes and workers remember: triggers move this version with every
 * change of tenants, keys and sources and with every erasure, in the transaction that makes the change.
 */
export async function configVersion(db: Db): Promise<number> {
  const { rows } = await queryPrepared<{ version: number }>(db, 'select version from config_version')
  return rows[0]!.version
}

/**
 * The version for a worker's transaction that is about to write about people of these tenants. From here to its end
 * nobody of them is erased: an erasure waits for the transaction (see admin/erasure-run.ts), and the transaction for an
 * erasure under way. So what is remembered at this version is true until the commit.
 *
 * Two statements: each sees what was committed when it began, so one that had to wait for the lock would read the
 * version from before the erasure it waited for.
 */
export async function holdConfigVersion(
  db: Db,
  tenantIds: Iterable<number>,
): Promise<{ configVersion: number; now: Date }> {
  await sharePeople(db, tenantIds)
  // With PostgreSQL's time, which is one for all workers: a round trip less.
  const { rows } = await queryPrepared<{ configVersion: number; now: Date }>(
    db,
    'select version as "configVersion", now() from config_version',
  )
  return rows[0]!
}

const CHECK_EVERY_MS = 1_000

/**
 * For what is remembered outside of transactions: calls back soon after a change. A notice tells of it at once; where
 * notices do not get through (behind a transaction pooler, while the listener reconnects) a check finds it within a second.
 */
export async function watchConfigVersion(
  pool: pg.Pool,
  changed: () => void,
): Promise<{ stop(): Promise<void> }> {
  // Read before anything is remembered: a change from here on is seen as one.
  let seen = await configVersion(pool)
  let checking = Promise.resolve()
  const check = () => {
    checking = checking.then(async () => {
      const version = await configVersion(pool).catch(() => null)
      // While the database is away, what is remembered stays good.
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
