import { databaseNow } from '../../postgres/clock.ts'
import { settingsThatLose } from '../../store/health/database.ts'
import { type Check, lasting } from './finding.ts'

const CLOCK_OFF_MS = 10_000
const LOW_BYTES = 2e9
const LOW_SHARE = 0.05

/** Two clocks that differ: this machine's and PostgreSQL's. */
export const clocks: Check = async ({ pool, now }) => {
  const before = now()
  const there = await databaseNow(pool)
  const after = now()
  // Somewhere between the two: half of the way is as near as it gets.
  const here = (before.getTime() + after.getTime()) / 2
  const offMs = here - there.getTime()
  if (Math.abs(offMs) <= CLOCK_OFF_MS) return []
  const which = offMs > 0 ? 'ahead of' : 'behind'
  return [
    {
      code: 'clock_off',
      what: `The clock of this machine is ${lasting(Math.abs(offMs) / 1_000)} ${which} PostgreSQL's.`,
      means:
        'Times of receipt are wrong; beyond 5 minutes, signatures are refused and events get another time.',
      help: 'timedatectl set-ntp true (on both machines), then compare `date -u`',
    },
  ]
}

export const disk: Check = async ({ disk, minFreeDisk }) => {
  const found = await disk()
  if (found === null) return []
  const share = found.freeBytes / found.totalBytes
  // Told while there is still time: at twice of what is needed to go on.
  if (found.freeBytes >= LOW_BYTES && share >= Math.max(LOW_SHARE, 2 * (minFreeDisk ?? 0))) return []
  const isRefusing = minFreeDisk !== null && share < minFreeDisk
  return [
    {
      code: 'disk_low',
      what: `${Math.round(found.freeBytes / 1e6).toLocaleString('en')} MB (${(share * 100).toFixed(1)} %) are free where ${found.path} lies.`,
      means: isRefusing
        ? 'Events and webhooks are answered 503 until there is more (KONTOR_MIN_FREE_DISK).'
        : `${minFreeDisk === null ? 'Without room' : `Below ${minFreeDisk * 100} %`} events and webhooks are answered 503, and then everything.`,
      help: `df -h ${JSON.stringify(found.path)}; make room, or shorten KONTOR_LOG_RETENTION, KONTOR_ARCHIVE_RETENTION or KONTOR_EVENTS_RETENTION`,
    },
  ]
}

export const durability: Check = async ({ pool }) => {
  const losing = await settingsThatLose(pool)
  if (losing.length === 0) return []
  return [
    {
      code: 'not_durable',
      what: `PostgreSQL runs with ${losing.map(name => `${name} = off`).join(', ')}.`,
      means: 'What was acknowledged may be gone after a power failure.',
      help: `psql "$DATABASE_URL" -c 'alter system set ${losing[0]} = on' -c 'select pg_reload_conf()'`,
    },
  ]
}
