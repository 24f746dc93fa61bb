import type { Command } from '@commander-js/extra-typings'
import { UsageError } from './errors.ts'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, withDatabase } from './session.ts'

const NOTES = `
Prints a receipt with what was removed; it names nobody, and is kept. Everyone who shares the profile is erased.
What was accepted before and is not processed yet is awaited for 10 seconds; run it again where the receipt says
"not_yet_processed". A server goes on with what was interrupted. More than 20 names need --yes. Erase the person in the shop and the CRM first: what they send again is stored again,
unless --suppress is given: then events of the person are dropped, contacts left out, and sales kept without a name (kontor suppress list).`

export function addErase(program: Command, out: Output): void {
  program
    .command('erase')
    .description('Erase a person: events, identities and contact go, sales stay without a name.')
    .requiredOption('--tenant <tenant>', 'the id or the name of the tenant')
    .option('--email <address>', 'an e-mail address of the person')
    .option('--profile <id>', 'or the profile: profile_id of an event or a conversion')
    .option('--dry-run', 'only show what it would take, and the names of the person')
    .option(
      '--suppress',
      'record nothing of the person that comes later either; only hashes of their names are kept',
    )
    .option('--yes', 'erase somebody with more than 20 names as well')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor erase --tenant acme --email ada@example.com --dry-run',
        'kontor erase --tenant acme --email ada@example.com',
        'kontor erase --tenant acme --profile prof_17 > receipt.json',
        'kontor erase --tenant acme --email ada@example.com --suppress',
      ),
    )
    .action(async options => {
      const { tenant, email, profile, dryRun, yes, suppress } = options
      if ((email === undefined) === (profile === undefined))
        throw new UsageError('Name the person with --email or with --profile: one of the two.')
      const using = dryRun ? readingDatabase : withDatabase
      await using(options, out, async ({ admin: { erasures } }) => {
        const query = { tenant, email, profile, confirm: yes, suppress }
        out.json(dryRun ? await erasures.preview(query) : await erasures.erase(query))
      })
    })
}
