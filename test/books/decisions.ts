// Random decisions of a customer or of the company on a day.
import { DAY } from './calendar.ts'
import type { Catalog } from './catalog.ts'
import type { Company } from './company.ts'
import type { Features } from './features.ts'
import type { Coupon, Payment, Subscription } from './model.ts'
import { share } from './money.ts'
import type { Chance } from './random.ts'
import type { Wanted } from './subscribing.ts'

export type Decision = () => void

export type LifeOptions = {
  random: Chance
  features: Features
  livemode: boolean
  country: string
  catalog: Catalog
  /** For customers who also buy in another currency. */
  other: Catalog
  coupons: Coupon[]
  prefix: string
  arrives: number
  until: number
  isLarge: boolean
}

type Options = LifeOptions & {
  company: Company
  customer: () => string
  subscribe: (from?: Catalog) => Subscription
  suitable: (items: Wanted[]) => Coupon[]
}

export function decisionsOf(options: Options): Decision {
  const { random, features, catalog, other, company, customer, subscribe, suitable, coupons } = options
  const { subscriptions, money, journal, plan } = company

  function decide(): void {
    const running = [...journal.subscriptions.values()].filter(({ endedAt }) => endedAt === null)
    if (running.length === 0) {
      if (features.reactivations && random.happens(0.35)) subscribe()
      return
    }
    const subscription = random.pick(running)
    if (subscription.status === 'paused') settleSuspended(subscription)
    else if (subscription.pause) continueAfterPause(subscription)
    else if (subscription.cancelAt !== null) reconsider(subscription)
    else if (subscription.status === 'active') change(subscription)
    else if (subscription.status === 'past_due' && random.happens(0.1)) cancelNow(subscription)
    if (random.happens(0.25)) handleMoney()
  }

  function settleSuspended({ id }: Subscription): void {
    if (random.happens(0.4)) subscriptions.unsuspend(id)
    else subscriptions.end(id, 'cancellation_requested')
  }

  function continueAfterPause({ id, pause }: Subscription): void {
    if (pause!.resumesAt === null && random.happens(0.6)) subscriptions.resume(id)
    else if (random.happens(0.1)) subscriptions.end(id, 'cancellation_requested')
  }

  function reconsider({ id }: Subscription): void {
    if (random.happens(0.35)) subscriptions.keep(id)
  }

  function change(subscription: Subscription): void {
    const { id } = subscription
    const decision = random.weighted({
      nothing: 30,
      ...(features.seats && { seats: 16 }),
      ...(features.planChanges && { plan: 6 }),
      ...(features.priceChanges && { price: 4 }),
      ...(features.addOns && { addOn: 6 }),
      ...(features.secondSubscriptions && { second: 4 }),
      ...(features.coupons && { coupon: 6 }),
      ...(features.customerCoupons && { customerCoupon: 4 }),
      ...(features.pauses && { pause: 5 }),
      ...(features.scheduledCancellations && { cancelLater: 7 }),
      ...(features.immediateCancellations && { cancelNow: 4 }),
      rename: 1,
    })
    if (decision === 'seats') changeSeats(subscription)
    if (decision === 'plan') changePlan(subscription)
    if (decision === 'price') raisePrice(subscription)
    if (decision === 'addOn') changeAddOn(subscription)
    if (decision === 'second' && journal.subscriptions.size < 5) subscribe(random.happens(0.15) ? other : catalog)
    if (decision === 'coupon') changeCoupon(subscription)
    if (decision === 'customerCoupon') changeCustomerCoupon()
    if (decision === 'pause') pause(subscription)
    if (decision === 'cancelLater') cancelLater(subscription)
    if (decision === 'cancelNow') cancelNow(subscription)
    if (decision === 'rename') company.rename(customer(), { name: `Renamed ${id}` })
  }

  function changeSeats({ id, items }: Subscription): void {
    const { id: item, price, quantity } = items[0]!
    if (price.unitAmount === 0) return
    company.seats(id, item, Math.max(1, quantity + random.pick([-5, -2, -1, 1, 1, 2, 3, 10])), {
      prorate: random.happens(0.7),
    })
  }

  function changePlan({ id, items }: Subscription): void {
    const { starter, starterNow, team, businessMonthly, teamYearly, business, graduated } = catalog
    const { id: item, price } = items[0]!
    if (price.currency !== catalog.currency) return
    const sameTerm = [starterNow, team, businessMonthly, ...(features.tiers ? [graduated] : [])]
    const monthly = [starter.id, ...sameTerm.map(choice => choice.id)].includes(price.id)
    const yearly = [teamYearly.id, business.id].includes(price.id)
    const choices = [...(monthly ? sameTerm : []), ...(yearly ? [teamYearly, business] : [])]
    if (features.termChanges && items.length === 1) choices.push(...(monthly ? [teamYearly] : yearly ? [team] : []))
    const fitting = choices.filter(choice => choice.id !== price.id)
    if (fitting.length > 0) company.price(id, item, random.pick(fitting))
  }

  function raisePrice({ id, items }: Subscription): void {
    const old = items.find(({ price }) => price.id === catalog.starter.id)
    if (old) company.price(id, old.id, catalog.starterNow, { prorate: false })
  }

  function changeAddOn({ id, items, discounts }: Subscription): void {
    const { interval, intervalCount, currency, product } = items[0]!.price
    const { month, year } = catalog.support
    const addOn = items.find(({ price }) => price.product === month.product)
    if (addOn && items.length > 1) {
      company.removeItem(id, addOn.id)
      return
    }
    const isPlain = intervalCount === 1 && (interval === 'month' || interval === 'year')
    const takesAmount = discounts.some(({ coupon }) => coupon.amountOff !== null)
    if (!isPlain || takesAmount || currency !== catalog.currency || product === month.product) return
    company.addItem(id, interval === 'year' ? year : month)
  }

  function changeCoupon({ id, items, discounts, customer: owner }: Subscription): void {
    if (discounts.length > 0 && random.happens(0.4)) {
      subscriptions.removeDiscount(id, random.pick(discounts))
      return
    }
    const mayStack = discounts.length === 0 || (features.stackedCoupons && discounts.length < 3)
    const hasBoth = journal.customers.get(owner)!.discount !== null
    const fitting = suitable(items).filter(
      coupon =>
        !discounts.some(discount => discount.coupon.id === coupon.id) && !(hasBoth && coupon.duration === 'once'),
    )
    if (mayStack && fitting.length > 0) subscriptions.addCoupon(id, fitting[0]!)
  }

  function changeCustomerCoupon(): void {
    if (journal.customers.get(customer())!.discount) {
      subscriptions.takeCustomerCoupon(customer())
      return
    }
    const fitting = coupons.filter(({ percentOff, duration }) => percentOff !== null && duration !== 'once')
    const hasOnce = [...journal.subscriptions.values()].some(({ discounts }) =>
      discounts.some(({ coupon }) => coupon.duration === 'once'),
    )
    if (fitting.length > 0 && !hasOnce) subscriptions.giveCustomerCoupon(customer(), random.pick(fitting))
  }

  function pause({ id }: Subscription): void {
    const isTimed = features.resumesAt && random.happens(0.5)
    subscriptions.pause(id, {
      behavior: random.pick(features.writeOffs ? ['void', 'keep_as_draft', 'mark_uncollectible'] : ['void']),
      ...(isTimed && { resumesAt: journal.now + random.between(10, 80) * DAY }),
    })
  }

  function cancelLater({ id }: Subscription): void {
    if (features.cancelDates && random.happens(0.25))
      subscriptions.cancelLater(id, journal.now + random.between(3, 50) * DAY)
    else subscriptions.cancelLater(id)
  }

  function cancelNow({ id }: Subscription): void {
    subscriptions.end(id, 'cancellation_requested')
  }

  /** Refundable payments, the newest last. */
  function returnable(): Payment[] {
    const disputed = new Set([...journal.disputes.values()].map(({ payment }) => payment.id))
    return [...journal.payments.values()].filter(
      payment => payment.outcome === 'succeeded' && money.left(payment) > 0 && !disputed.has(payment.id),
    )
  }

  function handleMoney(): void {
    const payment = returnable().at(-1)
    const decision = random.weighted({
      nothing: 1,
      ...(features.refunds && { refund: 4 }),
      ...(features.disputes && { dispute: 2 }),
      ...(features.creditNotes && { creditNote: 4 }),
      ...(features.charges && { charge: 4 }),
      ...(features.manualInvoices && { manualInvoice: 3 }),
    })
    if (decision === 'refund' && payment) refund(payment)
    if (decision === 'dispute' && payment?.subscription && money.left(payment) === payment.amount) dispute(payment)
    if (decision === 'creditNote') creditNote()
    if (decision === 'charge')
      money.charge(customer(), catalog.currency, random.between(2, 40) * catalog.starter.unitAmount!, 'Workshop')
    if (decision === 'manualInvoice') manualInvoice()
  }

  function refund(payment: Payment): void {
    const left = money.left(payment)
    const amount = random.happens(0.5) ? left : Math.max(1, share(left, random.pick([0.1, 0.25, 0.5])))
    const { id } = money.refund(payment.id, amount)
    if (features.failedRefunds && random.happens(0.08)) plan(journal.now + 4 * DAY, () => money.failRefund(id))
  }

  function dispute(payment: Payment): void {
    const id = money.dispute(payment.id)
    const outcome = random.weighted({ won: 3, lost: 4, open: 2 })
    if (outcome !== 'open') plan(journal.now + random.between(15, 60) * DAY, () => money.closeDispute(id, outcome))
  }

  function creditNote(): void {
    const invoices = [...journal.invoices.values()].filter(({ total }) => total > 0)
    const open = invoices.filter(({ status }) => status === 'open').at(-1)
    if (open && random.happens(0.5)) {
      const amount = random.happens(0.3) ? open.amountRemaining : share(open.amountRemaining, 0.2)
      if (amount > 0) money.creditNote(open.id, amount, 'refund')
      return
    }
    const payment = returnable().findLast(({ invoice }) => invoice !== null)
    if (!payment) return
    const invoice = journal.invoices.get(payment.invoice!)!
    const left = Math.min(money.left(payment), invoice.amountPaid - invoice.creditedAfterPayment)
    const amount = random.happens(0.4) ? left : share(left, 0.3)
    const how = random.pick(['refund', 'out_of_band', ...(features.balances ? (['balance'] as const) : [])] as const)
    const isUsable = how !== 'balance' || journal.customers.get(customer())!.currency === invoice.currency
    if (amount > 0 && invoice.status === 'paid' && isUsable) money.creditNote(invoice.id, amount, how)
  }

  function manualInvoice(): void {
    const lines = [{ description: 'Setup', quantity: 1, unitAmount: 7 * catalog.starter.unitAmount! }]
    if (random.happens(0.5))
      lines.push({ description: 'Training', quantity: 3, unitAmount: 2 * catalog.starter.unitAmount! })
    const collection = features.sentInvoices && random.happens(0.4) ? 'send_invoice' : 'charge_automatically'
    money.manualInvoice(customer(), catalog.currency, lines, { collection })
  }

  return decide
}
