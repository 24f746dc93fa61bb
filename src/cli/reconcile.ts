import type { Command } from '@commander-js/extra-typings'
import { collectTerms, type Reconciliation, reconcileStripe } from '../admin/reconcile.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import type { Input } from '../import/files.ts'
import { FileError, isRejection, type Rejection, type Row } from '../import/rows.ts'
import { stripeFileRows, stripeReading } from '../import/stripe.ts'
import { RECONCILED_LISTS, stripeApiRows } from '../import/stripe-api.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { dataOption, type Session, tenantOption, withReadDatabase } from './session.ts'
import {
  chooseNamespace,
  keyFileOption,
  keyOption,
  namespaceOf,
  namespaceOption,
  openStripeFile,
  readStripeKey,
  sourceOption,
} from './stripe.ts'

const NOTES = `
Compares:
  subscriptions  status, customer, currency, items, MRR after discounts, end of discounts, pause, scheduled cancellation
  invoices       status, customer, currency, total, amount paid
  refunds        status, currency, amount; a pending refund counts as a refund
An object that exists on only one side is a difference, so a file must contain all subscriptions, invoices and refunds. Test mode
objects are ignored.

Prints {"compared": {"subscriptions", "invoices", "refunds"}, "differences": [{"kind", "id", "field", "here", "there"}]}. "here" is
the ledger, "there" is Stripe. At most 10,000 differences are listed; "differences_total" then counts all of them.
Exit code 0 if everything was compared and agrees, 1 if there are differences or nothing was compared.`

export function addReconcile(program: Command, out: Output): void {
  const group = program
    .command('reconcile')
    .description('Compare the subscriptions, invoices and refunds in Kontor with those in a billing system.')
    .addHelpText('after', examples('kontor reconcile stripe --key-file stripe.key --tenant acme'))
  group
    .command('stripe')
    .description('Compare subscriptions, invoices and refunds with a Stripe account.')
    .argument(
      '[file]',
      'responses of the list endpoints, as for `kontor import stripe`; use - to read from standard input',
    )
    .addOption(tenantOption())
    .addOption(keyOption())
    .addOption(keyFileOption())
    .addOption(sourceOption())
    .addOption(namespaceOption())
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor reconcile stripe --key-file stripe.key --tenant acme',
        'kontor reconcile stripe stripe.ndjson --tenant acme',
      ),
    )
    .action(async (file, options) => {
      const key = await readStripeKey(file, options)
      await withReadDatabase(options, out, async session => {
        const { admin, pool } = session
        const tenant = await admin.tenants.show(options.tenant!)
        const sources = await admin.sources.list(tenant.id)
        const namespace = chooseNamespace(sources, options)
        const otherSources = sources.filter(source => namespaceOf(source) !== namespace).map(({ id }) => id)
        const account = { tenantId: parseTenantId(tenant.id)!, namespace, otherSources }
        if (key !== null)
          return printResult(
            await reconcileStripe(pool, account, { events: readEvents(apiRows(session, key, out)), terms: new Map() }),
            out,
          )
        const { input, close } = await openStripeFile(file!, 'reconcile stripe')
        try {
          const terms = await collectTerms(readEvents(fileRows(input)), namespace)
          printResult(await reconcileStripe(pool, account, { events: readEvents(fileRows(input)), terms }), out)
        } finally {
          await close()
        }
      })
    })
}

function apiRows({ config }: Session, key: string, out: Output): AsyncIterable<Row[]> {
  const onPause = (seconds: number) =>
    out.say(`The Stripe API is unavailable, or its rate limit is exceeded. Retrying in ${seconds} s.`)
  return stripeApiRows(
    { url: config.stripeApiUrl, key, signal: new AbortController().signal, onPause },
    RECONCILED_LISTS,
  )
}

const fileRows = (input: Input) => stripeFileRows(input.chunks())

/** Converts objects to events, and skips objects that the ledger does not use. */
async function* readEvents(pages: AsyncIterable<(Row | Rejection)[]>): AsyncGenerator<unknown> {
  const reading = stripeReading({ asOf: Math.floor(Date.now() / 1000) })
  for await (const rows of pages)
    for (const row of rows) {
      if (isRejection(row)) throw new FileError(`Line ${row.line}: ${row.column ?? ''} ${row.reason}`)
      // events describe the past, objects the current state
      if (row.cells.object === 'event') continue
      for (const read of reading.push(row)) if (!isRejection(read)) yield JSON.parse(read.text)
    }
}

function printResult({ ignoredTestObjects, ...result }: Reconciliation, out: Output): void {
  out.json(result)
  const { compared, differences } = result
  if (differences.length > 0) out.exitCode = 1
  if (compared.subscriptions + compared.invoices + compared.refunds > 0) return
  out.exitCode = 1
  const ignored =
    ignoredTestObjects > 0 ? ` Ignored test mode objects: ${ignoredTestObjects.toLocaleString('en')}.` : ''
  out.say(
    differences.length > 0
      ? `Nothing was compared: no object exists on both sides. Check that the key or file belongs to the account of this source.${ignored}`
      : `Nothing was compared: there is no subscription, invoice or refund on either side. Check the tenant, the source and the key.${ignored}`,
  )
}
