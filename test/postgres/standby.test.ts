import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Embedded, ownCluster } from '../../embedded-postgres/cluster.ts'
import type { Log } from '../../src/log/log.ts'
import { initializePostgresLog, openPostgresLog } from '../../src/log/postgres/log.ts'
import { inTransaction, isUnavailable, openPool } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { ensurePartitions } from '../../src/postgres/partitions.ts'
import { eventually } from '../eventually.ts'
import { anAppend } from '../log/entries.ts'

let directory: string
let cluster: Embedded
let pool: pg.Pool
let admin: pg.Client
let log: Log
/** A primary without its synchronous standby: commits wait until it connects or until they are cancelled. */
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kontor-standby-'))
  await chmod(directory, 0o711)
  const settings = { fsync: 'off', autovacuum: 'off', max_wal_senders: '4', wal_level: 'replica' }
  cluster = await ownCluster({ name: 'kontor', dataDir: join(directory, 'data'), log: () => {}, settings })
  pool = openPool({ connection: cluster.connection, max: 4, name: 'standby test', onError: () => {} })
  await migrate(pool)
  await ensurePartitions(pool, new Date())
  await initializePostgresLog(pool, 4)
  await pool.query('create table written (n int)')
  log = openPostgresLog({ pool })
  await log.append([anAppend()])
  admin = new pg.Client(cluster.connection)
  await admin.connect()
  await setStandbys('ANY 1 (*)')
  await untilCommitsWait()
})
after(async () => {
  await setStandbys('')
  await admin.end()
  await pool.end()
  await cluster.stop()
  await rm(directory, { recursive: true, force: true })
})

async function setStandbys(names: string): Promise<void> {
  await admin.query(`alter system set synchronous_standby_names = '${names}'`)
  await admin.query('select pg_reload_conf()')
}

/** The setting takes effect a moment later. */
async function untilCommitsWait(): Promise<void> {
  for (;;) if ((await observeOutcome(() => pool.query(insert), 'pg_terminate_backend')) !== 'acknowledged') return
}

/** The outcome of a commit whose session gets the signal `end` while it waits. */
async function observeOutcome(commit: () => Promise<unknown>, end: string): Promise<string> {
  let isOver = false
  const outcome = commit()
    .then(
      () => 'acknowledged',
      error => (isUnavailable(error) ? 'unclear' : String(error)),
    )
    .finally(() => {
      isOver = true
    })
  const waiting = `wait_event = 'SyncRep' and application_name = 'standby test'`
  await eventually('a commit that waits', async () => {
    const { rowCount } = await admin.query(`select ${end}(pid) from pg_stat_activity where ${waiting}`)
    return isOver || rowCount! > 0
  })
  return outcome
}

const insert = 'insert into written values (1)'
const commits: Record<string, () => Promise<unknown>> = {
  'an append': () => log.append([anAppend()]),
  'an append with a key': () => log.append([anAppend({}, randomUUID())]),
  'a transaction': () => inTransaction(pool, client => client.query(insert)),
  'a single statement': () => pool.query(insert),
  'a prepared statement': () => pool.query({ name: 'insert', text: insert }),
}

for (const end of ['pg_cancel_backend', 'pg_terminate_backend'])
  test(`a commit that waits for the synchronous standby is not acknowledged after ${end}`, async () => {
    for (const [what, commit] of Object.entries(commits))
      assert.deepEqual([what, await observeOutcome(commit, end)], [what, 'unclear'])
  })

test('the same pool works again once no standby is required', async () => {
  await setStandbys('')
  for (const commit of Object.values(commits)) await commit()
})
