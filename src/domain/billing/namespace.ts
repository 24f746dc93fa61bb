/** Ids belong to a namespace, so that two shops can both use the id 1001. */

import type { EventContext, InboundContext } from '../events/types.ts'
import { parseEmail } from '../identity/identifiers.ts'
import { textDigest } from '../json/json.ts'
import type { BillingChange, CreditNote, Discount, Payment, Refund, SubscriptionFacts, Term } from './types.ts'

/** Separates a namespace from an id. It occurs in no id and in no namespace. */
const SEPARATOR = '\u001f'
// A namespace has at most 50 characters.
const PREFIX = /[A-Za-z0-9_.-]{1,50}\u001f/g

/** Ids of these namespaces are stored without a prefix. Stripe's ids are globally unique. */
const PLAIN = new Set(['default', 'stripe'])

/** Presets without billing events, and presets that are not specific to one provider. */
const WITHOUT_BILLING = new Set(['shopify', 'github'])
const WITHOUT_NAME = new Set(['standard-webhooks', 'custom'])

/** The namespace of a request's billing ids; null: the request does not feed the ledger. */
export function findNamespace(context: EventContext): string | null {
  return context.route === 'inbound' ? findSourceNamespace(context) : null
}

type SourceFacts = Pick<InboundContext, 'preset' | 'sourceType' | 'billing' | 'namespace'>

/** The namespace of a source's billing ids; null: the source does not feed the ledger. */
export function findSourceNamespace({ preset, sourceType, billing, namespace }: SourceFacts): string | null {
  const feeds = billing ?? (sourceType !== 'cdp' && !WITHOUT_BILLING.has(preset ?? ''))
  if (!feeds) return null
  return namespace ?? (preset === null || WITHOUT_NAME.has(preset) ? 'default' : preset)
}

/** Whether its ids have no prefix. */
export function isPlainNamespace(namespace: string): boolean {
  return PLAIN.has(namespace)
}

export function qualifyId(namespace: string, id: string): string {
  return isPlainNamespace(namespace) ? id : `${namespace}${SEPARATOR}${id}`
}

/** Removes the prefixes from an id, or from a string that contains ids. */
export function stripNamespaces(text: string): string {
  return text.includes(SEPARATOR) ? text.replaceAll(PREFIX, '') : text
}

/** An id with its namespace, as a user can enter it: `namespace:id`. */
export function writtenId(id: string): string {
  return id.replace(SEPARATOR, ':')
}

/** The ids that a user's input may mean: as it is, in any of the namespaces, or as `namespace:id`. */
export function candidateIds(name: string, namespaces: string[]): string[] {
  const qualified = namespaces.filter(namespace => name.startsWith(`${namespace}:`))
  return [
    name,
    ...namespaces.map(namespace => qualifyId(namespace, name)),
    ...qualified.map(namespace => qualifyId(namespace, name.slice(namespace.length + 1))),
  ]
}

/** Adds the namespace to every id of a change. */
export function addNamespace(namespace: string, change: BillingChange): BillingChange {
  if (isPlainNamespace(namespace)) return change
  const own = (id: string) => qualifyId(namespace, id)
  const maybe = <Id extends string | null>(id: Id) => (id === null ? id : own(id)) as Id
  const payment = (object: Payment): Payment => ({
    ...object,
    id: own(object.id),
    invoiceId: maybe(object.invoiceId),
    customer: maybe(object.customer),
  })
  const refund = (object: Refund): Refund => ({
    ...object,
    id: own(object.id),
    invoiceId: maybe(object.invoiceId),
    chargeId: maybe(object.chargeId),
    customer: maybe(object.customer),
    ...(object.paymentId !== undefined && { paymentId: own(object.paymentId) }),
  })
  const credit = (object: CreditNote): CreditNote => ({
    ...object,
    id: own(object.id),
    invoiceId: maybe(object.invoiceId),
  })
  const term = (object: Term): Term => ({
    ...object,
    id: own(object.id),
    ...(object.couponId !== undefined && { couponId: own(object.couponId) }),
    ...(object.promotionCodeId !== undefined && { promotionCodeId: own(object.promotionCodeId) }),
    ...(object.customer !== undefined && { customer: own(object.customer) }),
    ...(object.subscription !== undefined && { subscription: own(object.subscription) }),
  })
  const discount = (object: Discount): Discount => ({
    ...object,
    ...(object.id !== undefined && { id: own(object.id) }),
    ...(object.couponId !== undefined && { couponId: own(object.couponId) }),
    ...(object.promotionCodeId !== undefined && { promotionCodeId: own(object.promotionCodeId) }),
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
      return {
        ...change,
        payments: change.payments.map(payment),
        refunds: change.refunds.map(refund),
        ...(change.credits && { credits: change.credits.map(credit) }),
      }
    case 'terms':
      return { ...change, terms: change.terms.map(term) }
  }
}

/** Removes names and e-mail addresses from a change, as an erasure does. */
export function anonymizeChange(tenantId: number, change: BillingChange): BillingChange {
  const customer = <Id extends string | null>(id: Id) =>
    (id !== null && parseEmail(stripNamespaces(id)) !== null ? erasedAccountName(tenantId, id) : id) as Id
  const paid = <Paid extends { customer: string | null }>(object: Paid): Paid => ({
    ...object,
    customer: customer(object.customer),
  })
  const version = <Named extends Pick<SubscriptionFacts, 'customer' | 'customerName' | 'customerEmail'>>(
    object: Named,
  ): Named => ({ ...paid(object), customerName: null, customerEmail: null })
  switch (change.kind) {
    case 'subscription': {
      const { before: _, metadata: __, ...object } = change.version
      return {
        ...change,
        version: { ...version(object), ...(change.version.before && { before: factsOnly(change.version.before) }) },
        ...(change.terms && { terms: change.terms.map(anonymizeTerm) }),
      }
    }
    case 'invoice':
      return {
        ...change,
        version: version(change.version),
        ...(change.payments && { payments: change.payments.map(paid) }),
      }
    case 'cash':
      return { ...change, payments: change.payments.map(paid), refunds: change.refunds.map(paid) }
    case 'terms':
      return { ...change, terms: change.terms.map(anonymizeTerm) }
  }
}

function factsOnly(before: Partial<SubscriptionFacts>): Partial<SubscriptionFacts> {
  const { customer: _, customerName: _name, customerEmail: _email, metadata: _metadata, ...facts } = before
  return facts
}

function anonymizeTerm(term: Term): Term {
  const { name: _, email: _email, ...facts } = term
  return facts
}

/** Replaces the name of an account that was an erased e-mail address. */
export function erasedAccountName(tenantId: number, account: string): string {
  return `erased-${textDigest(`${tenantId} ${account}`).slice(0, 16)}`
}
