import type { Command } from '@commander-js/extra-typings'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { writeSnapshots } from '../jobs/ledger.ts'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, withDatabase } from './session.ts'

const NOTES = `
Prints {"snapshots": [{"tenant", "from", "to", "accounts"}]}: the days written, and the number of accounts on the last day.
A running server writes missing snapshots. If an event arrives late, the server also updates the snapshots of the days that the event
changes.`

export function addSnapshot(program: Command, out: Output): void {
  program
    .command('snapshot')
    .description('Write missing daily snapshots of MRR per account. A running server does this automatically.')
    .option('--date <YYYY-MM-DD>', 'only this day, in UTC (default: every past day without a snapshot)')
    .option('--rebuild', 'write all snapshots again, and recompute daily totals and time series')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor snapshot', 'kontor snapshot --date 2026-01-31', 'kontor snapshot --rebuild'))
    .action(async options => {
      const now = new Date()
      const day = options.date === undefined ? null : parseDay(options.date, now)
      await withDatabase(options, out, async ({ pool }) => {
        const written = await writeSnapshots(pool, now, { day, rebuild: options.rebuild ?? false })
        out.json({ snapshots: written.map(({ tenantId, ...days }) => ({ tenant: publicTenantId(tenantId), ...days })) })
      })
    })
}

function parseDay(text: string, now: Date): string {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || parseTimestamp(text) === null) {
    throw new UsageError(`--date ${text} is not a date. Expected a date such as 2026-01-31.`)
  }
  if (text >= now.toISOString().slice(0, 10)) {
    throw new UsageError(`The day ${text} (--date) has not ended yet in UTC. A snapshot covers a whole day.`)
  }
  return text
}
