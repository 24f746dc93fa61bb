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
Sends the rows through the public APIs of the running server. If no server runs, the command starts one until it is done.
Importing the same file twice adds nothing. After an interruption, run the same command again to continue.

Prints {"read", "accepted", "duplicates", "rejected", "seconds"}. Exit code 1 if a row was rejected.`

const TABLES = { products: 'product', contacts: 'contact', orders: 'order' } as const
const FILE = 'file to import; - reads standard input'

export function addImport(program: Command, out: Output): void {
  const group = program
    .command('import')
    .description('Import historical data: records, events, or a Stripe account.')
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
    .addOption(
      new Option('--format <format>', 'file format (default: by file name)').choices(['csv', 'ndjson']),
    )
    .addOption(
      new Option(
        '--preset <preset>',
        `export format of a shop${presets.length === 0 ? ' (none for events)' : ''}`,
      ).choices(presets),
    )
    .option('--map <file>', 'JSON file that maps columns to fields')
    .option('--dry-run', 'only read and check the file')
    .option(
      '--errors <file>',
      'file for rejected rows with line, column and reason (NDJSON, or CSV if it ends in .csv)',
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
    .option('--dry-run', 'only read and check the file')
    .option('--errors <file>', 'file for rejected objects with line and reason')
    .addOption(urlOption())
    .addOption(dataOption())
    .addHelpText(
      'after',
      `\nThe file contains responses of Stripe's list endpoints: pages, or a sequence of objects.${NOTES}`,
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
