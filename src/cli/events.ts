import type { Command } from '@commander-js/extra-typings'
import { END_OF_DAY, examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, withAdmin, withReadAdmin } from './session.ts'

const PURGE_NOTES = `
Revoke the key first, because a key that is still valid can send events again. The purge deletes the events of the key, the
sales that only these events reported, and the links between identifiers that they caused. Totals and attribution are
updated. A running server completes an interrupted purge.`

export function addEvents(program: Command, out: Output): void {
  const events = program
    .command('events')
    .description(
      'Delete the events that were sent with a leaked key. To list events, use kontor tail or kontor export.',
    )
    .addHelpText(
      'after',
      examples('kontor events purge --tenant acme --key key_4fTzQ9aXw2LmN8pB --since 2026-01-31T09:30:00Z'),
    )
  events
    .command('purge')
    .description('Delete events sent with a leaked or abused tracking key.')
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .requiredOption('--key <id>', 'id of the tracking key (key_…), which may be revoked already')
    .requiredOption(
      '--since <time>',
      'delete events received at or after this time, for example 2026-01-31 or 2026-01-31T09:30:00Z',
    )
    .option('--until <time>', `delete events received before this time (default: no limit); ${END_OF_DAY}`)
    .option('--dry-run', 'only count what would be deleted or changed')
    .addOption(dataOption())
    .addHelpText('after', PURGE_NOTES)
    .addHelpText(
      'after',
      examples('kontor events purge --tenant acme --key key_4fTzQ9aXw2LmN8pB --since 2026-01-31T09:30:00Z --dry-run'),
    )
    .action(async options => {
      const { tenant, key, since, until } = options
      const using = options.dryRun ? withReadAdmin : withAdmin
      await using(options, out, async ({ admin: { purges } }) => {
        const query = { tenant, key, since, until }
        out.json(options.dryRun ? await purges.preview(query) : await purges.purge(query))
      })
    })
}
