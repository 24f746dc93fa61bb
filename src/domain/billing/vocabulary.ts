/** The words of billing systems, brought to ours. */

import { lowerText } from './fields.ts'
import type {
  Discount,
  Instant,
  InvoiceStatus,
  PaymentFailure,
  SubscriptionStatus,
  SubscriptionVersion,
} from './types.ts'

const SUBSCRIPTION_STATUSES = new Map<string, SubscriptionStatus>([
  ['active', 'active'],
  ['activated', 'active'],
  ['reactivated', 'active'],
  ['started', 'active'],
  ['resumed', 'active'],
  ['renewed', 'active'],
  ['live', 'active'],
  ['running', 'active'],
  ['non_renewing', 'active'],
  ['past_due', 'past_due'],
  ['pastdue', 'past_due'],
  ['overdue', 'past_due'],
  ['grace_period', 'past_due'],
  ['in_grace_period', 'past_due'],
  ['trialing', 'trialing'],
  ['trialling', 'trialing'],
  ['trial', 'trialing'],
  ['in_trial', 'trialing'],
  ['on_trial', 'trialing'],
  ['trial_started', 'trialing'],
  ['unpaid', 'unpaid'],
  ['incomplete', 'incomplete'],
  ['pending', 'incomplete'],
  ['incomplete_expired', 'incomplete_expired'],
  ['canceled', 'canceled'],
  ['cancelled', 'canceled'],
  ['ended', 'canceled'],
  ['expired', 'canceled'],
  ['terminated', 'canceled'],
  ['inactive', 'canceled'],
  ['paused', 'paused'],
  ['on_hold', 'paused'],
  ['suspended', 'paused'],
])

const INVOICE_STATUSES = new Map<string, InvoiceStatus>([
  ['draft', 'draft'],
  ['open', 'open'],
  ['paid', 'paid'],
  ['uncollectible', 'uncollectible'],
  ['void', 'void'],
  ['voided', 'void'],
])

/** What an invoice event's name says where the invoice itself is silent. */
const INVOICE_EVENTS = new Map<string, InvoiceStatus>([
  ...INVOICE_STATUSES,
  ['finalized', 'open'],
  ['sent', 'open'],
  ['payment_failed', 'open'],
  ['payment_action_required', 'open'],
  ['overdue', 'open'],
  ['marked_uncollectible', 'uncollectible'],
  ['payment_succeeded', 'paid'],
])

const NEEDS_THE_CUSTOMER = /authentication|requires_action|action_required/

function words(value: unknown): string {
  return lowerText(value)?.replace(/[-\s]/g, '_') ?? ''
}

function lastWord(eventType: string): string {
  return words(eventType.slice(eventType.lastIndexOf('.') + 1))
}

/** Where the subscription is silent, `subscription.canceled` and the like speak for it. */
export function subscriptionStatus(eventType: string, value: unknown): SubscriptionStatus {
  return SUBSCRIPTION_STATUSES.get(words(value) || lastWord(eventType)) ?? 'unknown'
}

export function changeOf(eventType: string): SubscriptionVersion['change'] {
  if (eventType.endsWith('.deleted')) return 'deleted'
  return eventType.endsWith('.created') ? 'created' : 'updated'
}

/** Without a word on its duration a discount runs until its end, or for ever when it has none. */
export function durationOf(value: unknown, endsAt: Instant | null): Discount['duration'] {
  if (value === undefined || value === null) return endsAt === null ? 'forever' : 'repeating'
  const duration = words(value)
  return duration === 'forever' || duration === 'once' || duration === 'repeating' ? duration : 'unknown'
}

/** A deleted invoice is owed no more than a void one. */
export function invoiceStatus(eventType: string, value: unknown): InvoiceStatus {
  if (eventType.endsWith('.deleted')) return 'void'
  const given = words(value)
  return (given ? INVOICE_STATUSES.get(given) : INVOICE_EVENTS.get(lastWord(eventType))) ?? 'unknown'
}

export function failureOf(
  eventType: string,
  code: string | null,
  message: string | null,
): PaymentFailure | null {
  if (eventType.endsWith('.payment_action_required') || NEEDS_THE_CUSTOMER.test(code ?? '')) {
    return { kind: 'action_required', code, message }
  }
  const failed = eventType.endsWith('.payment_failed') || code !== null || message !== null
  return failed ? { kind: 'payment_failed', code, message } : null
}

export function refundCounts(eventType: string, status: unknown): boolean {
  const undone = /^(failed|cancell?ed|deleted)$/
  return !undone.test(lastWord(eventType)) && !undone.test(words(status))
}
