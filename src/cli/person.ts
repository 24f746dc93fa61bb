import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, Option } from '@commander-js/extra-typings'
import { examples } from './examples.ts'
import type { Output } from './output.ts'
import { dataOption, readingDatabase, tenantOption, withDatabase } from './session.ts'

const NOTES = `
A person is named by a profile id, an e-mail, a user id, a contact id or a visitor. Where that is more than one person,
user:…, contact:…, visitor:… or email:… says which.`

const WHO = 'a profile id, an e-mail, a user id, a contact id or a visitor'

export function addPerson(program: Command, out: Output): void {
  const person = program
    .command('person')
    .description('People: what they are known by and why; join them, part them, hand out their data.')
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor person show --tenant acme ada@example.com'))
  addShow(person, out)
  addMerge(person, out)
  addSplit(person, out)
  addExport(person, out)
}

function addShow(person: Command, out: Output): void {
  person
    .command('show')
    .description('Show what somebody is known by, since when and why.')
    .argument('<id>', WHO)
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor person show --tenant acme prof_17'))
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) =>
        out.json(await admin.people.show({ tenant: options.tenant!, id })),
      ),
    )
}

function addMerge(person: Command, out: Output): void {
  person
    .command('merge')
    .description('Make two people one.')
    .argument('<id>', 'who becomes part of the other')
    .argument('<into>', 'who keeps their profile id')
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', examples('kontor person merge --tenant acme user:ada ada@example.com'))
    .action((id, into, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.people.merge({ tenant: options.tenant!, id, into })),
      ),
    )
}

const SPLIT_NOTES = `
Undoes the one join that brought the name together with the person. Events, conversions and attribution follow, as they
would be without it. What names both together again (the next event, the contact's record) joins them again.`

function addSplit(person: Command, out: Output): void {
  person
    .command('split')
    .description('Part a name from a person.')
    .argument('<id>', WHO)
    .addOption(new Option('--name <name>', 'the name to part from them').makeOptionMandatory())
    .addOption(tenantOption())
    .addOption(dataOption())
    .addHelpText('after', SPLIT_NOTES)
    .addHelpText('after', examples('kontor person split --tenant acme ada@example.com --name visitor:v-81'))
    .action((id, options) =>
      withDatabase(options, out, async ({ admin }) =>
        out.json(await admin.people.split({ tenant: options.tenant!, id, name: options.name! })),
      ),
    )
}

function addExport(person: Command, out: Output): void {
  person
    .command('export')
    .description('Everything that is held of somebody, for a request of theirs.')
    .argument('<id>', WHO)
    .addOption(tenantOption())
    .addOption(
      new Option('--format <format>', 'one thing a line, or an array')
        .choices(['ndjson', 'json'])
        .default('ndjson'),
    )
    .option('--out <file>', 'write it there instead of to stdout')
    .addOption(dataOption())
    .addHelpText(
      'after',
      examples('kontor person export --tenant acme ada@example.com --format json --out ada.json'),
    )
    .action((id, options) =>
      readingDatabase(options, out, async ({ admin }) => {
        const { tenant, format } = options
        const text = await admin.people.export({ tenant: tenant!, id, format })
        if (options.out === undefined) for await (const part of text) out.print(part)
        else await pipeline(Readable.from(text), createWriteStream(options.out, { mode: 0o600 }))
      }),
    )
}
