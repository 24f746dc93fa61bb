import type { Command } from '@commander-js/extra-typings'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, printChange, tenantOption, withReadAdmin } from './session.ts'

export function addSuppress(program: Command, out: Output): void {
  const suppress = program
    .command('suppress')
    .description('Manage suppressions: people erased with --suppress, whose data is no longer recorded.')
    .addHelpText(
      'after',
      '\nKontor stores only hashes of the identifiers. To add a person, run kontor erase --suppress.',
    )
    .addHelpText('after', examples('kontor suppress list --tenant acme'))
  suppress
    .command('list')
    .description('List suppressions and the number of items that were not recorded.')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor suppress list --tenant acme'))
    .action(options =>
      withReadAdmin(options, out, async ({ admin }) => {
        const { results, not_recorded } = await admin.suppressions.list(options.tenant!)
        const { events, records, last_at } = not_recorded
        const last = last_at === null ? '' : `, last at ${last_at}`
        out.say(`Not recorded due to suppressions: ${events} events and ${records} records${last}.`)
        out.json(results)
      }),
    )
  suppress
    .command('remove')
    .description('Remove a suppression. Data of the person is recorded again from now on.')
    .argument('<id>', 'id of the suppression, e-mail address, or hash of an identifier')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor suppress remove --tenant acme ada@example.com'))
    .action((id, options) =>
      printChange(options, out, admin => admin.suppressions.remove({ tenant: options.tenant!, id })),
    )
}
