import type { Command } from '@commander-js/extra-typings'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { writeSnapshots } from '../jobs/snapshots.ts'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, withDatabase } from './session.ts'

const NOTES = `
Prints {"snapshots": [{"tenant", "from", "to", "accounts"}]}: the days written, and the accounts in the last one.
Late events correct the snapshots of the days they speak of, and backdated ones write those that are missing.`

export function addSnapshot(program: Command, out: Output): void {
  program
    .command('snapshot')
    .description(
      'Write the daily snapshots of MRR by account that are missing. A running server does it by itself.',
    )
    .option('--date <YYYY-MM-DD>', 'only this day, in UTC (default: every day that has ended and has none)')
    .option(
      '--rebuild',
      'forget which days have one, write all of them again, and make the sums of days and of series anew',
    )
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples('kontor snapshot', 'kontor snapshot --date 2026-01-31', 'kontor snapshot --rebuild'),
    )
    .action(async options => {
      const now = new Date()
      const day = options.date === undefined ? null : dayOf(options.date, now)
      await withDatabase(options, out, async ({ pool }) => {
        const written = await writeSnapshots(pool, now, { day, rebuild: options.rebuild ?? false })
        out.json({
          snapshots: written.map(({ tenantId, ...days }) => ({ tenant: publicTenantId(tenantId), ...days })),
        })
      })
    })
}

function dayOf(text: string, now: Date): string {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || parseTimestamp(text) === null) {
    throw new UsageError(`--date ${text} is no date. Give one like 2026-01-31.`)
  }
  if (text >= now.toISOString().slice(0, 10)) {
    throw new UsageError(`--date ${text} has not ended yet: a snapshot is of a whole day, in UTC.`)
  }
  return text
}
