import type pg from 'pg'
import { deriveInvoice } from '../domain/billing/cash.ts'
import { addNamespace, qualifyId, stripNamespaces } from '../domain/billing/namespace.ts'
import { DEFAULT_POLICY, type Policy } from '../domain/billing/policy.ts'
import { indexTerms, type KnownTerms, mergeTerm, NO_TERMS } from '../domain/billing/terms.ts'
import { deriveSubscription, type Segment, type SegmentItem } from '../domain/billing/timeline.ts'
import type { BillingChange, InvoiceVersion, Refund, SubscriptionVersion, Term } from '../domain/billing/types.ts'
import { isObject } from '../domain/json/json.ts'
import { toMajor } from '../domain/money.ts'
import { readStripe } from '../domain/providers/stripe/stripe.ts'
import { termsNamedBy } from '../pipeline/billing/subscriptions.ts'
import { appliedPolicy } from '../store/billing/policies.ts'
import {
  currentInvoices,
  keptRefunds,
  type LedgerObject,
  listLedgerObjects,
  refundedTotals,
  segmentsFromNow,
} from '../store/billing/reconcile.ts'

/** A difference between the ledger (`here`) and Stripe (`there`). If the field is `existence`, null means that the object is missing. */
type Difference = { kind: Kind; id: string; field: string; here: Value; there: Value }

type Value = string | number | boolean | string[] | null
type Kind = 'subscription' | 'invoice' | 'refund'

export type Reconciliation = {
  /** The number of objects that exist on both sides. */
  compared: { subscriptions: number; invoices: number; refunds: number }
  differences: Difference[]
  /** The number of differences, if not all are listed. */
  differences_total?: number
  /** Objects of test mode at Stripe. They are not compared. */
  ignoredTestObjects: number
}

/** What MRR and cash are made of, by the name of the field. */
type Facts = Record<string, Value>

type Account = {
  tenantId: number
  namespace: string
  /** Sources with another namespace: objects that only they reported do not belong to this account. */
  otherSources: string[]
}

const AT_ONCE = 500
const MOST_LISTED = 10_000
const COUNTS = { subscription: 'subscriptions', invoice: 'invoices', refund: 'refunds' } as const

/**
 * Compares the objects that Stripe lists with the ledger, in both directions. `events`: Stripe's objects, each as the event that
 * would report it. `terms`: coupons, discounts and customers that Stripe lists. The ledger's terms apply where Stripe shows none.
 */
