// Exports a Stripe account, one object per line:
//   AS_OF=$(date -u +%Y-%m-%dT%H:%M:%SZ)
//   STRIPE_KEY=rk_live_… node examples/stripe-backfill.ts > stripe.ndjson
//   kontor import stripe stripe.ndjson --tenant default --as-of $AS_OF
// `kontor import stripe --key-file FILE` does the same without a file. A restricted key with read access is sufficient.
import Stripe from 'stripe'

// Another API host, for tests.
const base = process.env.STRIPE_API_BASE ? new URL(process.env.STRIPE_API_BASE) : null
const stripe = new Stripe(process.env.STRIPE_KEY ?? '', {
  maxNetworkRetries: 5,
  ...(base && { host: base.hostname, port: Number(base.port), protocol: 'http' as const }),
})

const page = { limit: 100 }
const lists = [
  () => stripe.coupons.list(page),
  () => stripe.customers.list(page),
  () => stripe.subscriptions.list({ ...page, status: 'all', expand: ['data.discounts'] }),
  () => stripe.invoices.list(page),
  () => stripe.charges.list(page),
  () => stripe.refunds.list(page),
  () => stripe.creditNotes.list(page),
  () => stripe.disputes.list(page),
]

let count = 0
for (const list of lists) {
  for await (const object of list()) {
    // Waits for a slow reader, so that memory use does not grow.
    if (!process.stdout.write(`${JSON.stringify(object)}\n`))
      await new Promise(resolve => process.stdout.once('drain', resolve))
    count++
  }
}
console.error(`${count} objects`)
