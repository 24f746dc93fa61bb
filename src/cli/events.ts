import type { Command } from '@commander-js/extra-typings'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, withDatabase } from './session.ts'

const PURGE_NOTES = `
Revoke the key first: what it goes on to send comes in again. Everything is then as if it had never sent: its events are
gone, sales that only they told of, and joins of people that they caused; sums and attribution follow. A server goes on
with what was interrupted.`

export function addEvents(program: Command, out: Output): void {
  const events = program
    .command('events')
    .description('Events: take out what a key added.')
    .addHelpText(
      'after',
      examples('kontor events purge --tenant acme --key key_4fTzQ9aXw2LmN8pB --since 2026-01-31T09:30:00Z'),
    )
  events
    .command('purge')
    .description('Take out what a leaked or abused tracking key added.')
    .requiredOption('--tenant <tenant>', 'the id or the name of the tenant')
    .requiredOption('--key <id>', 'the id of the tracking key (key_…), revoked or not')
    .requiredOption('--since <time>', 'what came in from then on: an ISO 8601 date-time')
    .option('--until <time>', 'and before then (default: to the end)')
    .option('--dry-run', 'only show what it would take')
    .addOption(dataOption())
    .addHelpText('after', PURGE_NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor events purge --tenant acme --key key_4fTzQ9aXw2LmN8pB --since 2026-01-31T09:30:00Z --dry-run',
      ),
    )
    .action(async options => {
      const { tenant, key, since, until } = options
      const using = options.dryRun ? readingDatabase : withDatabase
      await using(options, out, async ({ admin: { purges } }) => {
        const query = { tenant, key, since, until }
        out.json(options.dryRun ? await purges.preview(query) : await purges.purge(query))
      })
    })
}
