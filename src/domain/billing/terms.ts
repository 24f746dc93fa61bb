/**
 * Coupons, discounts, promotion codes and customers, which have events of their own. Newer Stripe versions list the
 * discounts of a subscription by id only, and a customer's discount is never part of the subscription.
 */

import { canonicalJson } from '../json/json.ts'
import { addIntervals } from './calendar.ts'
import { withTaxes } from './tax.ts'
import type { CouponTerms, Discount, Instant, SubscriptionVersion, Term, TermKind } from './types.ts'

/** Adds a version. Returns the same array if it is not new. Each content is stored once, with its latest time. */
export function addTerm(versions: Term[], term: Term): Term[] {
  if (term.kind === 'tax') return addTax(versions, term)
  const text = termText(term)
  const same = versions.find(other => termText(other) === text)
  if (!same) return [...versions, term].sort(byTime)
  // with a single version, the time does not matter
  if (versions.length === 1 || same.sourceAt >= term.sourceAt) return versions
  return addTerm(
    versions.filter(other => other !== same),
    term,
  )
}

// More invoices of one subscription keep only the first and the last of those in a row that show the same tax.
const MAX_TAXES = 500

/** A tax can return to an earlier one, and invoices arrive in any order, so each is stored with its own time. */
function addTax(versions: Term[], term: Term): Term[] {
  if (versions.some(other => byTime(other, term) === 0)) return versions
  const all = [...versions, term].sort(byTime)
  if (all.length <= MAX_TAXES) return all
  const texts = all.map(termText)
  return all.filter((_, i) => texts[i] !== texts[i - 1] || texts[i] !== texts[i + 1])
}

function byTime(a: Term, b: Term): number {
  if (a.sourceAt !== b.sourceAt) return a.sourceAt - b.sourceAt
  const [one, other] = [termText(a), termText(b)]
  return one < other ? -1 : one > other ? 1 : 0
}

function termText(term: Term): string {
  return canonicalJson({ ...term, sourceAt: 0 })
}

/** Merges all versions: the newest value of each field, also of the coupon's list of products, which most copies omit. */
export function mergeTerm(versions: Term[]): Term {
  const merged: Term = Object.assign({}, ...versions)
  const limited = versions.findLast(({ coupon }) => coupon?.productIds !== undefined)
  if (!merged.coupon || !limited) return merged
  return { ...merged, coupon: { ...merged.coupon, productIds: limited.coupon!.productIds! } }
}

/** As `indexTerms` expects them. The tax of a subscription changes over time, so its versions are not merged. */
export function currentTerms(versions: Term[]): Term[] {
  return versions[0]?.kind === 'tax' ? versions : [mergeTerm(versions)]
}

/** The terms of one tenant, by kind and id. */
export type KnownTerms = Record<Exclude<TermKind, 'tax'>, Map<string, Term>> & {
  /** Discounts of customers, by customer. */
  ofCustomers: Map<string, Term[]>
  /** The versions of the tax of each subscription, oldest first. */
  taxes: Map<string, Term[]>
}

export const NO_TERMS: KnownTerms = indexTerms([])

export function indexTerms(terms: Term[]): KnownTerms {
  const of = (kind: TermKind) => new Map(terms.filter(term => term.kind === kind).map(term => [term.id, term] as const))
  const ofCustomers = terms.filter(term => term.ofCustomer && term.customer !== undefined)
  return {
    customer: of('customer'),
    discount: of('discount'),
    promotion_code: of('promotion_code'),
    coupon: of('coupon'),
    taxes: Map.groupBy(
      terms.filter(({ kind }) => kind === 'tax'),
      ({ id }) => id,
    ),
    ofCustomers: Map.groupBy(ofCustomers, term => term.customer!),
  }
}

/** Replaces references of a version by the known terms. */
export function resolveTerms(version: SubscriptionVersion, known: KnownTerms): SubscriptionVersion {
  const customer = version.customer === null ? undefined : known.customer.get(version.customer)
  const inherited = version.customer === null ? [] : (known.ofCustomers.get(version.customer) ?? [])
  const of = (discounts: Discount[]) =>
    distinctById(discounts).map(discount => resolveDiscount(discount, version.currency, known))
  return {
    ...version,
    customerName: customer?.name ?? version.customerName,
    customerEmail: customer?.email ?? version.customerEmail,
    discounts: of(version.discounts),
    items: withTaxes(version, known.taxes.get(version.id) ?? []).map(item =>
      item.discounts.length === 0 ? item : { ...item, discounts: of(item.discounts) },
    ),
    ...(inherited.length > 0 && { inherited: inheritedDiscounts(inherited, version.currency, known) }),
  }
}