export async function reconcileStripe(
  pool: pg.Pool,
  account: Account,
  { events, terms }: { events: AsyncIterable<unknown>; terms: TermsByCustomer },
): Promise<Reconciliation> {
  const now = Date.now()
  const policy = await appliedPolicy(pool, account.tenantId)
  const result: Reconciliation = {
    compared: { subscriptions: 0, invoices: 0, refunds: 0 },
    differences: [],
    ignoredTestObjects: 0,
  }
  const seen: Record<Kind, Set<string>> = { subscription: new Set(), invoice: new Set(), refund: new Set() }
  let total = 0
  const add = (difference: Difference) => {
    total++
    if (result.differences.length < MOST_LISTED)
      result.differences.push({ ...difference, id: stripNamespaces(difference.id) })
  }
  const addMissing = (kind: Kind, id: string, values: { here: Value } | { there: Value }) =>
    add({ kind, id, field: 'existence', here: null, there: null, ...values })
  const addDifferent = (kind: Kind, id: string, here: Facts, there: Facts) => {
    result.compared[COUNTS[kind]]++
    for (const field of Object.keys(there))
      if (JSON.stringify(here[field]) !== JSON.stringify(there[field]))
        add({ kind, id, field, here: here[field]!, there: there[field]! })
  }

  const subscriptions = new Map<string, { version: SubscriptionVersion; terms: Term[] }>()
  async function compareSubscriptions(): Promise<void> {
    const ledger = await segmentsFromNow(pool, account.tenantId, [...subscriptions.keys()])
    const versions = [...subscriptions.values()].map(({ version }) => ({ tenantId: account.tenantId, version }))
    const shown = [...subscriptions.values()].flatMap(({ version, terms: own }) => [
      ...(terms.get(version.customer) ?? []),
      ...own,
    ])
    const ledgerTerms = (await termsNamedBy(pool, versions)).get(account.tenantId) ?? NO_TERMS
    const termsThere = preferTerms(ledgerTerms, [...(terms.get(null) ?? []), ...shown])
    for (const [id, { version }] of subscriptions) {
      const there = currentSegments(deriveSubscription([version], termsThere, policy).segments, now)
      const here = ledger.get(id)
      if (!here) addMissing('subscription', id, { there: there[0]!.status })
      else addDifferent('subscription', id, ...subscriptionFacts(here, there, { version, termsThere, policy, now }))
    }
    subscriptions.clear()
  }

  const invoices = new Map<string, InvoiceVersion>()
  async function compareInvoices(): Promise<void> {
    const ledger = await currentInvoices(pool, account.tenantId, [...invoices.keys()])
    for (const [id, version] of invoices) {
      const there = invoiceFacts(deriveInvoice([version]).at(-1)!)
      const here = ledger.get(id)
      if (here) addDifferent('invoice', id, invoiceFacts(here), there)
      else addMissing('invoice', id, { there: there.status! })
    }
    invoices.clear()
  }

  const refunds = new Map<string, Refund>()
  const refunded = new Map<string, { total: number; missing: Refund[] }>()
  async function compareRefunds(): Promise<void> {
    const ledger = await keptRefunds(pool, account.tenantId, [...refunds.keys()])
    for (const [id, refund] of refunds) {
      const here = ledger.get(id)
      const payment = refund.paymentId ?? id
      const sum = refunded.get(payment) ?? { total: 0, missing: [] }
      if (refund.counts) sum.total += refund.amount ?? 0
      refunded.set(payment, sum)
      if (here) addDifferent('refund', id, ...refundFacts(here, { ...refund, counted: refund.counts }))
      // a refund that failed before it was known changes nothing
      else if (refund.counts) sum.missing.push(refund)
      else result.compared.refunds++
    }
    refunds.clear()
  }
  /** Some API versions report only the refunded total of a charge. */
  async function compareTotals(): Promise<void> {
    const missing = [...refunded].filter(([, sum]) => sum.missing.length > 0)
    for (let i = 0; i < missing.length; i += AT_ONCE) {
      const some = missing.slice(i, i + AT_ONCE)
      const totals = await refundedTotals(
        pool,
        account.tenantId,
        some.map(([payment]) => payment),
      )
      for (const [payment, sum] of some)
        if (totals.get(payment) === sum.total) result.compared.refunds += sum.missing.length
        else for (const { id, status } of sum.missing) addMissing('refund', id, { there: status ?? 'succeeded' })
    }
  }

  for await (const event of events) {
    if (isTestMode(event)) {
      result.ignoredTestObjects++
      continue
    }
    const change = readChange(event, account.namespace, now)
    if (change?.kind === 'subscription' && isNew(seen.subscription, change.version.id)) {
      const own = [...(change.terms ?? []), ...customerTerms(event, account.namespace, now)]
      subscriptions.set(change.version.id, { version: change.version, terms: own })
      if (subscriptions.size >= AT_ONCE) await compareSubscriptions()
    }
    if (change?.kind === 'invoice' && isNew(seen.invoice, change.version.id)) {
      invoices.set(change.version.id, change.version)
      if (invoices.size >= AT_ONCE) await compareInvoices()
    }
    const refund = isRefund(event) && change?.kind === 'cash' ? change.refunds[0] : undefined
    if (refund && isNew(seen.refund, refund.id)) {
      refunds.set(refund.id, refund)
      if (refunds.size >= AT_ONCE) await compareRefunds()
    }
  }
  await compareSubscriptions()
  await compareInvoices()
  await compareRefunds()
  await compareTotals()
  for (const kind of ['subscription', 'invoice', 'refund'] as const)
    for await (const { id, state, paymentId } of listLedger(pool, account, kind)) {
      const isThere = kind === 'refund' && isChargeTotal(id) ? refunded.has(paymentId ?? '') : seen[kind].has(id)
      if (!isThere) addMissing(kind, id, { here: state })
    }
  return { ...result, ...(total > result.differences.length && { differences_total: total }) }
}

/** Terms of customers by customer; coupons and all others under null. */
type TermsByCustomer = Map<string | null, Term[]>

