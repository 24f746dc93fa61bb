import { type Command, Option } from '@commander-js/extra-typings'
import { reconcileStripe } from '../admin/reconcile.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import { openInput } from '../import/files.ts'
import { isRejection, jsonDocuments, type Rejection, type Row } from '../import/rows.ts'
import { stripeReading, stripeRows } from '../import/stripe.ts'
import { UsageError } from './errors.ts'
import { examples, readSecretOptions } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, requireData, withReadDatabase } from './session.ts'

const NOTES = `
Compares subscriptions by status, currency and monthly amount before discounts; invoices by status, currency, total and amount
paid; refunds by amount. An object that exists on only one side counts as a difference. Test mode objects are ignored.
Prints {"compared", "differences", "difference"}. "difference" is the number of differences; the exit code is 1 unless it is 0.`

export function addReconcile(program: Command, out: Output): void {
  const group = program
    .command('reconcile')
    .description('Compare the ledger with a billing system, object by object.')
    .addHelpText('after', examples('kontor reconcile stripe stripe.ndjson --tenant acme'))
  group
    .command('stripe')
    .description('Compare subscriptions, invoices and refunds with a Stripe account.')
    .argument('[file]', 'responses of the list endpoints, as for `kontor import stripe`; - reads standard input')
    .addOption(new Option('--tenant <tenant>', 'tenant id or name').makeOptionMandatory())
    .option('--key <key>', 'restricted read key of the account, to query the Stripe API; - reads standard input')
    .option('--key-file <file>', 'file that contains the key')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor reconcile stripe stripe.ndjson --tenant acme',
        'kontor reconcile stripe --key-file stripe.key --tenant acme',
      ),
    )
    .action(async (file, options) => {
      const { key } = await readSecretOptions({ key: { value: options.key, file: options.keyFile } })
      if ((file === undefined) === (key === undefined))
        throw new UsageError('Give either a file or a key of the account (--key, --key-file).')
      await requireData(options)
      await withReadDatabase(options, out, async ({ admin, pool, config }) => {
        const tenant = await admin.tenants.show(options.tenant!)
        const input = await openInput(file ?? '-', new Date())
        const rows = key === undefined ? jsonDocuments(input.chunks()) : stripeRows({ url: config.stripeApiUrl, key })
        const events = readEvents(rows, input.time, out)
        const result = await reconcileStripe(pool, parseTenantId(tenant.id)!, events)
        out.json(result)
        if (result.difference > 0) out.exitCode = 1
      })
    })
}

/** Converts objects to events. Skips objects that the ledger does not use, and reports objects that cannot be read. */
async function* readEvents(rows: AsyncIterable<(Row | Rejection)[]>, time: Date, out: Output): AsyncGenerator<unknown> {
  const reading = stripeReading({ time })
  for await (const page of rows) {
    for (const row of page) {
      if (isRejection(row)) {
        out.say(`Line ${row.line}: ${row.reason}`)
        out.exitCode = 1
        continue
      }
      // events describe the past, objects the current state
      if (row.cells.object === 'event') continue
      for (const read of reading.push(row)) if (!isRejection(read)) yield JSON.parse(read.text)
    }
  }
}
