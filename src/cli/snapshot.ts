import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { writeSnapshots } from '../jobs/snapshots.ts'
import { defineCommand, UsageError } from './command.ts'
import { databaseFlags, withDatabase } from './session.ts'

export const snapshot = defineCommand({
  name: 'snapshot',
  summary:
    'Write the daily snapshots of MRR by account that are missing. A running server does it by itself.',
  flags: {
    date: {
      value: 'YYYY-MM-DD',
      meaning: 'only this day, in UTC (default: every day that has ended and has none)',
    },
    rebuild: { meaning: 'forget which days have one, and write all of them again' },
    ...databaseFlags,
  },
  notes: [
    'Prints {"snapshots": [{"tenant", "from", "to", "accounts"}]}: the days written, and the accounts in the last one.\n' +
      'Late events correct the snapshots of the days they speak of, and backdated ones write those that are missing.',
  ],
  examples: ['kontor snapshot', 'kontor snapshot --date 2026-01-31', 'kontor snapshot --rebuild'],
  run: ({ flags, out }) =>
    withDatabase(flags, out, async ({ pool }) => {
      const now = new Date()
      const written = await writeSnapshots(pool, now, {
        day: flags.date === undefined ? null : dayOf(flags.date, now),
        rebuild: flags.rebuild,
      })
      out.json({
        snapshots: written.map(({ tenantId, ...days }) => ({ tenant: publicTenantId(tenantId), ...days })),
      })
      return 0
    }),
})

function dayOf(text: string, now: Date): string {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || parseTimestamp(text) === null) {
    throw new UsageError(`--date ${text} is no date. Give one like 2026-01-31.`)
  }
  if (text >= now.toISOString().slice(0, 10)) {
    throw new UsageError(`--date ${text} has not ended yet: a snapshot is of a whole day, in UTC.`)
  }
  return text
}
