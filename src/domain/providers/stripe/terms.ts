import {
  type Fields,
  readDecimalText,
  readDuration,
  readId,
  readInstant,
  readInteger,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import type { CouponTerms, Instant, Term } from '../../billing/types.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMinor } from './amounts.ts'
import type { StripeSubject } from './subject.ts'
import { shownDiscounts } from './subscription.ts'

export function termsOf(id: string, subject: StripeSubject): Term[] {
  const { type, object, previous, sourceAt } = subject
  switch (object.object) {
    case 'coupon':
      return couponTerm(object, sourceAt)
    case 'promotion_code': {
      const given = object.coupon ?? readObject(object.promotion)?.coupon
      return [
        ...couponTerm(given, sourceAt),
        { kind: 'promotion_code', id, sourceAt, ...couponReference(given) },
      ]
    }
    case 'discount':
      return discountTerms(object, sourceAt, type.endsWith('.deleted') ? { deletedAt: sourceAt } : {})
    case 'customer':
      return customerTerms(id, object, previous, sourceAt)
    default:
      return []
  }
}

/** Discounts that a subscription shows whole. */
export function termsShownBy(id: string, { object, sourceAt }: StripeSubject): Term[] {
  const customer = readId(object.customer)
  return shownDiscounts(object).flatMap(discount =>
    discountTerms({ customer, subscription: id, ...discount }, sourceAt, { ofCustomer: false }),
  )
}

/** A customer's discount is gone when another, or none, has taken its place. */
function customerTerms(id: string, customer: Fields, previous: Fields, sourceAt: Instant): Term[] {
  const name = readText(customer.name)
  const email = readText(customer.email)
  const gone = readText(readObject(previous.discount)?.id)
  const now = readObject(customer.discount)
  return [
    { kind: 'customer', id, sourceAt, ...(name && { name }), ...(email && { email }) },
    ...(now ? discountTerms({ customer: id, ...now }, sourceAt, {}) : []),
    ...(gone !== null && gone !== readText(now?.id)
      ? [{ kind: 'discount' as const, id: gone, sourceAt, deletedAt: sourceAt }]
      : []),
  ]
}

function discountTerms(discount: Fields, sourceAt: Instant, more: Partial<Term>): Term[] {
  const id = readText(discount.id)
  if (id === null) return []
  const given = discount.coupon ?? readObject(discount.source)?.coupon
  const promotionCodeId = readId(discount.promotion_code)
  const customer = readId(discount.customer)
  const subscription = readId(discount.subscription)
  const startsAt = readInstant(discount.start)
  const endsAt = readInstant(discount.end)
  const isOfCustomer = subscription === null && discount.subscription_item == null && discount.invoice == null
  return [
    ...couponTerm(given, sourceAt),
    {
      kind: 'discount',
      id,
      sourceAt,
      ...couponReference(given),
      ...(promotionCodeId && { promotionCodeId }),
      ...(customer && { customer }),
      ...(subscription && { subscription }),
      ofCustomer: isOfCustomer && discount.checkout_session == null,
      ...(startsAt && { startsAt }),
      ...(endsAt && { endsAt }),
      ...more,
    },
  ]
}

function couponReference(given: unknown): Partial<Term> {
  const couponId = readId(given)
  const coupon = readObject(given) && couponTerms(readObject(given)!)
  return { ...(couponId && { couponId }), ...(coupon && { coupon }) }
}

/** A coupon that is shown whole is known by its id from then on. */
function couponTerm(given: unknown, sourceAt: Instant): Term[] {
  const object = readObject(given)
  const id = readText(object?.id)
  const coupon = object && couponTerms(object)
  return id !== null && coupon ? [{ kind: 'coupon', id, sourceAt, coupon }] : []
}

/** Null where it is shown without its terms. */
function couponTerms(coupon: Fields): CouponTerms | null {
  const percentOff = readDecimalText(coupon.percent_off)
  const options = Object.entries(readObject(coupon.currency_options) ?? {}).map(
    ([currency, option]) => [knownCurrency(currency), readObject(option)?.amount_off] as const,
  )
  const amounts = [...options, [knownCurrency(coupon.currency), coupon.amount_off] as const].flatMap(
    ([currency, amount]) => {
      const minor = stripeMinor(amount, currency)
      return currency !== null && minor !== null && minor >= 0 ? [[currency, minor] as const] : []
    },
  )
  if (percentOff === null && amounts.length === 0) return null
  const products = readList(readObject(coupon.applies_to)?.products).flatMap(entry => readId(entry) ?? [])
  return {
    percentOff,
    amountsOff: Object.fromEntries(amounts),
    duration: readDuration(coupon.duration, null),
    months: readInteger(coupon.duration_in_months, 1),
    productIds: products.length > 0 ? products : null,
  }
}
