import type pg from 'pg'
import { deriveInvoice } from '../domain/billing/cash.ts'
import { deriveSubscription } from '../domain/billing/timeline.ts'
import type { InvoiceVersion, Refund, SubscriptionVersion } from '../domain/billing/types.ts'
import { toMajor } from '../domain/money.ts'
import { readStripe } from '../domain/providers/stripe/stripe.ts'
import { currentInvoices, currentSegments, keptRefunds, ledgerIds } from '../store/billing/reconcile.ts'

/** A difference between Stripe and the ledger; null: the object is missing on that side. */
export type Difference = {
  object: Kind
  id: string
  field: 'existence' | 'status' | 'currency' | 'amount' | 'amount_paid'
  stripe: string | number | null
  kontor: string | number | null
}

type Reconciliation = {
  compared: Record<Kind, number>
  differences: Difference[]
  /** The number of differences, including those that are not listed. */
  difference: number
}

type Kind = 'subscription' | 'invoice' | 'refund'
type Seen = { id: string; facts: Omit<Facts, 'amountPaid'> & { amountPaid?: number } }
/** Amounts are in minor units; for a subscription, the monthly price before discounts. */
type Facts = { status: string; currency: string | null; amount: number; amountPaid: number }

const AT_ONCE = 500
const MOST_LISTED = 10_000
const PREFIXES = { subscription: 'sub_', invoice: 'in_', refund: 're_' } as const
const TABLES = {
  subscription: 'billing_subscriptions',
  invoice: 'billing_invoices',
  refund: 'billing_refunds',
} as const

/**
 * Compares the objects that Stripe lists with the ledger, in both directions. `events`: Stripe's objects, each as the event
 * that would report it. A kind of which Stripe lists no object is not compared.
 */
export async function reconcileStripe(
  pool: pg.Pool,
  tenantId: number,
  events: AsyncIterable<unknown>,
): Promise<Reconciliation> {
  const now = Date.now()
  const result: Reconciliation = {
    compared: { subscription: 0, invoice: 0, refund: 0 },
    differences: [],
    difference: 0,
  }
  const ids: Record<Kind, Set<string>> = { subscription: new Set(), invoice: new Set(), refund: new Set() }
  const waiting: Record<Kind, Map<string, Seen>> = { subscription: new Map(), invoice: new Map(), refund: new Map() }
  const add = (difference: Difference) => {
    result.difference++
    if (result.differences.length < MOST_LISTED) result.differences.push(difference)
  }
  const compare = async (kind: Kind) => {
    const kept = await ledgerFacts(pool, tenantId, kind, [...waiting[kind].keys()])
    for (const [id, { facts }] of waiting[kind]) findDifferences(kind, id, facts, kept.get(id) ?? null).forEach(add)
    result.compared[kind] += waiting[kind].size
    waiting[kind].clear()
  }
  for await (const event of events) {
    const facts = stripeFacts(event, now)
    if (!facts || ids[facts.kind].has(facts.id)) continue
    ids[facts.kind].add(facts.id)
    waiting[facts.kind].set(facts.id, facts)
    if (waiting[facts.kind].size >= AT_ONCE) await compare(facts.kind)
  }
  for (const kind of ['subscription', 'invoice', 'refund'] as const) {
    await compare(kind)
    if (ids[kind].size > 0)
      for await (const id of listOnlyInKontor(pool, tenantId, kind, ids[kind])) add(missingInStripe(kind, id))
  }
  return result
}

/** Stripe's values of an object; null: the object is not compared, or has no amount. */
function stripeFacts(event: unknown, now: number): (Seen & { kind: Kind }) | null {
  const change = readStripe(event, now)
  if (change?.kind === 'subscription') {
    const { version } = change
    if (version.testMode) return null
    return { kind: 'subscription', id: version.id, facts: subscriptionFacts(version, now) }
  }
  if (change?.kind === 'invoice') return { kind: 'invoice', id: change.version.id, facts: invoiceFacts(change.version) }
  const refund = change?.kind === 'cash' ? change.refunds.find(({ id }) => id.startsWith(PREFIXES.refund)) : undefined
  return refund ? { kind: 'refund', id: refund.id, facts: refundFacts(refund) } : null
}

function subscriptionFacts(version: SubscriptionVersion, now: number): Seen['facts'] {
  const { segments } = deriveSubscription([version])
  const { status, currency, items } = segments.findLast(({ from }) => from <= now) ?? segments[0]!
  return { status, currency, amount: items.reduce((sum, { grossMrr }) => sum + grossMrr, 0) }
}

function invoiceFacts(version: InvoiceVersion): Seen['facts'] {
  const { status, currency, total, amountPaid } = deriveInvoice([version]).at(-1)!
  return { status, currency, amount: total, amountPaid }
}

function refundFacts({ counts, currency, amount }: Refund): Seen['facts'] {
  return { status: counts ? 'counted' : 'undone', currency, amount: amount ?? 0 }
}

async function ledgerFacts(
  pool: pg.Pool,
  tenantId: number,
  kind: Kind,
  ids: string[],
): Promise<Map<string, Seen['facts']>> {
  if (ids.length === 0) return new Map()
  if (kind === 'subscription') {
    const segments = await currentSegments(pool, tenantId, ids)
    return mapValues(segments, ({ status, currency, items }) => ({
      ...{ status, currency, amount: items.reduce((sum, { grossMrr }) => sum + grossMrr, 0) },
    }))
  }
  if (kind === 'invoice') {
    const states = await currentInvoices(pool, tenantId, ids)
    return mapValues(states, ({ status, currency, total, amountPaid }) => ({
      status,
      currency,
      amount: total,
      amountPaid,
    }))
  }
  return mapValues(await keptRefunds(pool, tenantId, ids), ({ counted, currency, amount }) => ({
    ...{ status: counted ? 'counted' : 'undone', currency, amount },
  }))
}

function mapValues<A, B>(map: Map<string, A>, change: (value: A) => B): Map<string, B> {
  return new Map([...map].map(([id, value]) => [id, change(value)]))
}

function findDifferences(object: Kind, id: string, stripe: Seen['facts'], kontor: Seen['facts'] | null): Difference[] {
  if (!kontor) return [{ object, id, field: 'existence', stripe: stripe.status, kontor: null }]
  const amount = ({ currency }: Seen['facts'], minor: number | undefined) =>
    minor === undefined ? null : currency ? toMajor(minor, currency) : minor
  const pairs: [Difference['field'], Difference['stripe'], Difference['kontor']][] = [
    ['status', stripe.status, kontor.status],
    ['currency', stripe.currency, kontor.currency],
    ['amount', amount(stripe, stripe.amount), amount(kontor, kontor.amount)],
    ['amount_paid', amount(stripe, stripe.amountPaid), amount(kontor, kontor.amountPaid)],
  ]
  return pairs.flatMap(([field, theirs, ours]) =>
    theirs === ours ? [] : [{ object, id, field, stripe: theirs, kontor: ours }],
  )
}

function missingInStripe(object: Kind, id: string): Difference {
  return { object, id, field: 'existence', stripe: null, kontor: 'there' }
}

async function* listOnlyInKontor(
  pool: pg.Pool,
  tenantId: number,
  kind: Kind,
  theirs: Set<string>,
): AsyncGenerator<string> {
  for (let after = ''; ; ) {
    const page = await ledgerIds(pool, tenantId, TABLES[kind], { prefix: PREFIXES[kind], after, limit: 1_000 })
    for (const id of page) if (!theirs.has(id)) yield id
    if (page.length === 0) return
    after = page.at(-1)!
  }
}
