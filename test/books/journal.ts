// The company's clock, agenda, journal and current state.
import type {
  Coupon,
  Customer,
  Dispute,
  Fact,
  FactBody,
  Invoice,
  Item,
  Payment,
  Refund,
  Subscription,
} from './model.ts'

type PaymentOutcome = 'succeeds' | 'fails' | 'needs_action'

/** The behavior of customers and banks. */
export type World = {
  /** Whether an attempt to collect succeeds; `nth` counts from 1. */
  pays(invoice: Invoice, nth: number): PaymentOutcome
  /** The final status of a subscription whose invoice was never paid. */
  whenLost(invoice: Invoice): 'cancel' | 'cancel_and_write_off' | 'unpaid' | 'leave'
  /** Units used of a metered item in a period. */
  uses(item: Item): number
  /** Days after finalization on which parts of a sent invoice are paid; empty: never. */
  transfers(invoice: Invoice): { afterDays: number; part: number }[]
  /** Seconds between an order and its first payment. */
  hesitates(): number
  /** Whether there is a payment method when a trial ends. */
  hasMeans(subscription: Subscription): boolean
}

const OBLIGING: World = {
  pays: () => 'succeeds',
  whenLost: () => 'cancel',
  uses: () => 10,
  transfers: () => [{ afterDays: 5, part: 1 }],
  hesitates: () => 0,
  hasMeans: () => true,
}

export type JournalOptions = { prefix?: string; livemode?: boolean; world?: Partial<World> }

export type Journal = ReturnType<typeof openJournal>

export function openJournal({ prefix = '', livemode = true, world = {} }: JournalOptions = {}) {
  const facts: Fact[] = []
  const agenda: { at: number; order: number; run: () => void }[] = []
  const counts = new Map<string, number>()
  let now = 0
  let planned = 0

  return {
    facts,
    livemode,
    world: { ...OBLIGING, ...world },
    coupons: new Map<string, Coupon>(),
    customers: new Map<string, Customer>(),
    subscriptions: new Map<string, Subscription>(),
    invoices: new Map<string, Invoice>(),
    payments: new Map<string, Payment>(),
    refunds: new Map<string, Refund>(),
    disputes: new Map<string, Dispute>(),
    get now() {
      return now
    },
    /** The same for the same history: `sub_<prefix>2` is the second. */
    id(kind: string): string {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}_${prefix}${count}`
    },
    record(body: FactBody): void {
      facts.push({ ...body, at: now, order: facts.length })
    },
    /** Plans an action, for now if the time is past. Actions of one instant run in the order of planning. */
    plan(at: number, run: () => void): void {
      const entry = { at: Math.max(at, now), order: planned++, run }
      let i = agenda.length
      while (i > 0 && agenda[i - 1]!.at > entry.at) i--
      agenda.splice(i, 0, entry)
    },
    /** Advances time, up to and including an instant. */
    runUntil(at: number): void {
      while (agenda.length > 0 && agenda[0]!.at <= at) {
        const entry = agenda.shift()!
        now = entry.at
        entry.run()
      }
      now = Math.max(now, at)
    },
  }
}
