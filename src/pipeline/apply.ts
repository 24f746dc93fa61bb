import { readConversion } from '../domain/conversions/conversions.ts'
import type { EntryKind } from '../domain/entries/entry.ts'
import type { NormalizedEvent } from '../domain/events/types.ts'
import { eventIdentifiers } from '../domain/identity/identifiers.ts'
import type { OperationOutcome, RecordChange } from '../domain/records/records.ts'
import { insertEvents } from '../store/events/events.ts'
import type { LearnedIdentifier } from '../store/identity/suppressions.ts'
import { addEventSums } from '../store/sums/series.ts'
import { applyBillingEvents, readBillingEvents } from './billing/billing.ts'
import { attributeAccounts } from './billing/subscriptions.ts'
import { refundedOrders, reportedChanges, shopRecordChanges, storedRefunds } from './connectors/shops.ts'
import { applyConversions, applyOrders, type ConversionTypes } from './conversions/conversions.ts'
import type { ConversionEvent } from './conversions/profile-sales.ts'
import {
  type LoadAudience,
  notifyEvents,
  notifyRecords,
  notifySaleChanges,
  startSaleChanges,
} from './deliveries/notify.ts'
import { claimFresh, countEvents, type FreshEvent, separateSuppressed, writeInboundResults } from './events/events.ts'
import { linkContacts, resolveNodes } from './identity/follow-profiles.ts'
import type { LastSeen } from './identity/last-seen.ts'
import type { Identities } from './identity/linking.ts'
import { noteSuppressed, type Suppressions } from './identity/suppressions.ts'
import type { Touches } from './identity/touches.ts'
import { type Change, findRowsSentByShops, writeOperations, writeRecords } from './records/records.ts'
import type { Transaction, Unit } from './unit.ts'

/** What workers remember between transactions. */
export type Effects = {
  identities: Identities
  touches: Touches
  lastSeen: LastSeen
  conversionTypes: ConversionTypes
  suppressions: Suppressions
  loadAudience: LoadAudience
  /** Throws RestartTransaction if the events table may lack a partition for one of these times. */
  ensureMonths(moments: Date[]): void
  /** Whether results of inbound events contain a copy of the event, because they may outlive it. */
  copiesEvents: boolean
}

/** Applies a batch: its record entries, then its events. All effects of the pipeline are called from this file. */
export async function applyBatch(effects: Effects, transaction: Transaction, units: Unit[]): Promise<void> {
  const audience = await effects.loadAudience(transaction)
  startSaleChanges(transaction, audience)
  await traced(transaction, 'record', units, own => applyRecords(effects, transaction, own as Unit<RecordChange>[]))
  await traced(transaction, 'events', units, own => applyEvents(effects, transaction, own as Unit<NormalizedEvent>[]))
  await notifySaleChanges(transaction, audience)
}

async function traced(
  { trace }: Transaction,
  kind: EntryKind,
  units: Unit[],
  apply: (units: Unit[]) => Promise<void>,
): Promise<void> {
  const own = units.filter(unit => unit.entry.kind === kind)
  if (own.length === 0) return
  await (trace ? trace.effects(kind, own.length, () => apply(own)) : apply(own))
}

async function applyRecords(effects: Effects, transaction: Transaction, units: Unit<RecordChange>[]): Promise<void> {
  const sentByShops = await findRowsSentByShops(transaction.client, units)
  const applied = sentByShops.size > 0 ? units.filter(unit => !sentByShops.has(unit)) : units
  const outcomes = applied.length > 0 ? await applyChanges(effects, transaction, applied) : []
  const outcomeByUnit = new Map(applied.map((unit, i) => [unit, outcomes[i]!]))
  await writeOperations(
    transaction,
    units,
    units.map(unit => outcomeByUnit.get(unit) ?? 'superseded'),
  )
}

/** Changes records, for the data API and for shops. Returns the outcome of each change, in order. */
async function applyChanges(
  effects: Effects,
  transaction: Transaction,
  changes: Change[],
): Promise<OperationOutcome[]> {
  const { identities, suppressions, loadAudience } = effects
  const kept = await suppressions.changes(transaction, changes)
  const { outcomes, changed } = await writeRecords(
    transaction,
    kept.filter(change => change !== null),
  )
  if (changed.length > 0) {
    await linkContacts(identities, transaction, changed)
    await applyOrders(identities, transaction, changed)
    await notifyRecords(transaction, await loadAudience(transaction), changed)
  }
  const next = outcomes.values()
  // An erasure supersedes every later change of a suppressed contact.
  return kept.map(change => (change === null ? 'superseded' : next.next().value!))
}

