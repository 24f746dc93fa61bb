// Coupons of a subscription or a customer: granted, ended, used up and removed.
import { later } from './calendar.ts'
import type { Journal } from './journal.ts'
import type { Cause, Coupon, Discount, Subscription } from './model.ts'

type Change = (id: string, changes: Partial<Subscription>, why: { cause?: Cause }) => void

export function discounting(journal: Journal, change: Change) {
  const { customers, subscriptions } = journal
  const get = (id: string) => subscriptions.get(id)!
  const isOver = (id: string) => get(id).endedAt !== null

  /** A coupon for one invoice ends with it. */
  function useUp(id: string): void {
    const { discounts } = get(id)
    const used = discounts.filter(({ coupon }) => coupon.duration === 'once')
    if (used.length === 0 || isOver(id)) return
    for (const discount of used) journal.record({ kind: 'discount', what: 'deleted', discount })
    change(id, { discounts: discounts.filter(discount => !used.includes(discount)) }, {})
  }

  /** The subscription's discounts replace those of the customer. */
  function discountsOf({ discounts, customer }: Subscription): Discount[] {
    const { discount } = customers.get(customer)!
    return discounts.length > 0 || discount === null ? discounts : [discount]
  }

  function newDiscount(coupon: Coupon, customer: string, subscription: string | null): Discount {
    const end = coupon.duration === 'repeating' ? later(journal.now, 'month', coupon.months!) : null
    return { id: journal.id('di'), coupon, customer, subscription, start: journal.now, end }
  }

  function giveDiscount(discount: Discount): void {
    journal.record({ kind: 'discount', what: 'created', discount })
    if (discount.end !== null) journal.plan(discount.end, () => runOut(discount))
  }

  function runOut(discount: Discount): void {
    const { subscription: id } = discount
    if (id === null) dropCustomerDiscount(discount)
    else if (get(id).discounts.includes(discount) && !isOver(id)) dropDiscounts(id, [discount], 'discount_end')
  }

  function dropDiscounts(id: string, gone: Discount[], cause: Cause): void {
    for (const discount of gone) journal.record({ kind: 'discount', what: 'deleted', discount })
    change(id, { discounts: get(id).discounts.filter(discount => !gone.includes(discount)) }, { cause })
  }

  function dropCustomerDiscount(discount: Discount): void {
    const before = customers.get(discount.customer)!
    if (before.discount !== discount) return
    const after = { ...before, discount: null }
    customers.set(before.id, after)
    journal.record({ kind: 'discount', what: 'deleted', discount })
    journal.record({ kind: 'customer', what: 'updated', after, before })
  }

  return {
    useUp,
    discountsOf,
    newDiscount,
    giveDiscount,
    addCoupon(id: string, coupon: Coupon): void {
      const discount = newDiscount(coupon, get(id).customer, id)
      giveDiscount(discount)
      change(id, { discounts: [...get(id).discounts, discount] }, { cause: 'discount' })
    },
    removeDiscount: (id: string, discount: Discount) => dropDiscounts(id, [discount], 'discount'),
    giveCustomerCoupon(customer: string, coupon: Coupon): void {
      const discount = newDiscount(coupon, customer, null)
      const before = customers.get(customer)!
      const after = { ...before, discount }
      customers.set(customer, after)
      giveDiscount(discount)
      journal.record({ kind: 'customer', what: 'updated', after, before })
    },
    takeCustomerCoupon(customer: string): void {
      const { discount } = customers.get(customer)!
      if (discount) dropCustomerDiscount(discount)
    },
  }
}
