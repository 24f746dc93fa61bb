// Lines, discounts and taxes of one invoice, in whole minor units.
import type { Discount, Item, Line, Price, Subscription, TaxRate } from './model.ts'
import { allocate, type Fraction, fraction, plus, rounded, share, sum, times } from './money.ts'

/** The price of this number of seats for one period; null: unknown. */
export function pricePerPeriod({ unitAmount, tiers }: Price, quantity: number): Fraction | null {
  if (tiers) {
    const { mode, tiers: steps } = tiers
    if (mode === 'volume') {
      const step = steps.find(({ upTo }) => upTo === null || quantity <= upTo)!
      return plus(times(fraction(step.unitAmount), quantity), fraction(step.flatAmount))
    }
    let total = fraction(0)
    let reached = 0
    for (const { upTo, unitAmount, flatAmount } of steps) {
      if (quantity <= reached) break
      const seats = Math.min(quantity, upTo ?? quantity) - reached
      total = plus(plus(total, times(fraction(unitAmount), seats)), fraction(flatAmount))
      reached += seats
    }
    return total
  }
  return unitAmount === null ? null : times(fraction(unitAmount), quantity)
}

type Draft = Omit<Line, 'discounts' | 'tax'>

export type Bill = {
  lines: Line[]
  subtotal: number
  discounted: number
  tax: number
  total: number
}

/** Discounts are subtracted in order. Then inclusive tax is computed, or exclusive tax is added. */
export function bill(drafts: Draft[], discounts: Discount[], tax: TaxRate | null): Bill {
  let lines: Line[] = drafts.map(draft => ({ ...draft, discounts: [], tax: 0 }))
  for (const discount of discounts) {
    const rest = lines.map(line => (line.kind === 'proration' ? 0 : netOf(line)))
    const off = amountsOff(discount, rest)
    lines = lines.map((line, i) =>
      off[i] === 0 ? line : { ...line, discounts: [...line.discounts, { discount, amount: off[i]! }] },
    )
  }
  if (tax) lines = lines.map(line => ({ ...line, tax: taxOf(netOf(line), tax) }))
  const subtotal = sum(lines.map(line => line.amount))
  const discounted = subtotal - sum(lines.map(netOf))
  const taxes = sum(lines.map(line => line.tax))
  const total = subtotal - discounted + (tax && !tax.inclusive ? taxes : 0)
  return { lines, subtotal, discounted, tax: taxes, total }
}

export function netOf(line: Line): number {
  return line.amount - sum(line.discounts.map(({ amount }) => amount))
}

function taxOf(net: number, { percent, inclusive }: TaxRate): number {
  return inclusive ? net - share(net, 100, 100 + percent) : share(net, percent, 100)
}

function amountsOff({ coupon }: Discount, rest: number[]): number[] {
  if (coupon.percentOff !== null) return rest.map(amount => share(amount, coupon.percentOff!, 100))
  return allocate(Math.min(coupon.amountOff ?? 0, sum(rest)), rest)
}

/** The lines of a new period: seats in advance, usage of the previous period in arrears. */
export function periodLines(
  subscription: Subscription,
  used: (item: Item) => number | null,
  lineId: () => string,
): Draft[] {
  const { periodStart, periodEnd } = subscription
  return subscription.items.flatMap((item): Draft[] => {
    const isMetered = item.price.usage === 'metered'
    const quantity = isMetered ? used(item) : item.quantity
    if (quantity === null) return []
    const amount = pricePerPeriod(item.price, quantity)
    if (amount === null) return []
    return [
      {
        id: lineId(),
        kind: isMetered ? 'usage' : 'item',
        item,
        description: `${quantity} × ${item.price.name}`,
        quantity,
        amount: rounded(amount),
        periodStart,
        periodEnd,
      },
    ]
  })
}

/** Proration: the unused part of the old price is credited, the remaining period is charged at the new price. */
export function prorationLines(
  { before, after, at }: { before: Subscription; after: Subscription; at: number },
  lineId: () => string,
): Draft[] {
  const part = (item: Item, sign: 1 | -1): Draft[] => {
    const whole = item.price.usage === 'metered' ? null : pricePerPeriod(item.price, item.quantity)
    if (whole === null) return []
    const amount = rounded(times(whole, after.periodEnd - at, after.periodEnd - after.periodStart))
    if (amount === 0) return []
    const words = sign === 1 ? 'Remaining time on' : 'Unused time on'
    const description = `${words} ${item.quantity} × ${item.price.name}`
    return [
      {
        id: lineId(),
        kind: 'proration',
        item,
        description,
        quantity: item.quantity,
        amount: sign * amount,
        periodStart: at,
        periodEnd: after.periodEnd,
      },
    ]
  }
  const isSame = (a: Item, b: Item) => a.id === b.id && a.price.id === b.price.id && a.quantity === b.quantity
  return [
    ...before.items.filter(item => !after.items.some(other => isSame(item, other))).flatMap(i => part(i, -1)),
    ...after.items.filter(item => !before.items.some(other => isSame(item, other))).flatMap(i => part(i, 1)),
  ]
}
