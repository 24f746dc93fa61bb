// The history of one customer: orders, changes, payments and missed payments.
import { DAY, HOUR } from './calendar.ts'
import { type Catalog, taxesOf } from './catalog.ts'
import { openCompany } from './company.ts'
import { type Decision, decisionsOf, type LifeOptions } from './decisions.ts'
import type { World } from './journal.ts'
import type { Coupon, Fact, Invoice, Subscription } from './model.ts'
import type { SubscriptionOrder, Wanted } from './subscribing.ts'

const CHANNELS = [
  { source: 'newsletter', medium: 'email', campaign: 'spring' },
  { source: 'google', medium: 'cpc', campaign: 'brand' },
  { source: 'google', medium: 'organic', campaign: '' },
  { source: 'partner', medium: 'referral', campaign: 'agency' },
]
const NAMES = ['Ada Brandt', 'Noor Haddad', 'Kenji Mori', 'Lena Vogt', 'Omar Said', 'Mia Laurent', 'Jo Park']

export function live(options: LifeOptions): Fact[] {
  const { random, features, livemode, country, catalog, coupons, prefix, arrives, until } = options
  const company = openCompany({ prefix, livemode, world: worldOf() })
  const { subscriptions, invoices, plan, journal } = company
  const acquisition = random.happens(0.7) ? random.pick(CHANNELS) : null
  let customer = ''

  function worldOf(): World {
    const paysInTime = random.happens(0.8) ? 0.985 : 0.8
    return {
      pays(_, nth) {
        const succeeds = !features.dunning || random.happens(nth === 1 ? paysInTime : 0.4)
        if (succeeds) return 'succeeds'
        return features.actionRequired && random.happens(0.15) ? 'needs_action' : 'fails'
      },
      whenLost(invoice) {
        const fate = random.weighted({
          cancel: 4,
          ...(features.writeOffs && { cancel_and_write_off: 3 }),
          ...(features.unpaid && { unpaid: 3 }),
          leave: 1,
        })
        if (fate === 'unpaid' || fate === 'leave') settleLater(invoice)
        return fate
      },
      uses: () => random.between(0, 5_000),
      transfers: () => transfers(),
      hesitates: () => random.pick([0, 0, 3, 40]),
      hasMeans: () => !features.suspendedTrials || random.happens(0.85),
    }
  }

  /** The customer pays late, or the debt is written off. */
  function settleLater({ id, subscription }: Invoice): void {
    const pays = random.happens(0.5)
    plan(journal.now + random.between(10, 40) * DAY + HOUR, () => {
      if (subscriptions.isOver(subscription!)) return
      for (const late of invoices.lateOf(subscription!)) if (pays) invoices.receive(late.id, late.amountRemaining)
      if (!pays && journal.invoices.get(id)!.status === 'open') subscriptions.end(subscription!, 'payment_failed')
    })
  }

  function transfers() {
    if (!features.dunning) return [{ afterDays: random.between(1, 13), part: 1 }]
    if (features.partialPayments && random.happens(0.15))
      return [
        { afterDays: random.between(2, 12), part: 0.4 },
        { afterDays: random.between(13, 45), part: 1 },
      ]
    const afterDays = random.happens(0.8) ? random.between(1, 13) : random.between(31, 60)
    return random.happens(0.94) ? [{ afterDays, part: 1 }] : []
  }

  function order(from: Catalog): SubscriptionOrder {
    const items = wanted(from)
    const taxes = taxesOf(country).filter(({ inclusive }) =>
      inclusive ? features.inclusiveTax : features.exclusiveTax,
    )
    const isSent = features.sentInvoices && random.happens(0.15)
    const isTrial = features.trials && !isSent && random.happens(0.35)
    const offered = features.coupons && random.happens(0.25) ? suitable(items) : []
    const isStacked = features.stackedCoupons && offered.length > 1 && random.happens(0.3)
    return {
      items,
      acquisition,
      country: random.happens(0.9) ? country : null,
      coupons: isStacked ? offered.slice(0, 2) : offered.slice(0, 1),
      ...(taxes.length > 0 && { tax: random.pick(taxes), taxOn: random.pick(['subscription', 'items']) }),
      ...(isSent && { collection: 'send_invoice', daysUntilDue: random.pick([14, 30]) }),
      ...(isTrial && { trialDays: random.pick([7, 14, 30]) }),
      incomplete: features.incomplete && !isSent && !isTrial && random.happens(0.4),
    }
  }

  function wanted(from: Catalog): Wanted[] {
    if (options.isLarge) return Array.from({ length: 30 }, (_, n) => ({ price: from.module(n + 1) }))
    const { price, quantity } = mainItem(from)
    const items = [{ price, quantity }]
    const addOn = price.interval === 'year' ? from.support.year : from.support.month
    const isPlain = price.interval !== 'week' && price.intervalCount === 1
    if (features.addOns && isPlain && random.happens(0.2)) items.push({ price: addOn, quantity: 1 })
    if (features.metered && isPlain && price.interval === 'month' && random.happens(0.15))
      items.push({ price: from.usage, quantity: 1 })
    return items
  }

  function mainItem(from: Catalog): { price: Catalog['starter']; quantity: number } {
    const key = random.weighted({
      starter: 5,
      team: 6,
      teamYearly: 4,
      business: 2,
      ...(features.quarterly && { quarterly: 2 }),
      ...(features.weekly && { weekly: 1 }),
      ...(features.fractions && { fine: 1 }),
      ...(features.tiers && { graduated: 2, volume: 2 }),
      ...(features.free && { free: 1 }),
    })
    const quantity = key === 'starter' || key === 'business' || key === 'free' ? 1 : random.between(1, 30)
    return { price: from[key], quantity }
  }

  /** Coupons in random order; an amount off only with a single price. */
  function suitable(items: Wanted[]): Coupon[] {
    const priced = items.filter(({ price }) => price.usage === 'licensed' && price.unitAmount !== 0)
    const fitting = coupons.filter(
      ({ currency, duration }) =>
        (currency === null || (currency === items[0]!.price.currency && priced.length === 1)) &&
        (features.onceCoupons || duration !== 'once'),
    )
    return fitting
      .map(coupon => ({ coupon, by: random.next() }))
      .sort((a, b) => a.by - b.by)
      .map(({ coupon }) => coupon)
  }

  function subscribe(from = catalog): Subscription {
    const made = subscriptions.start(customer, order(from))
    if (made.trialEnd !== null && random.happens(0.2))
      plan(random.between(made.startedAt + HOUR, made.trialEnd - HOUR), () => {
        if (subscriptions.get(made.id).status === 'trialing') subscriptions.cancelLater(made.id)
      })
    return made
  }

  const decide: Decision = decisionsOf({ ...options, company, subscribe, suitable, customer: () => customer })

  function next(): void {
    plan(journal.now + random.between(6 * DAY, 45 * DAY), () => {
      decide()
      if (features.sameSecond && random.happens(0.15)) decide()
      next()
    })
  }

  plan(arrives, () => {
    const name = `${random.pick(NAMES)} ${prefix}`
    customer = company.customer({ name, email: `${prefix}@example.com`, country })
    const first = journal.now + random.pick([0, 0, 45, 3 * DAY])
    plan(first, () => {
      subscribe()
      next()
    })
  })
  company.runUntil(until - 1)
  return company.facts()
}
