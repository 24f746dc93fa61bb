// Responses of Stripe's list endpoints at the end of a history, for a backfill and for reconciliation.
import type { Business } from '../business.ts'
import type { Fact } from '../model.ts'
import { asFields, learn, nothingKnown, renderer, type Version } from '../stripe.ts'
import { lineObject } from './invoices.ts'
import { couponObject, INLINE_LIMIT, itemObject, subscriptionObject } from './objects.ts'
import { type Fields, oldCreditNote } from './old.ts'
import { creditNoteObject, disputeObject, invoicePaymentObject, refundObject } from './payments.ts'

export type StripeLists = Record<
  | 'customers'
  | 'coupons'
  | 'promotion_codes'
  | 'subscriptions'
  | 'subscription_items'
  | 'invoices'
  | 'invoice_lines'
  | 'invoice_payments'
  | 'charges'
  | 'refunds'
  | 'credit_notes'
  | 'disputes',
  Fields[]
>

export type Page = { object: 'list'; url: string; has_more: boolean; data: Fields[] }

/**
 * The final state of all objects, the newest first, with subscriptions of every status. `expand` replaces the ids of discounts
 * and coupons by objects. Events come from `stripeEvents`. Items and lines that do not fit into their objects have separate lists.
 */
export function stripeLists(history: Business, version: Version, { expand = false } = {}): StripeLists {
  const known = nothingKnown()
  const last = new Map<string, Fact>()
  for (const fact of history.facts) {
    learn(known, fact)
    last.set(keyOf(fact), fact)
  }
  const render = renderer(known, version)
  const lists: StripeLists = {
    customers: [],
    coupons: [],
    promotion_codes: [],
    subscriptions: [],
    subscription_items: [],
    invoices: [],
    invoice_lines: [],
    invoice_payments: [],
    charges: [],
    refunds: [],
    credit_notes: [],
    disputes: [],
  }
  const add = (name: keyof StripeLists, ...objects: object[]) => lists[name].push(...objects.map(asFields))
  for (const fact of last.values()) {
    if (fact.kind === 'coupon') {
      add('coupons', couponObject(fact.after))
      if (fact.after.promotionCode) add('promotion_codes', render.promotionCode(fact.after))
    }
    if (fact.kind === 'customer') add('customers', render.customer(fact.after))
    if (fact.kind === 'subscription') {
      const { after } = fact
      const isExpanded = expand && version === 'new'
      add('subscriptions', isExpanded ? subscriptionObject(after, { expand }) : render.subscription(after))
      if (after.items.length > INLINE_LIMIT)
        add('subscription_items', ...after.items.map(item => itemObject(item, after)))
    }
    if (fact.kind === 'invoice') {
      add('invoices', render.invoice(fact.after))
      if (fact.after.lines.length > INLINE_LIMIT)
        add('invoice_lines', ...fact.after.lines.map(line => lineObject(line, fact.after)))
    }
    if (fact.kind === 'payment') {
      const { payment } = fact
      if (payment.outcome !== 'requires_action') add('charges', render.charge(payment))
    }
    if (fact.kind === 'refund') add('refunds', refundObject(fact.after))
    if (fact.kind === 'credit_note')
      add('credit_notes', version === 'old' ? oldCreditNote(fact.after) : creditNoteObject(fact.after))
    if (fact.kind === 'dispute') add('disputes', disputeObject(fact.after))
  }
  if (version === 'new') add('invoice_payments', ...invoicePayments(history.facts))
  for (const objects of Object.values(lists)) objects.reverse()
  return lists
}

/** One for all attempts to collect one amount, in the state after the last attempt. */
function invoicePayments(facts: Fact[]): object[] {
  const last = new Map<string, object>()
  for (const fact of facts)
    if (fact.kind === 'payment' && fact.payment.invoicePayment)
      last.set(fact.payment.invoicePayment, invoicePaymentObject(fact.payment))
  return [...last.values()]
}

function keyOf(fact: Fact): string {
  if (fact.kind === 'payment') return `payment ${fact.payment.id}`
  if (fact.kind === 'discount') return `discount ${fact.discount.id}`
  return `${fact.kind} ${fact.after.id}`
}

/** Splits a list into pages. */
export function pagesOf(name: string, objects: Fields[], size = 100): Page[] {
  const pages: Page[] = []
  for (let i = 0; i === 0 || i < objects.length; i += size)
    pages.push({
      object: 'list',
      url: `/v1/${name}`,
      has_more: i + size < objects.length,
      data: objects.slice(i, i + size),
    })
  return pages
}

/** One object per line, the input of `kontor import stripe`. */
export function ndjsonOf(lists: Partial<StripeLists>): string {
  return Object.values(lists)
    .flat()
    .map(object => `${JSON.stringify(object)}\n`)
    .join('')
}
