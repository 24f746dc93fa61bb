// The history as Stripe objects: webhook events of an old and of the newest API version, and lists of objects.
import { isDeepStrictEqual } from 'node:util'
import type { Business } from './business.ts'
import type { Customer, Fact, FactOf, Invoice, Payment, Subscription } from './model.ts'
import { invoiceObject } from './stripe/invoices.ts'
import {
  couponObject,
  customerObject,
  discountObject,
  promotionCodeObject,
  subscriptionObject,
} from './stripe/objects.ts'
import {
  type Fields,
  oldCharge,
  oldCreditNote,
  oldCustomer,
  oldDiscount,
  oldIntent,
  oldInvoice,
  oldPromotionCode,
  oldSubscription,
} from './stripe/old.ts'
import {
  type ChargeState,
  chargeObject,
  creditNoteObject,
  disputeObject,
  intentObject,
  invoicePaymentObject,
  refundObject,
} from './stripe/payments.ts'

export type Version = 'old' | 'new'

export const API_VERSIONS: Record<Version, string> = { old: '2024-06-20', new: '2026-10-28.endive' }

export type StripeEvent = {
  id: string
  object: 'event'
  api_version: string
  created: number
  data: { object: Fields; previous_attributes?: Fields }
  livemode: boolean
  pending_webhooks: number
  request: { id: string | null; idempotency_key: string | null }
  type: string
}

/** Known state at a fact, for objects that contain more than the fact. */
export type Known = {
  customers: Map<string, Customer>
  subscriptions: Map<string, Subscription>
  /** The last attempt to collect an invoice. */
  attempts: Map<string, Payment>
  charges: Map<string, ChargeState>
}

/** In the order in which Stripe would send them. An event has the same id in every version. */
export function stripeEvents({ facts }: Business, version: Version): StripeEvent[] {
  const known = nothingKnown()
  const events: StripeEvent[] = []
  for (const fact of facts) {
    const chargeBefore = { ...chargeOf(known, fact) }
    learn(known, fact)
    for (const { type, object: rendered, before } of renderEvents(fact, known, version, chargeBefore)) {
      const object = asFields(rendered)
      const isUpdate = before !== undefined
      const previous = isUpdate ? previousOf(before, object) : {}
      events.push({
        id: `evt_${fact.order}_${type.replaceAll('.', '_')}`,
        object: 'event',
        api_version: API_VERSIONS[version],
        created: fact.at,
        data: {
          object,
          ...(isUpdate && Object.keys(previous).length > 0 && { previous_attributes: previous }),
        },
        livemode: livemodeOf(fact),
        pending_webhooks: 1,
        request: { id: fact.order % 2 ? `req_${fact.order}` : null, idempotency_key: null },
        type,
      })
    }
  }
  return events
}

export function nothingKnown(): Known {
  return { customers: new Map(), subscriptions: new Map(), attempts: new Map(), charges: new Map() }
}

export function learn(known: Known, fact: Fact): void {
  if (fact.kind === 'customer') known.customers.set(fact.after.id, fact.after)
  if (fact.kind === 'subscription') known.subscriptions.set(fact.after.id, fact.after)
  if (fact.kind === 'payment') {
    known.charges.set(fact.payment.id, { refunded: 0, disputed: false })
    if (fact.payment.invoice) known.attempts.set(fact.payment.invoice, fact.payment)
  }
  if (fact.kind === 'refund')
    known.charges.set(fact.after.payment.id, {
      ...known.charges.get(fact.after.payment.id)!,
      refunded: fact.refundedInAll,
    })
  if (fact.kind === 'dispute')
    known.charges.set(fact.after.payment.id, {
      ...known.charges.get(fact.after.payment.id)!,
      disputed: true,
    })
}

function chargeOf({ charges }: Known, fact: Fact): ChargeState | undefined {
  if (fact.kind === 'refund' || fact.kind === 'dispute') return charges.get(fact.after.payment.id)
}

type RenderedEvent = { type: string; object: object; before?: Fields }

