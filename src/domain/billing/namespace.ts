/** Ids belong to a namespace: two shops that both count from 1001 are told apart. */

import type { EventContext } from '../events/events.ts'
import type { BillingChange, Discount, Payment, Refund, Term } from './types.ts'

/** Between a namespace and an id. Nothing that billing systems write has it, and no namespace can. */
const SEPARATOR = '\u001f'
const PREFIX = /[A-Za-z0-9_.-]+\u001f/g

/** Ids of these stand as they are: they were kept so before there were namespaces, and Stripe's are like no others. */
const PLAIN = new Set(['default', 'stripe'])

/** Presets whose events say nothing of billing, and those that name no billing system. */
const WITHOUT_BILLING = new Set(['shopify', 'github'])
const WITHOUT_NAME = new Set(['standard-webhooks', 'custom'])

/** The namespace of what a request says about billing; null: it feeds no ledger. */
export function namespaceOf(context: EventContext): string | null {
  if (context.route !== 'inbound') return null
  const { preset, sourceType, billing, namespace } = context
  const feeds = billing ?? (sourceType !== 'cdp' && !WITHOUT_BILLING.has(preset ?? ''))
  if (!feeds) return null
  return namespace ?? (preset === null || WITHOUT_NAME.has(preset) ? 'default' : preset)
}

/** Whether its ids stand as they are. */
export function isPlain(namespace: string): boolean {
  return PLAIN.has(namespace)
}

export function idIn(namespace: string, id: string): string {
  return isPlain(namespace) ? id : `${namespace}${SEPARATOR}${id}`
}

/** An id, or words that hold some, as their source writes them. */
export function withoutNamespaces(text: string): string {
  return text.includes(SEPARATOR) ? text.replaceAll(PREFIX, '') : text
}

/** The ids that a name may stand for: as it is, in one of the namespaces, or with its namespace before a colon. */
export function idsNamed(name: string, namespaces: string[]): string[] {
  const qualified = namespaces.filter(namespace => name.startsWith(`${namespace}:`))
  return [
    name,
    ...namespaces.map(namespace => idIn(namespace, name)),
    ...qualified.map(namespace => idIn(namespace, name.slice(namespace.length + 1))),
  ]
}

/** With every id of something told in its namespace. */
export function changeIn(namespace: string, change: BillingChange): BillingChange {
  if (isPlain(namespace)) return change
  const own = (id: string) => idIn(namespace, id)
  const maybe = <Id extends string | null>(id: Id) => (id === null ? id : own(id)) as Id
  const payment = (told: Payment): Payment => ({
    ...told,
    id: own(told.id),
    invoiceId: maybe(told.invoiceId),
    customer: maybe(told.customer),
  })
  const refund = (told: Refund): Refund => ({
    ...told,
    id: own(told.id),
    invoiceId: maybe(told.invoiceId),
    chargeId: maybe(told.chargeId),
    customer: maybe(told.customer),
    ...(told.paymentId !== undefined && { paymentId: own(told.paymentId) }),
  })
  const term = (told: Term): Term => ({
    ...told,
    id: own(told.id),
    ...(told.couponId !== undefined && { couponId: own(told.couponId) }),
    ...(told.promotionCodeId !== undefined && { promotionCodeId: own(told.promotionCodeId) }),
    ...(told.customer !== undefined && { customer: own(told.customer) }),
    ...(told.subscription !== undefined && { subscription: own(told.subscription) }),
  })
  const discount = (told: Discount): Discount => ({
    ...told,
    ...(told.id !== undefined && { id: own(told.id) }),
    ...(told.couponId !== undefined && { couponId: own(told.couponId) }),
    ...(told.promotionCodeId !== undefined && { promotionCodeId: own(told.promotionCodeId) }),
  })
  switch (change.kind) {
    case 'subscription': {
      const { version, terms } = change
      const inside = {
        ...version,
        id: own(version.id),
        customer: maybe(version.customer),
        discounts: version.discounts.map(discount),
        items: version.items.map(item => ({ ...item, discounts: item.discounts.map(discount) })),
      }
      return { ...change, version: inside, ...(terms && { terms: terms.map(term) }) }
    }
    case 'invoice': {
      const { version, payments } = change
      const inside = {
        ...version,
        id: own(version.id),
        subscriptionId: maybe(version.subscriptionId),
        customer: maybe(version.customer),
      }
      return { ...change, version: inside, ...(payments && { payments: payments.map(payment) }) }
    }
    case 'cash':
      return { ...change, payments: change.payments.map(payment), refunds: change.refunds.map(refund) }
    case 'terms':
      return { ...change, terms: change.terms.map(term) }
  }
}
