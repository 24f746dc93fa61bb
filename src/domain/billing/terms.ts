/**
 * What is told of coupons, discounts, promotion codes and customers by themselves. Newer Stripe versions give a
 * subscription's discounts by id only, and a customer's discount never stands on the subscription at all.
 */

import { addIntervals } from './calendar.ts'
import { contentText } from './content.ts'
import type { CouponTerms, Discount, Instant, SubscriptionVersion, Term, TermKind } from './types.ts'

/** With one more telling, or the same array where that is no news. Each content is kept once, with its latest time. */
export function withTerm(told: Term[], term: Term): Term[] {
  const text = termText(term)
  const same = told.find(other => termText(other) === text)
  if (!same)
    return [...told, term].sort((a, b) => a.sourceAt - b.sourceAt || (termText(a) < termText(b) ? -1 : 1))
  // what was told once only is as it was, whenever it is told again
  if (told.length === 1 || same.sourceAt >= term.sourceAt) return told
  return withTerm(
    told.filter(other => other !== same),
    term,
  )
}

function termText(term: Term): string {
  return contentText({ ...term, sourceAt: 0 })
}

/** What all tellings come to: the newest word on each field. */
export function termOfTold(told: Term[]): Term {
  return Object.assign({}, ...told)
}

/** Terms of one tenant, by what they are of. */
export type KnownTerms = Record<TermKind, Map<string, Term>> & {
  /** Discounts of customers, by customer. */
  ofCustomers: Map<string, Term[]>
}

export const NO_TERMS: KnownTerms = knownTerms([])

export function knownTerms(terms: Term[]): KnownTerms {
  const of = (kind: TermKind) =>
    new Map(terms.filter(term => term.kind === kind).map(term => [term.id, term] as const))
  const ofCustomers = terms.filter(term => term.ofCustomer && term.customer !== undefined)
  return {
    customer: of('customer'),
    discount: of('discount'),
    promotion_code: of('promotion_code'),
    coupon: of('coupon'),
    ofCustomers: Map.groupBy(ofCustomers, term => term.customer!),
  }
}

/** The version as it reads with all that is known. */
export function resolved(version: SubscriptionVersion, known: KnownTerms): SubscriptionVersion {
  const customer = version.customer === null ? undefined : known.customer.get(version.customer)
  const inherited = version.customer === null ? [] : (known.ofCustomers.get(version.customer) ?? [])
  const of = (discounts: Discount[]) =>
    distinctById(discounts).map(discount => resolvedDiscount(discount, version.currency, known))
  return {
    ...version,
    customerName: customer?.name ?? version.customerName,
    customerEmail: customer?.email ?? version.customerEmail,
    discounts: of(version.discounts),
    items: version.items.map(item =>
      item.discounts.length === 0 ? item : { ...item, discounts: of(item.discounts) },
    ),
    ...(inherited.length > 0 && { inherited: inheritedDiscounts(inherited, version.currency, known) }),
  }
}

function distinctById(discounts: Discount[]): Discount[] {
  return discounts.filter(
    ({ id }, i) => id === undefined || discounts.findIndex(other => other.id === id) === i,
  )
}

function isKnown({ percentOff, amountOff, duration, endsAt }: Discount): boolean {
  if (percentOff === null && amountOff === null) return false
  return duration === 'forever' || duration === 'once' || (duration === 'repeating' && endsAt !== null)
}

function resolvedDiscount(discount: Discount, currency: string | null, known: KnownTerms): Discount {
  if (isKnown(discount)) return discount
  const term = discount.id === undefined ? undefined : known.discount.get(discount.id)
  const coupon = couponOf({ ...term, ...givenIds(discount) }, known)
  if (!coupon) return discount
  const startsAt = discount.startsAt ?? term?.startsAt
  return discountOf(coupon, currency, startsAt, discount.endsAt ?? term?.endsAt)
}

function givenIds({ couponId, promotionCodeId }: Discount): Partial<Term> {
  return { ...(couponId && { couponId }), ...(promotionCodeId && { promotionCodeId }) }
}

type CouponReference = Pick<Term, 'coupon' | 'couponId' | 'promotionCodeId'>

function couponOf(reference: CouponReference, known: KnownTerms): CouponTerms | undefined {
  if (reference.coupon) return reference.coupon
  if (reference.couponId !== undefined) return known.coupon.get(reference.couponId)?.coupon
  const code = reference.promotionCodeId && known.promotion_code.get(reference.promotionCodeId)
  return code ? couponOf({ ...code, promotionCodeId: undefined }, known) : undefined
}

function discountOf(
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
    productIds: coupon.productIds,
  }
}

const UNKNOWN: CouponTerms = {
  percentOff: null,
  amountsOff: {},
  duration: 'unknown',
  months: null,
  productIds: null,
}

/** One at a time: the later takes the place of the earlier. */
function inheritedDiscounts(terms: Term[], currency: string | null, known: KnownTerms): Discount[] {
  const inOrder = [...terms].sort((a, b) => startOf(a) - startOf(b) || (a.id < b.id ? -1 : 1))
  return inOrder.map((term, i) => {
    const discount = discountOf(couponOf(term, known) ?? UNKNOWN, currency, term.startsAt, term.endsAt)
    const ends = [
      discount.endsAt,
      term.deletedAt ?? null,
      i + 1 < inOrder.length ? startOf(inOrder[i + 1]!) : null,
    ]
    const limits = ends.filter(end => end !== null)
    const endsAt = limits.length > 0 ? Math.min(...limits) : null
    const isCut = endsAt !== discount.endsAt
    return { ...discount, startsAt: startOf(term), endsAt, ...(isCut && { isCut }) }
  })
}

function startOf(term: Term): Instant {
  return term.startsAt ?? term.sourceAt
}
