import type { Command } from '@commander-js/extra-typings'
import { UsageError } from './errors.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, withAdmin, withReadAdmin } from './session.ts'

const NOTES = `
Prints a receipt with the number of deleted items. Kontor keeps the receipt; it contains no personal data.
Some identifiers were reported by a record, a source or a server key (see \`kontor key create\`), but linked to the person only by a
browser. They may belong to another person, so Kontor does not erase them. The receipt lists their kinds in "not_covered"; --dry-run
lists the identifiers. To erase them too, add --confirm-profile.
The command waits up to 10 seconds until all entries that were accepted earlier are processed. If "not_yet_processed" in the receipt
is not 0, run the command again. A running server completes an interrupted erasure.
Erase the person in the shop and the CRM first, because data that they send again is stored again. With --suppress,
Kontor drops later events and contacts of the person and stores sales without personal data (see kontor suppress list).`

export function addErase(program: Command, out: Output): void {
  program
    .command('erase')
    .description(
      'Erase a person: delete their events, identifiers and contact. Sales are kept, but no longer refer to the person.',
    )
    .requiredOption('--tenant <tenant>', 'tenant id or name')
    .option('--email <address>', 'e-mail address of the person')
    .option('--profile <id>', 'profile id of the person (prof_…). To select a server profile, set KONTOR_PROFILE')
    .option('--dry-run', 'only show what would be deleted, and the identifiers of the person')
    .option(
      '--suppress',
      'do not record data of the person in the future; Kontor stores only hashes of the identifiers',
    )
    .option('--yes', 'allow erasing a person with more than 20 identifiers')
    .option(
      '--confirm-profile',
      'also erase identifiers that only a browser linked to the person and that may belong to another person',
    )
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
      const { tenant, email, profile, dryRun, yes, suppress, confirmProfile } = options
      if ((email === undefined) === (profile === undefined))
        throw new UsageError('Specify either --email or --profile.')
      const using = dryRun ? withReadAdmin : withAdmin
      // Its --profile is the person. A profile of `kontor login` is chosen with KONTOR_PROFILE.
      await using({ data: options.data }, out, async ({ admin: { erasures } }) => {
        const query = { tenant, email, profile, confirm: yes, suppress, confirm_profile: confirmProfile }
        out.json(dryRun ? await erasures.preview(query) : await erasures.erase(query))
      })
    })
}
