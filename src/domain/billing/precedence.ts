/**
 * The order of what sources said about one thing: by their own time, and where that is the same by content alone,
 * so that it never depends on the order of arrival. Stripe's times have whole seconds: ties are everyday.
 */

import { contentText } from './content.ts'
import type {
  InvoiceStatus,
  InvoiceVersion,
  Refund,
  SubscriptionStatus,
  SubscriptionVersion,
} from './types.ts'

const CHANGES: SubscriptionVersion['change'][] = ['created', 'updated', 'deleted']

/** Within one second a subscription moves on, it does not go back. */
const PROGRESS: SubscriptionStatus[] = [
  'unknown',
  'incomplete',
  'trialing',
  'active',
  'past_due',
  'unpaid',
  'paused',
  'incomplete_expired',
  'canceled',
]

const INVOICE_PROGRESS: InvoiceStatus[] = ['unknown', 'draft', 'open', 'uncollectible', 'paid', 'void']

export function compareSubscriptions(a: SubscriptionVersion, b: SubscriptionVersion): number {
  return (
    a.sourceAt - b.sourceAt ||
    CHANGES.indexOf(a.change) - CHANGES.indexOf(b.change) ||
    PROGRESS.indexOf(a.status) - PROGRESS.indexOf(b.status) ||
    (a.currentPeriodEnd ?? 0) - (b.currentPeriodEnd ?? 0) ||
    compareContent(a, b)
  )
}

export function compareInvoices(a: InvoiceVersion, b: InvoiceVersion): number {
  return (
    a.sourceAt - b.sourceAt ||
    INVOICE_PROGRESS.indexOf(a.status) - INVOICE_PROGRESS.indexOf(b.status) ||
    a.attemptCount - b.attemptCount ||
    (a.amountPaid ?? 0) - (b.amountPaid ?? 0) ||
    failureRank(a) - failureRank(b) ||
    compareContent(a, b)
  )
}

/** Stripe sends "failed" and "action required" together; the second says more. */
function failureRank(invoice: InvoiceVersion): number {
  return invoice.failure === null ? 0 : invoice.failure.kind === 'payment_failed' ? 1 : 2
}

export function compareRefunds(a: Refund, b: Refund): number {
  return a.sourceAt - b.sourceAt || Number(b.counts) - Number(a.counts) || compareContent(a, b)
}

function compareContent(a: object, b: object): number {
  const left = contentText(a)
  const right = contentText(b)
  return left < right ? -1 : left > right ? 1 : 0
}
