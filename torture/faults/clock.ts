import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Conditions } from '../deployment/deployment.ts'
import type { Postgres } from '../deployment/postgres.ts'
import type { KontorProcess } from '../deployment/process.ts'
import { EVERYWHERE, type Fault } from './fault.ts'
import { connected, holdTransaction } from './postgres.ts'

const DAY_MS = 86_400_000
const SHORTEST = '1d'
const EVENTS_KEPT_DAYS = 60

export async function setClock(processes: KontorProcess[], offsetMs: number): Promise<void> {
  for (const { clockFile } of processes) if (clockFile) await writeFile(clockFile, String(offsetMs))
}

const withClocks = (conditions: Conditions) => {
  conditions.clocks = true
}

function withShortRetention({ env }: Conditions): void {
  env.KONTOR_LOG_RETENTION = SHORTEST
  env.KONTOR_OPERATIONS_RETENTION = SHORTEST
  env.KONTOR_RECEIPTS_RETENTION = SHORTEST
  env.KONTOR_ARCHIVE_RETENTION = SHORTEST
}

/** The clock of one node, or of all nodes, is a year ahead while jobs such as retention run. Then the clock is corrected. */
export const clockAhead: Fault = {
  name: 'clock-ahead',
  modes: EVERYWHERE,
  prepare: withClocks,
  async strike({ deployment: { processes }, random, last }) {
    const wrong = random.chance(0.5) ? processes : [random.pick(processes)]
    await setClock(wrong, 365 * DAY_MS)
    await last(1, 3)
    // Jobs run at the start.
    const restarted = wrong.find(({ role }) => role === 'worker' || role === 'server') ?? wrong[0]!
    await restarted.terminate()
    await restarted.start()
    await last(3, 6)
    await setClock(wrong, 0)
  },
}

export const clockBehind: Fault = {
  name: 'clock-behind',
  modes: EVERYWHERE,
  prepare: withClocks,
  async strike({ deployment: { processes }, random, last }) {
    const wrong = random.chance(0.5) ? processes : [random.pick(processes)]
    await setClock(wrong, -365 * DAY_MS)
    await last(3, 8)
    await setClock(wrong, 0)
  },
}

/** Unread entries are older than the retention: they arrived three days ago, and workers have been blocked since. */
export const oldBacklog: Fault = {
  name: 'old-backlog',
  modes: EVERYWHERE,
  prepare: withShortRetention,
  async strike({ deployment: { processes, postgres }, last, say }) {
    const held = await holdTransaction(postgres)
    try {
      await last(2, 5)
      let aged = 0
      // If another fault has killed the server, nothing is accepted until it has restarted.
      for (let patience = 120; aged === 0 && patience > 0; patience--) {
        aged = await ageEntries(postgres, held.xid)
        if (aged === 0) await sleep(500)
      }
      if (aged === 0) throw new Error('No entry arrived for a minute')
      say(`  ${aged} unprocessed entries are now three days old`)
      await last(1, 2)
      // Retention runs at the start.
      for (const process of processes.filter(({ role }) => role !== 'http')) {
        await process.terminate()
        await process.start()
      }
      await last(2, 3)
    } finally {
      await held.end()
    }
  },
}

/**
 * Backdates the entries since a transaction by three days. Nodes cannot do that, because they use PostgreSQL's clock. The entries are
 * in a partition as Kontor creates it, which retention can drop.
 */
async function ageEntries(postgres: Postgres, sinceXid: string): Promise<number> {
  const { client, result } = await connected(postgres, async client => {
    await client.query(`do $$
      declare
        day timestamptz := date_trunc('day', now(), 'UTC') - interval '3 days';
        name text := 'log_p' || extract(epoch from day)::bigint / 86400;
      begin
        if to_regclass(name) is null then
          execute format('create table %I partition of log for values from (%L) to (%L)', name, day, day + interval '1 day');
          execute format('alter table %I owner to %I', name, (select tableowner from pg_tables where tablename = 'log'));
        end if;
      end $$`)
    return client.query(
      `update log set received_at = received_at - interval '3 days'
       where epoch = (select max(epoch) from log_epochs) and xid >= $1::text::xid8
         and received_at >= date_trunc('day', now(), 'UTC')`,
      [sinceXid],
    )
  })
  await client.end()
  return result.rowCount ?? 0
}

/** Events older than the retention, before and after a worker has dropped their partition. */
export const lateEvents: Fault = {
  name: 'late-events',
  modes: EVERYWHERE,
  prepare: ({ env }) => {
    env.KONTOR_EVENTS_RETENTION = `${EVENTS_KEPT_DAYS}d`
  },
  async strike({ deployment: { processes }, traffic, probe, random }) {
    const date = new Date(Date.now() - random.integer(150, 300) * DAY_MS)
    for (let i = 0; i < 10; i++) await traffic.events.dated(date)
    await probe()()
    const restarted = random.pick(processes.filter(({ role }) => role === 'worker' || role === 'server'))
    await restarted.terminate()
    await restarted.start()
    await probe()()
    for (let i = 0; i < 10; i++) await traffic.events.dated(date)
  },
}

/** PostgreSQL sessions use a time zone west of UTC, and events are dated around partition bounds. */
export const westernTimeZone: Fault = {
  name: 'western-time-zone',
  modes: ['fleet'],
  prepare: ({ postgres }) => {
    postgres.timezone = 'America/Los_Angeles'
  },
  async strike({ traffic }) {
    for (const date of ['1999-12-31T23:30Z', '2000-01-01T03:00Z', '2000-01-10T00:00Z', '2026-01-01T02:00Z'])
      await traffic.events.dated(new Date(date))
  },
}
