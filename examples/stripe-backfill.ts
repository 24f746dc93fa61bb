// Everything that Stripe knows, one object a line:
//   STRIPE_KEY=rk_live_… node examples/stripe-backfill.ts > stripe.ndjson
//   kontor import stripe stripe.ndjson --tenant default
// A restricted key that may read is enough. Again next month? The same objects add nothing, changed ones are newer.
import Stripe from 'stripe'

// Elsewhere than at Stripe itself: for tests, such as stripe-mock.
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
    // Wait where the reader is slower than Stripe: memory stays flat for any number of objects.
    if (!process.stdout.write(`${JSON.stringify(object)}\n`))
      await new Promise(resolve => process.stdout.once('drain', resolve))
    count++
  }
}
console.error(`${count} objects`)