/** The coupons, discounts and customers among Stripe's objects. */
export async function collectTerms(events: AsyncIterable<unknown>, namespace: string): Promise<TermsByCustomer> {
  const terms: Term[] = []
  const now = Date.now()
  for await (const event of events) {
    const change = isTestMode(event) ? null : readChange(event, namespace, now)
    if (change?.kind === 'terms') terms.push(...change.terms.map(({ name: _, email: _email, ...term }) => term))
  }
  return Map.groupBy(terms, ({ kind, id, customer }) => (kind === 'customer' ? id : (customer ?? null)))
}

function readChange(event: unknown, namespace: string, now: number): BillingChange | null {
  const change = readStripe(event, now)
  return change && addNamespace(namespace, change)
}

function stripeObject(event: unknown): Record<string, unknown> {
  return (event as { data: { object: Record<string, unknown> } }).data.object
}

function isTestMode(event: unknown): boolean {
  return stripeObject(event).livemode === false
}

function isRefund(event: unknown): boolean {
  return stripeObject(event).object === 'refund'
}

/** Totals of charges have the id of the charge and the total. */
function isChargeTotal(id: string): boolean {
  return /^(ch|py)_[^:]*:/.test(stripNamespaces(id))
}

/** The terms in the customer that a subscription contains as an object. */
function customerTerms(event: unknown, namespace: string, now: number): Term[] {
  const { customer } = stripeObject(event)
  if (!isObject(customer) || customer.deleted === true) return []
  const change = readChange(
    { object: 'event', type: 'customer.updated', data: { object: { ...customer, object: 'customer' } } },
    namespace,
    now,
  )
  return change?.kind === 'terms' ? change.terms : []
}

function isNew(ids: Set<string>, id: string): boolean {
  return !ids.has(id) && ids.add(id) !== undefined
}

/** The ledger's terms, replaced by those of Stripe. A customer that Stripe shows has only the discounts that Stripe shows. */
function preferTerms(known: KnownTerms, terms: Term[]): KnownTerms {
  if (terms.length === 0) return known
  const byKey = Map.groupBy(terms, ({ kind, id }) => `${kind} ${id}`)
  const there = indexTerms([...byKey.values()].map(mergeTerm))
  return {
    customer: new Map([...known.customer, ...there.customer]),
    discount: new Map([...known.discount, ...there.discount]),
    promotion_code: new Map([...known.promotion_code, ...there.promotion_code]),
    coupon: new Map([...known.coupon, ...there.coupon]),
    taxes: known.taxes,
    ofCustomers: new Map([
      ...known.ofCustomers,
      ...[...there.customer.keys()].map(customer => [customer, [] as Term[]] as const),
      ...there.ofCustomers,
    ]),
  }
}

/** The segment at `now`, or else the first one, and the later ones. */
function currentSegments(segments: Segment[], now: number): Segment[] {
  return segments.slice(
    Math.max(
      0,
      segments.findLastIndex(({ from }) => from <= now),
    ),
  )
}

type Derivation = { version: SubscriptionVersion; termsThere: KnownTerms; policy: Policy; now: number }

const ENDED = new Set(['canceled', 'incomplete_expired'])

/** The comparable facts of the ledger and of Stripe. */
function subscriptionFacts(here: Segment[], there: Segment[], derivation: Derivation): [here: Facts, there: Facts] {
  const [ours, theirs] = [here[0]!, there[0]!]
  const basic = ({ status, customer, currency }: Segment): Facts => ({
    status,
    customer: customer && stripNamespaces(customer),
    currency,
  })
  if (ENDED.has(ours.status) || ENDED.has(theirs.status)) return [basic(ours), basic(theirs)]
  const all = (segments: Segment[], mrr: number): Facts => ({
    ...basic(segments[0]!),
    mrr: toAmount(mrr, segments[0]!.currency),
    items: segments[0]!.items
      .filter(({ id }) => id !== null)
      .map(describeItem)
      .sort(),
    cancel_at: describeCancellation(segments[0]!),
    collection_paused: segments[0]!.collectionPaused === true,
    resumes_at: findResume(segments),
    discount_ends_at: findDiscountEnds(segments),
  })
  const possible = ours.status === theirs.status ? possibleMrr(theirs, derivation) : []
  const mrrThere = possible.includes(ours.mrr) ? ours.mrr : theirs.mrr
  return [all(here, ours.mrr), all(there, mrrThere)]
}

