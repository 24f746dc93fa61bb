import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { listBackends, type Postgres } from '../deployment/postgres.ts'
import { PRIMARY } from '../deployment/standby.ts'
import { EVERYWHERE, type Fault, type Strike } from './fault.ts'
import { killNow } from './processes.ts'

async function findPostmaster({ deployment }: Strike): Promise<number> {
  const pid = await deployment.postgres.postmasterPid()
  if (pid === null) throw new Error('PostgreSQL is not running')
  return pid
}

/** One of PostgreSQL's processes dies. PostgreSQL ends all others, recovers and continues. */
export const killBackend: Fault = {
  name: 'kill-backend',
  modes: EVERYWHERE,
  joins: true,
  async strike(strike) {
    // During another fault, there may be no backend.
    const postmaster = await strike.deployment.postgres.postmasterPid()
    const backends = postmaster === null ? [] : listBackends(postmaster)
    if (backends.length > 0) killNow(strike.random.pick(backends).pid)
    await strike.last(0, 2)
  },
}

export const freezeBackend: Fault = {
  name: 'freeze-backend',
  modes: EVERYWHERE,
  async strike(strike) {
    const backends = listBackends(await findPostmaster(strike))
    if (backends.length === 0) return
    const { pid } = strike.random.pick(backends)
    killNow(pid, 'SIGSTOP')
    try {
      await strike.last(4, 15)
    } finally {
      killNow(pid, 'SIGCONT')
    }
  },
}

/** The operator restarts an external PostgreSQL. The embedded one must restart automatically. */
export const killPostmaster: Fault = {
  name: 'kill-postmaster',
  modes: EVERYWHERE,
  async strike(strike) {
    killNow(await findPostmaster(strike))
    await strike.last(1, 4)
    const { postgres } = strike.deployment
    if (postgres.isOurs) await postgres.start()
  },
}

/** Existing connections continue; new connections are refused. */
export const freezePostmaster: Fault = {
  name: 'freeze-postmaster',
  modes: EVERYWHERE,
  async strike(strike) {
    const pid = await findPostmaster(strike)
    killNow(pid, 'SIGSTOP')
    try {
      await strike.last(4, 15)
    } finally {
      killNow(pid, 'SIGCONT')
    }
  },
}

/** PostgreSQL hangs, as with an unresponsive disk. */
export const freezePostgres: Fault = {
  name: 'freeze-postgres',
  modes: EVERYWHERE,
  async strike(strike) {
    const postmaster = await findPostmaster(strike)
    const pids = [postmaster, ...listBackends(postmaster).map(({ pid }) => pid)]
    for (const pid of pids) killNow(pid, 'SIGSTOP')
    try {
      await strike.last(5, 15)
    } finally {
      for (const pid of pids) killNow(pid, 'SIGCONT')
    }
  },
}

export const stopPostgres: Fault = {
  name: 'stop-postgres',
  modes: ['fleet'],
  async strike({ deployment, last }) {
    await deployment.postgres.stop()
    await last(30, 30)
    await deployment.postgres.start()
  },
}

/** Another program leaves a writing transaction open, which hides all later entries from workers. */
export async function holdTransaction(postgres: Postgres): Promise<{ xid: string; end(): Promise<void> }> {
  const { client, result } = await connected(postgres, async client => {
    await client.query('set idle_in_transaction_session_timeout = 0')
    await client.query('begin')
    return (await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid')).rows[0]!
  })
  return { xid: result.xid, end: () => client.end() }
}

/** Uses a connection, and retries if another fault has killed a backend and PostgreSQL is recovering. */
export async function connected<T>(
  postgres: Postgres,
  work: (client: pg.Client) => Promise<T>,
): Promise<{ client: pg.Client; result: T }> {
  for (let patience = 300; ; patience--) {
    const client = new pg.Client({ ...(await postgres.connection()), application_name: 'another program' })
    client.on('error', () => {})
    try {
      await client.connect()
      return { client, result: await work(client) }
    } catch (error) {
      await client.end().catch(() => undefined)
      if (patience === 0) throw error
      await sleep(100)
    }
  }
}

export const foreignTransaction: Fault = {
  name: 'foreign-transaction',
  modes: EVERYWHERE,
  async strike({ deployment, last }) {
    const held = await holdTransaction(deployment.postgres)
    await last(5, 20).finally(() => held.end())
  },
}

/** The primary is lost and its standby is promoted. Once per run, because the new primary has no standby. */
export const failOver: Fault = {
  name: 'fail-over',
  modes: ['fleet'],
  prepare(conditions) {
    conditions.standby = true
    Object.assign(conditions.postgres, PRIMARY)
  },
  strike: ({ deployment }) => deployment.failOver(),
}