async function applyEvents(effects: Effects, transaction: Transaction, units: Unit<NormalizedEvent>[]): Promise<void> {
  // First, because it may restart the transaction.
  effects.ensureMonths(units.map(({ work }) => work.occurredAt))
  const { fresh: claimed, duplicates } = await claimFresh(transaction, units)
  const tests = claimed.filter(({ work }) => work.meta.test)
  const fresh = tests.length > 0 ? claimed.filter(({ work }) => !work.meta.test) : claimed
  await applyShopEvents(
    effects,
    transaction,
    fresh.filter(({ work }) => work.makesRecords),
  )
  const { kept, suppressed, learned } = await separateSuppressed(effects.suppressions, transaction, fresh)
  if (kept.length > 0) await applyKeptEvents(effects, transaction, kept)
  if (suppressed.length > 0) await applySuppressedEvents(effects, transaction, suppressed, learned)
  if (tests.length > 0) await applyTestEvents(transaction, tests)
  await writeInboundResults(transaction, { fresh: [...kept, ...tests], duplicates, suppressed }, effects.copiesEvents)
}

/**
 * A test event is listed, and has a receipt and an archived result. In a provider's test mode, it also lists its
 * subscription among the exclusions. It has no other effect.
 */
async function applyTestEvents(transaction: Transaction, units: Unit<NormalizedEvent>[]): Promise<void> {
  const events = units.map(({ entry, work }): FreshEvent => ({ tenantId: entry.tenantId, event: work, node: null }))
  await insertEvents(
    transaction.client,
    events.map(fresh => ({ ...fresh, conversion: false })),
  )
  const inTestMode = events.filter(({ event }) => event.meta.test_mode)
  if (inTestMode.length > 0) await applyBillingEvents(transaction, readBillingEvents(inTestMode))
}

async function applyKeptEvents(
  effects: Effects,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<void> {
  const { client } = transaction
  const { identities, touches, lastSeen, loadAudience } = effects
  const nodes = await resolveNodes(
    identities,
    transaction,
    units.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      identifiers: eventIdentifiers(work),
      verified: work.trusted,
      cause: { kind: 'event', id: work.id },
      receivedAt: work.receivedAt,
    })),
  )
  const events = units.map(
    ({ entry, work }, i): FreshEvent => ({ tenantId: entry.tenantId, event: work, node: nodes[i] ?? null }),
  )
  const conversions = await findConversions(effects, transaction, events)
  const converting = new Set(conversions.map(({ event }) => event))
  // before they are stored, because it adds warnings to them
  const billing = readBillingEvents(events)
  await insertEvents(
    client,
    events.map(fresh => ({ ...fresh, conversion: converting.has(fresh.event) })),
  )
  const others = events.filter(({ event }) => !converting.has(event))
  if (others.length > 0) await addEventSums(client, countEvents(others))
  const touched = await touches.apply(transaction, events)
  if (touched.length > 0) await attributeAccounts(transaction, touched)
  if (conversions.length > 0) await applyConversions(identities, transaction, conversions)
  await applyBillingEvents(transaction, billing)
  await lastSeen(transaction, events, conversions)
  await notifyEvents(transaction, await loadAudience(transaction), events)
}

/** As after an erasure: no event and no identifier is stored, but sales and billing count. */
async function applySuppressedEvents(
  effects: Effects,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
  learned: LearnedIdentifier[],
): Promise<void> {
  const events = units.map(
    ({ entry, work }): FreshEvent => ({
      tenantId: entry.tenantId,
      event: { ...work, visitor: null, sessionId: null, userId: null, previousId: null, email: null },
      node: null,
      nameless: true,
    }),
  )
  const conversions = await findConversions(effects, transaction, events)
  if (conversions.length > 0) await applyConversions(effects.identities, transaction, conversions)
  await applyBillingEvents(transaction, readBillingEvents(events))
  const things = units.map(({ entry, work }) => ({
    ...{ tenantId: entry.tenantId, id: work.id, receivedAt: entry.receivedAt },
  }))
  await noteSuppressed(transaction, 'events', { things, learned })
}

async function applyShopEvents(
  effects: Effects,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<void> {
  if (units.length === 0) return
  const reported = reportedChanges(units)
  const stored = await storedRefunds(transaction.client, reported)
  const changes = await shopRecordChanges(transaction.client, reported)
  if (changes.length > 0) await applyChanges(effects, transaction, changes)
  // After the changes, which may include the orders of these refunds.
  const refunds = await refundedOrders(transaction.client, reported, stored)
  if (refunds.length > 0) await applyChanges(effects, transaction, refunds)
}

async function findConversions(
  { conversionTypes }: Effects,
  transaction: Transaction,
  events: FreshEvent[],
): Promise<ConversionEvent[]> {
  const types = new Map<number, ReadonlySet<string>>()
  for (const { tenantId } of events) {
    if (!types.has(tenantId)) types.set(tenantId, await conversionTypes(transaction, tenantId))
  }
  return events.flatMap(fresh => {
    const conversion = readConversion(fresh.event, types.get(fresh.tenantId)!)
    return conversion ? [{ ...fresh, conversion }] : []
  })
}