function renderEvents(fact: Fact, known: Known, version: Version, chargeBefore: Partial<ChargeState>): RenderedEvent[] {
  const render = renderer(known, version)
  if (fact.kind === 'coupon') {
    const { after } = fact
    const code = after.promotionCode ? [{ type: 'promotion_code.created', object: render.promotionCode(after) }] : []
    return [{ type: 'coupon.created', object: couponObject(after) }, ...code]
  }
  if (fact.kind === 'customer')
    return [
      {
        type: `customer.${fact.what}`,
        object: render.customer(fact.after),
        ...(fact.before && { before: asFields(render.customer(fact.before)) }),
      },
    ]
  if (fact.kind === 'discount')
    return [{ type: `customer.discount.${fact.what}`, object: render.discount(fact.discount) }]
  if (fact.kind === 'subscription') return renderSubscriptionEvents(fact, render)
  if (fact.kind === 'invoice') return renderInvoiceEvents(fact, render)
  if (fact.kind === 'payment') return renderPaymentEvents(fact, render, version)
  if (fact.kind === 'credit_note') return [{ type: 'credit_note.created', object: render.creditNote(fact.after) }]
  const charge = render.charge(fact.after.payment)
  if (fact.kind === 'refund') {
    const object = refundObject(fact.after)
    if (fact.what === 'failed')
      return [
        { type: 'refund.failed', object },
        { type: 'charge.refund.updated', object, before: { status: 'succeeded' } },
      ]
    return [
      { type: 'refund.created', object },
      {
        type: 'charge.refunded',
        object: charge,
        before: { ...asFields(charge), amount_refunded: chargeBefore.refunded ?? 0, refunded: false },
      },
    ]
  }
  const object = disputeObject(fact.after)
  if (fact.what === 'created')
    return [
      { type: 'charge.dispute.created', object },
      { type: 'charge.dispute.funds_withdrawn', object },
    ]
  return [
    { type: 'charge.dispute.closed', object },
    ...(fact.after.status === 'won' ? [{ type: 'charge.dispute.funds_reinstated', object }] : []),
  ]
}

type Renderer = ReturnType<typeof renderer>

export function renderer({ customers, subscriptions, attempts, charges }: Known, version: Version) {
  const isOld = version === 'old'
  return {
    customer: isOld ? oldCustomer : customerObject,
    discount: isOld ? oldDiscount : discountObject,
    promotionCode: isOld ? oldPromotionCode : promotionCodeObject,
    subscription: isOld ? oldSubscription : subscriptionObject,
    intent: isOld ? oldIntent : intentObject,
    creditNote: isOld ? oldCreditNote : creditNoteObject,
    charge(payment: Payment): object {
      const state = charges.get(payment.id)!
      return isOld ? oldCharge(payment, state) : chargeObject(payment, state)
    },
    invoice(invoice: Invoice): object {
      const customer = customers.get(invoice.customer)!
      const subscription = subscriptions.get(invoice.subscription ?? '') ?? null
      const attempt = attempts.get(invoice.id) ?? null
      return isOld
        ? oldInvoice(invoice, { customer, subscription }, attempt)
        : invoiceObject(invoice, { customer, subscription })
    },
  }
}

function renderSubscriptionEvents({ what, after, before }: FactOf<'subscription'>, render: Renderer): RenderedEvent[] {
  const object = render.subscription(after)
  const type = `customer.subscription.${what}`
  if (what === 'updated') return [{ type, object, before: asFields(render.subscription(before!)) }]
  const isBeside = what === 'paused' || what === 'resumed'
  const update = { type: 'customer.subscription.updated', object }
  return [...(isBeside ? [{ ...update, before: asFields(render.subscription(before!)) }] : []), { type, object }]
}

function renderInvoiceEvents({ what, after, before }: FactOf<'invoice'>, render: Renderer): RenderedEvent[] {
  const object = render.invoice(after)
  const was = before ? asFields(render.invoice(before)) : {}
  if (what === 'updated') return [{ type: 'invoice.updated', object, before: was }]
  const changes = before !== null && before !== after && Object.keys(previousOf(was, asFields(object))).length > 0
  return [
    { type: `invoice.${what}`, object },
    ...(what === 'paid' ? [{ type: 'invoice.payment_succeeded', object }] : []),
    ...(changes ? [{ type: 'invoice.updated', object, before: was }] : []),
  ]
}

function renderPaymentEvents({ payment }: FactOf<'payment'>, render: Renderer, version: Version): RenderedEvent[] {
  const intent = render.intent(payment)
  if (payment.outcome === 'requires_action') return [{ type: 'payment_intent.requires_action', object: intent }]
  const charge = render.charge(payment)
  if (payment.outcome === 'failed')
    return [
      { type: 'charge.failed', object: charge },
      { type: 'payment_intent.payment_failed', object: intent },
    ]
  return [
    { type: 'charge.succeeded', object: charge },
    { type: 'payment_intent.succeeded', object: intent },
    ...(version === 'new' && payment.invoice
      ? [{ type: 'invoice_payment.paid', object: invoicePaymentObject(payment) }]
      : []),
  ]
}

function livemodeOf(fact: Fact): boolean {
  if (fact.kind === 'payment') return fact.payment.livemode
  if (fact.kind === 'refund' || fact.kind === 'dispute') return fact.after.payment.livemode
  if (fact.kind === 'credit_note') return fact.after.invoice.livemode
  if (fact.kind === 'discount') return fact.discount.coupon.livemode
  return fact.after.livemode
}

/** Rendered objects are plain data. */
export function asFields(object: object): Fields {
  return object as Fields
}

/** Stripe's previous attributes: the changed parts of nested objects; lists and values completely. */
function previousOf(before: Fields, after: Fields): Fields {
  const previous: Fields = {}
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name], after[name]]
    if (isDeepStrictEqual(was, is)) continue
    previous[name] = isObject(was) && isObject(is) ? previousOf(was, is) : (was ?? null)
  }
  return previous
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
