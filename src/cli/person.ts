import { type Command, Option } from '@commander-js/extra-typings'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { outputPath, writeOutputFile } from './output-file.ts'
import { dataOption, printChange, printRead, tenantOption, withReadAdmin } from './session.ts'

const NOTES = `
Identify a person by profile id (prof_…), e-mail address, user id, contact id or visitor id. If an id matches several people, add its
kind: user:…, contact:…, visitor:… or email:…`

const WHO = 'profile id (prof_…), e-mail address, user id, contact id or visitor id'

export function addPerson(program: Command, out: Output): void {
  const person = program
    .command('person')
    .description('Show, merge, split, verify or export people.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor person show --tenant acme ada@example.com'))
  person
    .command('show')
    .description('Show the identifiers of a person and how they were linked.')
    .argument('<id>', WHO)
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor person show --tenant acme prof_17'))
    .action((id, options) => printRead(options, out, admin => admin.people.show({ tenant: options.tenant!, id })))
  person
    .command('merge')
    .description('Merge two people.')
    .argument(
      '<id>',
      'person to merge into the other: profile id (prof_…), e-mail address, user id, contact id or visitor id',
    )
    .argument('<into>', 'person whose profile id is kept')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor person merge --tenant acme user:ada ada@example.com'))
    .action((id, into, options) =>
      printChange(options, out, admin => admin.people.merge({ tenant: options.tenant!, id, into })),
    )
  person
    .command('split')
    .description('Unlink an identifier from a person.')
    .argument('<id>', WHO)
    .addOption(
      new Option(
        '--name <name>',
        'identifier to unlink, as kind:value, for example visitor:v-81',
      ).makeOptionMandatory(),
    )
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', SPLIT_NOTES)
    .addHelpText('after', examples('kontor person split --tenant acme ada@example.com --name visitor:v-81'))
    .action((id, options) =>
      printChange(options, out, admin => admin.people.split({ tenant: options.tenant!, id, name: options.name! })),
    )
  person
    .command('verify')
    .description('Confirm that an identifier belongs to a person.')
    .argument('<id>', WHO)
    .addOption(
      new Option('--name <name>', 'identifier to verify, as kind:value, for example user:ada').makeOptionMandatory(),
    )
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', VERIFY_NOTES)
    .addHelpText('after', examples('kontor person verify --tenant acme ada@example.com --name user:ada'))
    .action((id, options) =>
      printChange(options, out, admin => admin.people.verify({ tenant: options.tenant!, id, name: options.name! })),
    )
  person
    .command('export')
    .description('Export all data about a person, for example for an access request.')
    .argument('<id>', WHO)
    .addOption(tenantOption())
    .addOption(
      new Option('--format <format>', 'one JSON object per line, or one JSON array')
        .choices(['ndjson', 'json'])
        .default('ndjson'),
    )
    .option(
      '--confirm-profile',
      'also export identifiers that only a browser linked to the person and that may belong to another person',
    )
    .option('--out <file>', 'file to write (default: stdout)')
    .addOption(dataOption())
    .addHelpText('after', '\n`kontor export person` prints the same as this command with --format json.')
    .addHelpText('after', examples('kontor person export --tenant acme ada@example.com --format json --out ada.json'))
    .action(async (id, options) => {
      const path = options.out === undefined ? null : await outputPath('--out', options.out)
      await withReadAdmin(options, out, async ({ admin }) => {
        const { tenant, format } = options
        const text = await admin.people.export({ tenant: tenant!, id, format, confirm_profile: options.confirmProfile })
        if (path === null) for await (const part of text) out.print(part)
        else await writeOutputFile(path, text)
      })
    })
}

const VERIFY_NOTES = `
A link is verified if a record, a source or a server key reported it, or if you created it with this command or \`kontor person merge\`.
A link that only browsers reported is unverified.
Some identifiers were reported by a record, a source or a server key, but linked to this person only by a browser. They may belong to
another person, so exports and erasures leave them out. To include them, add --confirm-profile to \`kontor person export\` or
\`kontor erase\`.`

const SPLIT_NOTES = `
Removes the link between the identifier and the person. Events, conversions and attribution are updated accordingly.
The identifier stays unlinked until you merge it again.`
