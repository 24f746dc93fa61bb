// Subscriptions from the order to the end: trials, changes, pauses, renewals, cancellations.
import { DAY, HOUR, later, type Unit } from './calendar.ts'
import type { Collecting, Order } from './collecting.ts'
import { discounting } from './discounting.ts'
import { periodLines, prorationLines } from './invoicing.ts'
import type { Journal } from './journal.ts'
import type { CancelReason, Cause, Coupon, FactOf, Invoice, Item, PauseBehavior, Price, Subscription } from './model.ts'

export type Wanted = { price: Price; quantity?: number }

export type SubscriptionOrder = Partial<
  Pick<Subscription, 'tax' | 'taxOn' | 'collection' | 'daysUntilDue' | 'acquisition' | 'country'>
> & {
  items: Wanted[]
  trialDays?: number
  coupons?: Coupon[]
  /** The customer must complete the first payment: until then the subscription is incomplete. */
  incomplete?: boolean
}

export type Subscribing = ReturnType<typeof subscribing>

const UNITS = ['day', 'week', 'month', 'year']

export function subscribing(journal: Journal, collect: () => Collecting) {
  const { subscriptions, customers, invoices, world } = journal
  const get = (id: string) => subscriptions.get(id)!

  function change(
    id: string,
    changes: Partial<Subscription>,
    { what = 'updated', cause = 'other' }: { what?: FactOf<'subscription'>['what']; cause?: Cause } = {},
  ): Subscription {
    const before = get(id)
    const after = { ...before, ...changes }
    subscriptions.set(id, after)
    journal.record({ kind: 'subscription', what, after, before, cause })
    return after
  }

  const discounts = discounting(journal, change)

  function start(customer: string, order: SubscriptionOrder): Subscription {
    const { items: wanted, trialDays = 0, coupons = [], incomplete = false } = order
    const id = journal.id('sub')
    const now = journal.now
    const trialEnd = trialDays > 0 ? now + trialDays * DAY : null
    const items = wanted.map(({ price, quantity = 1 }) => newItem(price, quantity))
    const given = coupons.map(coupon => discounts.newDiscount(coupon, customer, id))
    const collection = order.collection ?? 'charge_automatically'
    const subscription: Subscription = {
      id,
      customer,
      currency: items[0]!.price.currency,
      livemode: journal.livemode,
      createdAt: now,
      startedAt: now,
      status: trialEnd !== null ? 'trialing' : incomplete ? 'incomplete' : 'active',
      items,
      discounts: given,
      tax: order.tax ?? null,
      taxOn: order.taxOn ?? 'subscription',
      trialStart: trialEnd === null ? null : now,
      trialEnd,
      anchor: trialEnd ?? now,
      periodStart: now,
      periodEnd: trialEnd ?? periodAfter({ anchor: now, items }, now),
      cancelAt: null,
      cancelAtPeriodEnd: false,
      canceledAt: null,
      endedAt: null,
      cancelReason: null,
      pause: null,
      collection,
      daysUntilDue: collection === 'send_invoice' ? (order.daysUntilDue ?? 30) : null,
      acquisition: order.acquisition ?? null,
      country: order.country ?? null,
      latestInvoice: null,
    }
    for (const discount of given) discounts.giveDiscount(discount)
    const invoice = draftFor(subscription, 'subscription_create', trialEnd !== null)
    const created = { ...subscription, latestInvoice: invoice.id }
    subscriptions.set(id, created)
    const customerNow = customers.get(customer)!
    if (customerNow.currency === null) customers.set(customer, { ...customerNow, currency: created.currency })
    journal.record({ kind: 'subscription', what: 'created', after: created, before: null, cause: 'other' })
    if (incomplete && trialEnd === null) {
      journal.plan(now + world.hesitates(), () => collect().issue(invoice.id))
      journal.plan(now + 23 * HOUR, () => expire(id, invoice.id))
    } else {
      collect().issue(invoice.id)
    }
    if (trialEnd !== null && trialDays > 3)
      journal.plan(trialEnd - 3 * DAY, () => {
        if (get(id).status === 'trialing') change(id, {}, { what: 'trial_will_end' })
      })
    journal.plan(created.periodEnd, () => turn(id, created.periodEnd))
    return created
  }

  /** The first payment was never made. */
  function expire(id: string, invoice: string): void {
    if (get(id).status !== 'incomplete') return
    collect().stop(invoice)
    collect().void(invoice)
    change(id, { status: 'incomplete_expired', endedAt: journal.now })
  }

  /** The end of a period: the end of the subscription or of a trial, or the start of the next period. */
  function turn(id: string, at: number): void {
    const { status, periodEnd, cancelAt, pause } = get(id)
    if (isOver(id) || periodEnd !== at || status === 'paused') return
    if (status === 'incomplete') return
    if (cancelAt !== null && cancelAt <= at) {
      end(id, 'cancellation_requested')
      return
    }
    const wasTrial = status === 'trialing'
    if (wasTrial && !world.hasMeans(get(id))) {
      change(id, { status: 'paused' }, { what: 'paused', cause: 'trial_end' })
      return
    }
    const invoice = begin(id, at, {
      ...(wasTrial && { status: 'active' }),
      cause: wasTrial ? 'trial_end' : 'other',
    })
    if (pause && pause.behavior !== 'keep_as_draft') settlePaused(invoice, pause.behavior)
    else journal.plan(at + HOUR, () => issueLater(id, invoice.id))
  }

  /** Starts a period, with its invoice. */
  function begin(
    id: string,
    at: number,
    { cause, what, ...changes }: Partial<Subscription> & { cause: Cause; what?: FactOf<'subscription'>['what'] },
  ): Invoice {
    const renewed = { ...get(id), ...changes, periodStart: at }
    renewed.periodEnd = periodAfter(renewed, at)
    const invoice = draftFor(renewed, 'subscription_cycle', false)
    change(id, { ...renewed, latestInvoice: invoice.id }, { cause, ...(what && { what }) })
    journal.plan(renewed.periodEnd, () => turn(id, renewed.periodEnd))
    return invoice
  }

  /** Invoices during a pause are not collected. */
  function settlePaused(invoice: Invoice, behavior: PauseBehavior): void {
    const { amountDue } = collect().finalize(invoice.id)
    if (amountDue === 0) collect().settle(invoice.id, {})
    else if (behavior === 'void') collect().void(invoice.id)
    else collect().writeOff(invoice.id)
  }

  /** A draft is finalized after an hour, unless the subscription has ended, is paused or unpaid by then. */
  function issueLater(id: string, invoice: string): void {
    const { status, pause } = get(id)
    if (isOver(id) || pause || status === 'unpaid' || status === 'paused') return
    collect().issue(invoice)
  }

  function draftFor(subscription: Subscription, reason: Invoice['reason'], isTrial: boolean): Invoice {
    const isFirst = reason === 'subscription_create' || subscription.anchor === subscription.periodStart
    const used = (item: Item) => (isFirst ? null : world.uses(item))
    const lines = periodLines(subscription, used, () => journal.id('il'))
    const invoice = collect().draft({
      ...orderOf(subscription, reason),
      lines: isTrial ? lines.map(line => ({ ...line, amount: 0 })) : lines,
      discounts: isTrial ? [] : discounts.discountsOf(subscription),
    })
    if (!isTrial) journal.plan(journal.now, () => discounts.useUp(subscription.id))
    return invoice
  }

  function orderOf(
    { id, customer, currency, tax, collection, daysUntilDue, periodStart, periodEnd }: Subscription,
    reason: Invoice['reason'],
  ): Omit<Order, 'lines' | 'discounts'> {
    const period = { start: periodStart, end: periodEnd }
    return { customer, subscription: id, currency, reason, tax, collection, daysUntilDue, period }
  }

  function newItem(price: Price, quantity: number): Item {
    return { id: journal.id('si'), price, quantity, createdAt: journal.now }
  }

  function end(id: string, reason: CancelReason): void {
    const { canceledAt } = get(id)
    for (const invoice of collect().lateOf(id)) collect().stop(invoice.id)
    change(
      id,
      {
        status: 'canceled',
        canceledAt: canceledAt ?? journal.now,
        endedAt: journal.now,
        cancelReason: reason,
      },
      {
        what: 'deleted',
        cause: reason === 'payment_failed' ? 'cancellation_failed_payment' : 'cancellation_voluntary',
      },
    )
  }

  function isOver(id: string): boolean {
    return get(id).endedAt !== null
  }

  return {
    get,
    start,
    isOver,
    ...discounts,
    end,
    change,
    /** Replaces items immediately. The difference for the rest of the period is billed now, if requested. */
    changeItems(id: string, items: Item[], cause: Cause, { prorate = false } = {}): void {
      const before = get(id)
      if (periodOf(items) !== periodOf(before.items) && before.status === 'active' && !before.pause) {
        collect().issue(begin(id, journal.now, { items, anchor: journal.now, cause }).id)
        return
      }
      const after = change(id, { items }, { cause })
      if (!prorate || before.status !== 'active' || before.pause) return
      const lines = prorationLines({ before, after, at: journal.now }, () => journal.id('il'))
      if (lines.reduce((sum, line) => sum + line.amount, 0) <= 0) return
      const invoice = collect().draft({ ...orderOf(after, 'subscription_update'), lines, discounts: [] })
      change(id, { latestInvoice: invoice.id })
      collect().issue(invoice.id)
    },
    newItem,
    /** At the end of the period, or on a day. */
    cancelLater(id: string, at: number | null = null): void {
      const cancelAt = at ?? get(id).periodEnd
      change(id, { cancelAt, cancelAtPeriodEnd: at === null, canceledAt: journal.now })
      if (at !== null)
        journal.plan(at, () => {
          if (!isOver(id) && get(id).cancelAt === at && !get(id).cancelAtPeriodEnd) end(id, 'cancellation_requested')
        })
    },
    keep: (id: string) => change(id, { cancelAt: null, cancelAtPeriodEnd: false, canceledAt: null }),
    pause(id: string, { resumesAt = null, behavior = 'void' as PauseBehavior }: Pausing = {}): void {
      change(id, { pause: { since: journal.now, resumesAt, behavior } }, { cause: 'pause' })
      if (resumesAt === null) return
      journal.plan(resumesAt, () => {
        if (!isOver(id) && get(id).pause?.resumesAt === resumesAt) change(id, { pause: null }, { cause: 'resume' })
      })
    },
    resume: (id: string) => change(id, { pause: null }, { cause: 'resume' }),
    /** The customer adds a payment method after a trial ended without one: a new period starts. */
    unsuspend(id: string): void {
      const changes = { anchor: journal.now, status: 'active' as const }
      collect().issue(begin(id, journal.now, { ...changes, what: 'resumed', cause: 'resume' }).id)
    },
    onPaid(invoice: Invoice): void {
      const id = invoice.subscription
      if (id === null || isOver(id)) return
      const { status } = get(id)
      if (status === 'incomplete') change(id, { status: 'active' })
      else if ((status === 'past_due' || status === 'unpaid') && collect().lateOf(id).length === 0)
        change(id, { status: 'active' })
    },
    onLate({ subscription: id }: Invoice): void {
      if (id !== null && !isOver(id) && get(id).status === 'active') change(id, { status: 'past_due' })
    },
    onLost(invoice: Invoice): void {
      const id = invoice.subscription
      if (id === null || isOver(id) || get(id).status === 'incomplete') return
      const fate = world.whenLost(invoice)
      if (fate === 'unpaid') change(id, { status: 'unpaid' }, { cause: 'cancellation_failed_payment' })
      if (fate === 'cancel_and_write_off') collect().writeOff(invoice.id)
      if (fate.startsWith('cancel')) end(id, 'payment_failed')
    },
    invoicesOf: (id: string) => [...invoices.values()].filter(invoice => invoice.subscription === id),
  }
}

type Pausing = { resumesAt?: number | null; behavior?: PauseBehavior }

/** The next end of a period after an instant, counted from the anchor. */
function periodAfter({ anchor, items }: Pick<Subscription, 'anchor' | 'items'>, at: number): number {
  const { interval, intervalCount } = termOf(items)
  for (let n = 1; ; n++) {
    const end = later(anchor, interval as Unit, n * intervalCount!)
    if (end > at) return end
  }
}

function periodOf(items: Item[]): string {
  const { interval, intervalCount } = termOf(items)
  return `${intervalCount} ${interval}`
}

/** The billing unit; a month for errors in the catalog. */
function termOf(items: Item[]): Pick<Price, 'interval' | 'intervalCount'> {
  const sane = items.find(({ price }) => UNITS.includes(price.interval) && price.intervalCount)
  return sane?.price ?? { interval: 'month', intervalCount: 1 }
}
