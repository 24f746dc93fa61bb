import { writeFile } from 'node:fs/promises'
import type { Conditions } from '../deployment/deployment.ts'
import type { KontorProcess } from '../deployment/process.ts'
import { EVERYWHERE, type Fault } from './fault.ts'
import { holdTransaction } from './postgres.ts'

const DAY_MS = 86_400_000
const SHORTEST = '1d'

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

/** One node, or all of them, are a year ahead, and jobs (retention among them) run at that time; then the clock is corrected. */
export const clockAhead: Fault = {
  name: 'clock-ahead',
  modes: EVERYWHERE,
  prepare: withClocks,
  async strike({ deployment: { processes }, random, last }) {
    const wrong = random.chance(0.5) ? processes : [random.pick(processes)]
    await setClock(wrong, 365 * DAY_MS)
    await last(1, 3)
    // Jobs run at a start.
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

/** What nobody has read yet is older than everything is kept: it came in three days ago, and workers are held up since. */
export const oldBacklog: Fault = {
  name: 'old-backlog',
  modes: EVERYWHERE,
  prepare: conditions => {
    withClocks(conditions)
    withShortRetention(conditions)
  },
  async strike({ deployment: { processes, postgres }, last }) {
    const [acceptsAtWrongTime, restarted] = [
      processes.filter(({ role }) => role !== 'worker'),
      processes.filter(({ role }) => role !== 'http'),
    ]
    await setClock(acceptsAtWrongTime, -3 * DAY_MS)
    await last(1, 2)
    const held = await holdTransaction(postgres)
    try {
      await last(2, 5)
      await setClock(processes, 0)
      await last(1, 2)
      // Retention runs at a start.
      for (const process of restarted) {
        await process.terminate()
        await process.start()
      }
      await last(2, 3)
    } finally {
      await held.end()
    }
  },
}

/** Events that are older than events are kept: before and after one worker has dropped their partition. */
export const lateEvents: Fault = {
  name: 'late-events',
  modes: EVERYWHERE,
  prepare: ({ env }) => {
    env.KONTOR_EVENTS_RETENTION = '60d'
  },
  async strike({ deployment: { processes }, traffic, probe, random }) {
    const date = new Date(Date.now() - random.integer(150, 300) * DAY_MS)
    for (let i = 0; i < 10; i++) await traffic.events.dated(date, { old: true })
    await probe()()
    const restarted = random.pick(processes.filter(({ role }) => role === 'worker' || role === 'server'))
    await restarted.terminate()
    await restarted.start()
    await probe()()
    for (let i = 0; i < 10; i++) await traffic.events.dated(date, { old: true })
  },
}

/** PostgreSQL's sessions begin in a time zone west of UTC, and events are dated around the bounds of partitions. */
export const westernTimeZone: Fault = {
  name: 'western-time-zone',
  modes: ['fleet'],
  prepare: ({ postgres }) => {
    postgres.timezone = 'America/Los_Angeles'
  },
  async strike({ traffic }) {
    for (const date of ['1999-12-31T23:30Z', '2000-01-01T03:00Z', '2000-01-10T00:00Z', '2026-01-01T02:00Z'])
      await traffic.events.dated(new Date(date), { old: false })
  },
}
