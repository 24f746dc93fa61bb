import type { Command } from '@commander-js/extra-typings'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, tenantOption, withDatabase } from './session.ts'

export function addSuppress(program: Command, out: Output): void {
  const suppress = program
    .command('suppress')
    .description('People who were erased with --suppress: nothing of them is recorded again.')
    .addHelpText(
      'after',
      '\nOnly hashes of their names are kept. Somebody is added by kontor erase --suppress.',
    )
    .addHelpText('after', examples('kontor suppress list --tenant acme'))
  suppress
    .command('list')
    .description('List them, and how much came of them that was not recorded.')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor suppress list --tenant acme'))
    .action(options =>
      readingDatabase(options, out, async ({ admin }) => {
        const { results, not_recorded } = await admin.suppressions.list(options.tenant!)
        const { events, records, last_at } = not_recorded
        const last = last_at === null ? '' : `, the last at ${last_at}`
        out.say(`Not recorded because of them: ${events} events and ${records} records${last}.`)
        out.json(results)
      }),
    )
  suppress
    .command('remove')
    .description('Record somebody again, from now on.')
    .argument('<id>', 'an id of the list, an e-mail address, or the hash of a name')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor suppress remove --tenant acme ada@example.com'))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.suppressions.remove({ tenant: options.tenant!, id })),
      ),
    )
}