/** Policies under which a status counts and does not count. */
const ALTERNATIVES: Partial<Record<Segment['status'], [(policy: Policy) => boolean, Policy]>> = {
  paused: [({ pause }) => pause === 'keep', { ...DEFAULT_POLICY, pause: 'keep' }],
  trialing: [({ trialOnPaying }) => trialOnPaying === 'keep', { ...DEFAULT_POLICY, trialOnPaying: 'keep' }],
  past_due: [({ pastDueGraceDays }) => pastDueGraceDays !== null, { ...DEFAULT_POLICY, pastDueGraceDays: 0 }],
}

/**
 * With some policies, it depends on earlier states whether a subscription counts. Stripe's object does not contain them, so both
 * results are then possible.
 */
function possibleMrr(segment: Segment, { version, termsThere, policy, now }: Derivation): number[] {
  const [isDependent, other] = ALTERNATIVES[segment.status] ?? []
  if (!isDependent?.(policy)) return [segment.mrr]
  return [DEFAULT_POLICY, other!].map(
    each => currentSegments(deriveSubscription([version], termsThere, each).segments, now)[0]!.mrr,
  )
}

function toAmount(minor: number, currency: string | null): number {
  return currency === null ? minor : toMajor(minor, currency)
}

/** For example "si_1: 2 × 19.9 per month, price_1". */
function describeItem({ id, priceId, quantity, unitAmount, interval, intervalCount, usageType }: SegmentItem): string {
  const price = unitAmount === null ? 'no unit amount' : String(Number(unitAmount))
  const every = `${intervalCount === 1 ? '' : `${intervalCount} `}${interval}`
  return [`${id}: ${quantity} × ${price} per ${every}`, priceId, usageType === 'licensed' ? null : usageType]
    .filter(part => part !== null)
    .join(', ')
}

function describeCancellation({ cancelling, cancelsAt }: Segment): string | null {
  if (!cancelling) return null
  return cancelsAt === null ? 'at an unknown time' : new Date(cancelsAt).toISOString()
}

function findResume(segments: Segment[]): string | null {
  if (segments[0]!.status !== 'paused') return null
  const next = segments.find(({ status }) => status !== 'paused' && !ENDED.has(status))
  return next ? new Date(next.from).toISOString() : null
}

function findDiscountEnds(segments: Segment[]): string[] {
  return segments
    .slice(1)
    .filter((segment, i) => segment.status === segments[i]!.status && segment.mrr !== segments[i]!.mrr)
    .map(({ from }) => new Date(from).toISOString())
}

type InvoiceState = ReturnType<typeof deriveInvoice>[number]

function invoiceFacts({ status, customer, currency, total, amountPaid }: InvoiceState): Facts {
  return {
    status,
    customer: customer && stripNamespaces(customer),
    currency,
    total: toAmount(total, currency),
    amount_paid: toAmount(amountPaid, currency),
  }
}

type RefundState = { counted: boolean; currency: string | null; amount: number | null; status?: string | null }

/**
 * If one side knows only whether the refund counts, only that is compared. The same if it has succeeded at Stripe: a pending
 * refund counts already, and an imported success has the time of the refund, so it may be older than the pending state.
 */
function refundFacts(here: RefundState, there: RefundState): [here: Facts, there: Facts] {
  const isSettled = here.status === undefined || there.status === undefined || there.status === 'succeeded'
  const isSame = isSettled && here.counted === there.counted
  const facts = ({ counted, currency, amount, status }: RefundState): Facts => ({
    status: isSame || status === undefined ? (counted ? 'succeeded' : 'failed') : status,
    currency,
    amount: toAmount(amount ?? 0, currency),
  })
  return [facts(here), facts(there)]
}

async function* listLedger(pool: pg.Pool, account: Account, kind: Kind): AsyncGenerator<LedgerObject> {
  const { tenantId, namespace, otherSources } = account
  const prefix = qualifyId(namespace, '')
  for (let after = ''; ; ) {
    const page = await listLedgerObjects(pool, tenantId, kind, { prefix, otherSources, after, limit: 1_000 })
    yield* page
    if (page.length === 0) return
    after = page.at(-1)!.id
  }
}