function distinctById(discounts: Discount[]): Discount[] {
  return discounts.filter(({ id }, i) => id === undefined || discounts.findIndex(other => other.id === id) === i)
}

function isKnown({ percentOff, amountOff, duration, endsAt }: Discount): boolean {
  if (percentOff === null && amountOff === null) return false
  return duration === 'forever' || duration === 'once' || (duration === 'repeating' && endsAt !== null)
}

function resolveDiscount(discount: Discount, currency: string | null, known: KnownTerms): Discount {
  const term = discount.id === undefined ? undefined : known.discount.get(discount.id)
  const coupon = findCoupon({ ...term, ...givenIds(discount) }, known)
  const startsAt = discount.startsAt ?? term?.startsAt
  const resolved = !coupon
    ? discount
    : isKnown(discount)
      ? { ...discount, productIds: discount.productIds ?? coupon.productIds ?? null }
      : buildDiscount(coupon, currency, startsAt, discount.endsAt ?? term?.endsAt)
  return cutAt(resolved, term?.deletedAt)
}

/** A discount may be removed without an event of its subscription. */
function cutAt(discount: Discount, deletedAt: Instant | undefined): Discount {
  if (deletedAt === undefined || (discount.endsAt !== null && discount.endsAt <= deletedAt)) return discount
  return { ...discount, endsAt: deletedAt, isCut: true }
}

function givenIds({ couponId, promotionCodeId }: Discount): Partial<Term> {
  return { ...(couponId && { couponId }), ...(promotionCodeId && { promotionCodeId }) }
}

type CouponReference = Pick<Term, 'coupon' | 'couponId' | 'promotionCodeId'>

function findCoupon(reference: CouponReference, known: KnownTerms): CouponTerms | undefined {
  const own = reference.couponId === undefined ? undefined : known.coupon.get(reference.couponId)?.coupon
  // a copy without the list of products does not lift a known limit
  if (reference.coupon)
    return { ...reference.coupon, productIds: reference.coupon.productIds ?? own?.productIds ?? null }
  if (reference.couponId !== undefined) return own
  const code = reference.promotionCodeId && known.promotion_code.get(reference.promotionCodeId)
  return code ? findCoupon({ ...code, promotionCodeId: undefined }, known) : undefined
}

function buildDiscount(
  coupon: CouponTerms,
  currency: string | null,
  startsAt: Instant | undefined,
  endsAt: Instant | undefined,
): Discount {
  const months = coupon.duration === 'repeating' ? coupon.months : null
  const end = startsAt !== undefined && months !== null ? addIntervals(startsAt, 'month', months) : null
  return {
    percentOff: coupon.percentOff,
    amountOff: currency === null ? null : (coupon.amountsOff[currency] ?? null),
    duration: coupon.duration,
    endsAt: endsAt ?? end,
    productIds: coupon.productIds ?? null,
  }
}

const UNKNOWN: CouponTerms = { percentOff: null, amountsOff: {}, duration: 'unknown', months: null, productIds: null }

/** A customer has one discount at a time: a later one replaces the earlier one. */
function inheritedDiscounts(terms: Term[], currency: string | null, known: KnownTerms): Discount[] {
  const inOrder = [...terms].sort((a, b) => termStart(a) - termStart(b) || (a.id < b.id ? -1 : 1))
  return inOrder.map((term, i) => {
    const discount = buildDiscount(findCoupon(term, known) ?? UNKNOWN, currency, term.startsAt, term.endsAt)
    const ends = [discount.endsAt, term.deletedAt ?? null, i + 1 < inOrder.length ? termStart(inOrder[i + 1]!) : null]
    const limits = ends.filter(end => end !== null)
    const endsAt = limits.length > 0 ? Math.min(...limits) : null
    const isCut = endsAt !== discount.endsAt
    return { ...discount, startsAt: termStart(term), endsAt, ...(isCut && { isCut }) }
  })
}

function termStart(term: Term): Instant {
  return term.startsAt ?? term.sourceAt
}
