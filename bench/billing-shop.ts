import type pg from 'pg'
import { readBilling } from '../src/domain/billing/read.ts'
import { DAY_MS } from '../src/domain/time.ts'
import { applyBilling, type BillingFact } from '../src/pipeline/billing/billing.ts'
import { inTransaction } from '../src/postgres/database.ts'

const SUBSCRIPTIONS_AT_A_TIME = 1_000

/** Loads subscriptions of a realistic shop into the ledger through the event pipeline. */
export async function fillLedger(
  pool: pg.Pool,
  tenantId: number,
  subscriptions: number,
  now = new Date(),
): Promise<number> {
  let events = 0
  for (let first = 0; first < subscriptions; first += SUBSCRIPTIONS_AT_A_TIME) {
    const count = Math.min(SUBSCRIPTIONS_AT_A_TIME, subscriptions - first)
    const facts = Array.from({ length: count }, (_, i) => buildFacts(tenantId, first + i, now.getTime())).flat()
    await inTransaction(pool, client => applyBilling({ client, now, configVersion: 1 }, facts))
    events += facts.length
  }
  return events
}

/** One more change of some subscriptions, as a billing system sends during the day. */
export async function changeLedger(
  pool: pg.Pool,
  tenantId: number,
  numbers: number[],
  now = new Date(),
): Promise<void> {
  const facts = numbers.flatMap(number => {
    const [first] = buildFacts(tenantId, number, now.getTime())
    if (first?.change.kind !== 'subscription') return []
    const [item] = first.change.version.items
    const version = {
      ...first.change.version,
      sourceAt: now.getTime(),
      change: 'updated' as const,
      items: [{ ...item!, quantity: 3, billedQuantity: 3 + (now.getTime() % 7) }],
    }
    const eventId = buildUuid(now.getTime() % 0xffffffff, 0)
    return [
      {
        ...first,
        eventId,
        eventType: 'subscription.updated',
        change: { kind: 'subscription' as const, version },
      },
    ]
  })
  await inTransaction(pool, client => applyBilling({ client, now, configVersion: 1 }, facts))
}

type Plan = { unit_amount: number; interval: string; interval_count: number }

const PLANS: Plan[] = [
  { unit_amount: 9, interval: 'month', interval_count: 1 },
  { unit_amount: 29, interval: 'month', interval_count: 1 },
  { unit_amount: 49, interval: 'month', interval_count: 1 },
  { unit_amount: 99, interval: 'month', interval_count: 1 },
  { unit_amount: 290, interval: 'year', interval_count: 1 },
  { unit_amount: 990, interval: 'year', interval_count: 1 },
  { unit_amount: 79, interval: 'month', interval_count: 3 },
]
const SOURCES = ['google', 'newsletter', 'partner', 'linkedin', 'podcast', 'referral']

/** All events of one subscription and its last invoices. */
function buildFacts(tenantId: number, number: number, now: number): BillingFact[] {
  const dice = diceFor(number)
  const id = `sub_${number}`
  const customer = `cus_${dice() < 0.1 && number > 0 ? number - 1 : number}`
  const startedAt = now - Math.floor((1 + dice() * 729) * DAY_MS)
  const currency = dice() < 0.85 ? 'EUR' : dice() < 0.8 ? 'USD' : 'JPY'
  const plan = pick(PLANS, dice)
  const fate = dice()
  const periodEnd = now + Math.floor(dice() * (plan.interval === 'year' ? 365 : 30) * DAY_MS) + 3_600_000
  const base = {
    id,
    customer,
    customer_name: `Customer ${customer}`,
    customer_email: `${customer}@example.com`,
    currency,
    started_at: new Date(startedAt).toISOString(),
    current_period_end: new Date(periodEnd).toISOString(),
    ...(dice() < 0.6 && { acquisition: { source: pick(SOURCES, dice), medium: 'cpc', campaign: null } }),
    ...(dice() < 0.05 && {
      discounts: [{ percent_off: 20, duration: 'repeating', ends_at: later(now, dice()) }],
    }),
  }
  const item = {
    id: `si_${number}`,
    price_id: `price_${plan.unit_amount}`,
    name: `Plan ${plan.unit_amount}`,
    ...plan,
  }
  const facts: BillingFact[] = []
  const say = (eventType: string, at: number, object: object) => {
    const change = readBilling(eventType, { ...object, updated_at: new Date(at).toISOString() }, at)
    if (change)
      facts.push({
        tenantId,
        eventId: buildUuid(number, facts.length),
        eventType,
        sourceId: null,
        namespace: 'default',
        node: null,
        receivedAt: new Date(at),
        change,
      })
  }
  say('subscription.created', startedAt, {
    ...base,
    status: fate < 0.05 ? 'trialing' : 'active',
    items: [item],
  })
  if (dice() < 0.25) {
    const at = startedAt + dice() * (now - startedAt)
    say('subscription.updated', at, { ...base, status: 'active', items: [{ ...item, quantity: 2 }] })
  }
  const at = now - dice() * dice() * (now - startedAt)
  if (fate > 0.8)
    say('subscription.deleted', at, {
      ...base,
      status: 'canceled',
      ended_at: new Date(at).toISOString(),
      items: [item],
    })
  else if (fate > 0.75)
    say('subscription.updated', at, { ...base, status: 'active', cancel_at_period_end: true, items: [item] })
  else if (fate > 0.72) say('subscription.updated', at, { ...base, status: 'past_due', items: [item] })
  if (fate > 0.8) return facts
  for (const months of [2, 1]) {
    const finalized = now - (months - dice()) * 30 * DAY_MS
    const invoice = {
      id: `in_${number}_${months}`,
      subscription: id,
      customer,
      currency,
      total: plan.unit_amount,
      finalized_at: new Date(finalized).toISOString(),
    }
    const failed = fate > 0.72 && fate < 0.75 && months === 1
    if (failed)
      say('invoice.payment_failed', finalized, {
        ...invoice,
        status: 'open',
        amount_remaining: plan.unit_amount,
        attempt_count: 2,
      })
    else
      say('invoice.paid', finalized, {
        ...invoice,
        status: 'paid',
        paid_at: new Date(finalized).toISOString(),
      })
  }
  return facts
}

function later(now: number, share: number): string {
  return new Date(now + (share - 0.3) * 180 * DAY_MS).toISOString()
}

function pick<T>(values: T[], dice: () => number): T {
  return values[Math.floor(dice() * values.length)]!
}

/** Deterministic: the same subscription gets the same numbers in every run. */
function diceFor(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b1
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

function buildUuid(number: number, part: number): string {
  return `00000000-0000-7000-8000-${(number * 16 + part).toString(16).padStart(12, '0')}`
}
