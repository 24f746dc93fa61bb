import { type Command, Option } from '@commander-js/extra-typings'
import { openInput } from '../../import/input.ts'
import { jsonDocuments } from '../../import/json-documents.ts'
import { PRESETS } from '../../import/presets/presets.ts'
import { stripeReading } from '../../import/stripe.ts'
import { examples } from '../examples.ts'
import type { Output } from '../output.ts'
import { dataOption, tenantOption, urlOption, withDatabase } from '../session.ts'
import { importFile } from './file.ts'
import { planOf } from './plan.ts'
import { openEventTarget, openRecordTarget, openStripeTarget } from './targets.ts'

const NOTES = `
What the file says goes in through the public APIs of the running server; where none runs, one is started for as long as
it takes. The same file twice adds nothing, and the same command goes on where it was cut off.

Prints {"read", "accepted", "duplicates", "rejected", "seconds"}. The exit code is 1 where a row was rejected.`

const TABLES = { products: 'product', contacts: 'contact', orders: 'order' } as const
const FILE = 'the file; - reads standard input'

export function addImport(program: Command, out: Output): void {
  const group = program
    .command('import')
    .description('Bring in what happened before: records, events, a Stripe account.')
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor import contacts customers_export.csv --tenant acme --preset shopify-customers',
        'kontor import events history.ndjson --tenant acme --errors rejected.ndjson',
      ),
    )
  for (const table of ['products', 'contacts', 'orders', 'events'] as const)
    addTable(group as Command, table, out)
  addStripe(group as Command, out)
}

function addTable(group: Command, table: keyof typeof TABLES | 'events', out: Output): void {
  const presets = Object.keys(PRESETS).filter(
    name => table !== 'events' && PRESETS[name]!.entityType === TABLES[table],
  )
  group
    .command(table)
    .description(`Import ${table} from CSV or NDJSON.`)
    .argument('<file>', FILE)
    .addOption(tenantOption())
    .addOption(new Option('--format <format>', 'default: by the name of the file').choices(['csv', 'ndjson']))
    .addOption(
      new Option(
        '--preset <preset>',
        `the export of a shop${presets.length === 0 ? ': none has events' : ''}`,
      ).choices(presets),
    )
    .option('--map <file>', 'which column becomes which field, as JSON')
    .option('--dry-run', 'read and check the file, send nothing')
    .option(
      '--errors <file>',
      'where rejected rows go, with line, column and reason (NDJSON; CSV if it ends in .csv)',
    )
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        `kontor import ${table} ${table}.csv --tenant acme --dry-run`,
        ...presets.map(
          preset => `kontor import ${table} ${table}_export.csv --tenant acme --preset ${preset}`,
        ),
      ),
    )
    .action((file, options) =>
      withDatabase(options, out, async session => {
        const plan = await planOf(file, table, options)
        const openTarget = table === 'events' ? openEventTarget : openRecordTarget(TABLES[table])
        await importFile(session, { ...options, tenant: options.tenant!, plan, openTarget }, out)
      }),
    )
}

function addStripe(group: Command, out: Output): void {
  group
    .command('stripe')
    .description(
      'Import customers, subscriptions, invoices, refunds, credit notes and events of a Stripe account.',
    )
    .argument('<file>', FILE)
    .addOption(tenantOption())
    .option('--dry-run', 'read and check the file, send nothing')
    .option('--errors <file>', 'where rejected objects go, with line and reason')
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText(
      'after',
      `\nThe file holds what Stripe's list endpoints answer: pages, or objects one after the other.${NOTES}`,
    )
    .addHelpText('after', examples('kontor import stripe subscriptions.json --tenant acme'))
    .action((file, options) =>
      withDatabase(options, out, async session => {
        const input = await openInput(file, new Date())
        const rows = jsonDocuments(input.chunks())
        const plan = { input, rows, reading: stripeReading(input), identity: 'stripe' }
        await importFile(
          session,
          { ...options, tenant: options.tenant!, plan, openTarget: openStripeTarget },
          out,
        )
      }),
    )
}
