import { addNamespace, anonymizeChange, isPlainNamespace } from '../../domain/billing/namespace.ts'
import { readBillingEvent } from '../../domain/billing/read.ts'
import { addTerm, mergeTerm } from '../../domain/billing/terms.ts'
import type { BillingChange, Term } from '../../domain/billing/types.ts'
import { unreadableText } from '../../domain/billing/unreadable.ts'
import { canonicalJson, textDigest } from '../../domain/json/json.ts'
import type { Db } from '../../postgres/database.ts'
import { lockTenants, shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/rows.ts'
import {
  addUncounted,
  addWarnings,
  type BillingWarning,
  distinctTerms,
  insertVersions,
  keepNamespaces,
  loadTerms,
  type NewVersion,
  type ObjectNews,
  queueSubscriptions,
  subscriptionsReading,
  type TermKey,
  type TermRow,
  termText,
  type UncountedEvent,
  upsertTerms,
} from '../../store/billing/versions.ts'
import type { FreshEvent } from '../events/events.ts'
import { shareProfileLock } from '../profile-lock.ts'
import type { Deriving, Transaction } from '../unit.ts'
import { applyCash } from './cash.ts'
import { applySubscriptions } from './subscriptions.ts'

/** A billing change and its event. */
export type BillingFact = {
  tenantId: number
  eventId: string
  eventType: string
  sourceId: string | null
  namespace: string
  node: number | null
  receivedAt: Date
  change: BillingChange
}

type BillingReadings = { facts: BillingFact[]; uncounted: UncountedEvent[]; warnings: BillingWarning[] }

/** Reads billing events. Adds `meta.warnings` to an event with values that cannot be read. */
export function readBillingEvents(events: FreshEvent[]): BillingReadings {
  const facts: BillingFact[] = []
  const uncounted: UncountedEvent[] = []
  const warnings: BillingWarning[] = []
  for (const fresh of events) {
    const { tenantId, event } = fresh
    if (event.billingNamespace === null) continue
    const { changes, unrecognized } = readBillingEvent(event)
    const own = changes.map(change => toFact(fresh, change))
    facts.push(...own)
    const kind = event.meta.test_mode ? 'test' : unrecognized ? 'unrecognized' : null
    if (kind) uncounted.push({ tenantId, kind, eventType: event.eventType, occurredAt: event.occurredAt })
    const unreadable = kind === null && !fresh.nameless ? own.flatMap(fact => listWarnings(fact, event.receivedAt)) : []
    if (unreadable.length === 0) continue
    warnings.push(...unreadable)
    event.meta.warnings = unreadable.map(unreadableText)
  }
  return { facts, uncounted, warnings }
}

function listWarnings({ tenantId, change, eventId, sourceId }: BillingFact, receivedAt: Date): BillingWarning[] {
  if (change.kind === 'terms' || !change.unreadable) return []
  const kind = change.kind === 'cash' ? 'refund' : change.kind
  const object =
    change.kind === 'cash' ? (change.refunds[0] ?? change.credits?.[0] ?? change.payments[0]!) : change.version
  return change.unreadable.map(({ field, value }) => ({
    ...{ tenantId, kind, objectId: object.id, sourceAt: new Date(object.sourceAt), field, value },
    ...{ eventId, sourceId, receivedAt },
  }))
}

/** Applies billing events to the ledger. */
export async function applyBillingEvents(transaction: Transaction, readings: BillingReadings): Promise<void> {
  const { facts, uncounted, warnings } = readings
  if (facts.length > 0) await applyBilling(transaction, facts)
  if (uncounted.length > 0) await addUncounted(transaction.client, uncounted)
  if (warnings.length > 0) await addWarnings(transaction.client, warnings)
}

function toFact({ tenantId, event, node, nameless }: FreshEvent, given: BillingChange): BillingFact {
  const { id, eventType, sourceConfigId } = event
  const namespace = event.billingNamespace!
  const change = addNamespace(namespace, given)
  return {
    tenantId,
    eventId: id,
    eventType,
    sourceId: sourceConfigId,
    namespace,
    node,
    receivedAt: event.receivedAt,
    change: nameless ? anonymizeChange(tenantId, change) : change,
  }
}

/**
 * Stores new versions and derives the objects they affect. Locks are acquired in a fixed order: subscriptions, their
 * accounts, payments, invoices, each kind sorted.
 */
export async function applyBilling(transaction: Transaction, facts: BillingFact[]): Promise<void> {
  const { client } = transaction
  const outdated = await learnTerms(transaction, facts)
  const named = facts.filter(({ namespace }) => !isPlainNamespace(namespace))
  if (named.length > 0) await keepNamespaces(client, named)
  const changed = await insertVersions(client, distinctVersions(facts.flatMap(listVersions)))
  const news = (kind: NewVersion['kind']) => changed.filter(object => object.kind === kind)
  const subscriptions = distinctKeys([...news('subscription'), ...outdated])
  const invoices = news('invoice')
  const payments = news('payment')
  const refunds = news('refund')
  const credits = news('credit_note')
  if (subscriptions.length > 0 || invoices.length > 0) {
    await applySubscriptions(transaction, subscriptions, {
      named: subscriptionsNamedBy(facts),
      nodes: nodesByObject(facts),
      since: findStarts(news('subscription'), outdated),
      causeOf: findCauses(facts),
    })
  }
  if (invoices.length + payments.length + refunds.length + credits.length > 0) {
    await applyCash(client, { invoices, payments, refunds, credits, customers: customersToMatch(facts) })
  }
}

function listVersions({ tenantId, eventId, eventType, sourceId, change }: BillingFact): NewVersion[] {
  const version = (kind: NewVersion['kind'], object: { id: string; sourceAt: number }): NewVersion => {
    const body = canonicalJson(object)
    const hash = textDigest(`${eventType}\n${body}`)
    const { id, sourceAt } = object
    return { tenantId, kind, id, hash, sourceAt, eventId, eventType, sourceId, body }
  }
  switch (change.kind) {
    case 'terms':
      return []
    case 'subscription':
      return [version('subscription', change.version)]
    case 'invoice':
      return [
        version('invoice', change.version),
        ...(change.payments ?? []).map(payment => version('payment', payment)),
      ]
    case 'cash':
      return [
        ...change.payments.map(payment => version('payment', payment)),
        ...change.refunds.map(refund => version('refund', refund)),
        ...(change.credits ?? []).map(credit => version('credit_note', credit)),
      ]
  }
}

/** Acquires the locks for deriving subscriptions, the profile lock first. Returns subscriptions with changed terms. */
async function learnTerms(transaction: Transaction, facts: BillingFact[]): Promise<ObjectKey[]> {
  const terms = facts.flatMap(({ tenantId, change }) => {
    const own = change.kind === 'terms' || change.kind === 'subscription' ? (change.terms ?? []) : []
    return own.map(term => ({ tenantId, term }))
  })
  const deriving = facts.flatMap(({ tenantId, change }) => (change.kind === 'subscription' ? [tenantId] : []))
  const tenantIds = [...terms.map(({ tenantId }) => tenantId), ...deriving]
  if (tenantIds.length === 0) return []
  await shareProfileLock(transaction, tenantIds)
  return applyTerms(transaction, terms, deriving, findCauses(facts))
}

/** Subscriptions derived per transaction: a coupon can belong to 100,000 of them. */
const DERIVED_AT_ONCE = 500

type TenantTerm = { tenantId: number; term: Term }

/**
 * Stores coupons, discounts and customers, and returns the subscriptions that depend on them. Writing terms requires the
 * tenant's exclusive terms lock, deriving subscriptions (`deriving`) a shared one. Of two transactions that each write
 * half of a fact, the second therefore sees both halves.
 */
async function applyTerms(
  { client }: Deriving,
  terms: TenantTerm[],
  deriving: number[],
  causeOf: (subscription: ObjectKey) => BillingFact | null,
): Promise<ObjectKey[]> {
  const changing = await tenantsWithNews(client, terms)
  await lockTenants(client, TENANT_LOCKS.terms, changing)
  const sharing = deriving.filter(tenantId => !changing.has(tenantId))
  if (sharing.length > 0) await shareTenants(client, TENANT_LOCKS.terms, sharing)
  if (changing.size === 0) return []
  const changed = await keepTerms(
    client,
    terms.filter(({ tenantId }) => changing.has(tenantId)),
  )
  if (changed.length === 0) return []
  const outdated = await subscriptionsReading(client, changed)
  if (outdated.length > DERIVED_AT_ONCE) {
    const later = outdated.slice(DERIVED_AT_ONCE).map(key => {
      const { eventId, receivedAt } = causeOf(key)!
      return { ...key, eventId, receivedAt }
    })
    await queueSubscriptions(client, later)
  }
  return outdated.slice(0, DERIVED_AT_ONCE)
}

/** Most terms are already known. Checking first avoids the exclusive lock. */
async function tenantsWithNews(db: Db, terms: TenantTerm[]): Promise<Set<number>> {
  if (terms.length === 0) return new Set()
  const known = rowsByKey(await loadTerms(db, listTermKeys(terms)))
  return new Set(
    terms.flatMap(({ tenantId, term }) => {
      const versions = known.get(termText({ tenantId, ...term }))?.versions
      return versions && addTerm(versions, term) === versions ? [] : [tenantId]
    }),
  )
}

async function keepTerms(db: Db, terms: TenantTerm[]): Promise<TermKey[]> {
  const rows = rowsByKey(await loadTerms(db, listTermKeys(terms)))
  const changed = new Set<string>()
  for (const { tenantId, term } of terms) {
    const { kind, id } = term
    const row = rows.get(termText({ tenantId, ...term })) ?? { tenantId, kind, id, versions: [] }
    const versions = addTerm(row.versions, term)
    if (versions === row.versions) continue
    rows.set(termText(row), { ...row, versions })
    changed.add(termText(row))
  }
  const news = [...changed].map(text => rows.get(text)!)
  if (news.length > 0)
    await upsertTerms(
      db,
      news.map(row => ({ ...row, merged: mergeTerm(row.versions) })),
    )
  return news
}

function listTermKeys(terms: TenantTerm[]): TermKey[] {
  return distinctTerms(terms.map(({ tenantId, term: { kind, id } }) => ({ tenantId, kind, id })))
}

function rowsByKey(rows: TermRow[]): Map<string, TermRow> {
  return new Map(rows.map(row => [termText(row), row]))
}

/** By subscription, the time of its earliest new version; without those whose terms changed. */
function findStarts(news: ObjectNews[], outdated: ObjectKey[]): Map<string, number> {
  const since = new Map(news.map(object => [keyText(object), object.sourceAt.getTime()]))
  for (const key of outdated) since.delete(keyText(key))
  return since
}

/** The latest event about a subscription, else the latest one with coupons, discounts or customers of its tenant. */
function findCauses(facts: BillingFact[]): (subscription: ObjectKey) => BillingFact | null {
  const causes = new Map<string, BillingFact>()
  for (const fact of facts) {
    const { tenantId, change } = fact
    if (change.kind === 'subscription') causes.set(keyText({ tenantId, id: change.version.id }), fact)
    if (change.kind === 'terms' || (change.kind === 'subscription' && change.terms)) causes.set(String(tenantId), fact)
  }
  return key => causes.get(keyText(key)) ?? causes.get(String(key.tenantId)) ?? null
}

/** A batch may contain the same version twice. */
function distinctVersions(versions: NewVersion[]): NewVersion[] {
  const text = (version: NewVersion) => `${version.kind} ${keyText(version)} ${version.hash}`
  return [...new Map(versions.map(version => [text(version), version])).values()]
}

/** Customers whose invoices and payments do not refer to each other. */
function customersToMatch(facts: BillingFact[]): ObjectKey[] {
  const customers = facts.flatMap(({ tenantId, change }) => {
    if (change.kind === 'invoice') {
      const { customer } = change.version
      return change.payments?.length === 0 && customer !== null ? [{ tenantId, id: customer }] : []
    }
    if (change.kind !== 'cash') return []
    return change.payments.flatMap(({ customer, unlinkedAmount }) =>
      unlinkedAmount !== undefined && customer !== null ? [{ tenantId, id: customer }] : [],
    )
  })
  return distinctKeys(customers)
}

function subscriptionsNamedBy(facts: BillingFact[]): ObjectKey[] {
  const named = facts.flatMap(({ tenantId, change }) =>
    change.kind === 'invoice' && change.version.subscriptionId !== null
      ? [{ tenantId, id: change.version.subscriptionId }]
      : [],
  )
  return distinctKeys(named)
}

/** By subscription, the node of its latest event. */
function nodesByObject(facts: BillingFact[]): Map<string, number> {
  return new Map(
    facts.flatMap(({ tenantId, node, change }) =>
      change.kind === 'subscription' && node !== null
        ? [[keyText({ tenantId, id: change.version.id }), node] as const]
        : [],
    ),
  )
}
