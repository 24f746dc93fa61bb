import { conversionOf } from '../../domain/conversions/conversions.ts'
import type { Entry } from '../../domain/entry.ts'
import type { EventContext, NormalizedEvent } from '../../domain/events/events.ts'
import { itemAlone, normalize } from '../../domain/events/normalize/normalize.ts'
import { identitiesOf, identitiesOfContact } from '../../domain/identity/identity.ts'
import { itemId } from '../../domain/ids.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import { insertEvents } from '../../store/events/events.ts'
import { claimEvents, type EventClaim, processedKey } from '../../store/inbound/processed.ts'
import { insertArchive, insertReceipts } from '../../store/inbound/receipts.ts'
import { applyConversions, type ConversionEvent } from '../conversions/conversions.ts'
import type { ConversionTypes } from '../conversions/types.ts'
import type { Identities } from '../identity/identity.ts'
import type { Touches } from '../identity/touches.ts'
import type { RecordListener } from '../records/records.ts'
import type { Kind, Transaction, Unit } from '../unit.ts'
import type { EventListener, FreshEvent } from './fresh-event.ts'

export type EventKindOptions = {
  identities: Identities
  touches: Touches
  conversionTypes: ConversionTypes
  /** Sees that there is room for events of these moments; throws BeginAgain where there is none yet. */
  ensureMonths(moments: Date[]): void
  listeners: EventListener[]
}

export function eventKind(options: EventKindOptions): Kind<NormalizedEvent> {
  return {
    decode,
    narrow,
    apply: (transaction, units) => apply(options, transaction, units),
    async giveUp({ client }, unit, error, attempts) {
      const letter = deadLetterOf(unit, error, attempts)
      const { work: event, entry } = unit
      if (event?.sourceConfigId) {
        await insertReceipts(client, [
          { ...receiptOf(entry.tenantId, event), outcome: 'dead_letter', detail: error },
        ])
      }
      return letter
    },
  }
}

function contextOf(entry: Entry): EventContext {
  return JSON.parse(entry.context) as EventContext
}

function decode(entry: Entry): { works: NormalizedEvent[]; rejected: NewDeadLetter[] } {
  const context = contextOf(entry)
  // Of a replay, the times of its events count from when it first came in.
  const receivedAt = context.firstReceivedAt ? new Date(context.firstReceivedAt) : entry.receivedAt
  const { events, rejected } = normalize({ entryId: entry.id, receivedAt, body: entry.body, context })
  for (const event of events) event.receivedAt = entry.receivedAt
  return {
    works: events,
    rejected: rejected.map(({ index, message, raw, inboundEventId }) => ({
      id: itemId(entry.id, index),
      entry: { ...entry, body: raw, context: JSON.stringify(singleItem(context)) },
      sourceId: context.route === 'inbound' ? context.sourceId : null,
      inboundEventId,
      reason: 'rejected',
      error: message,
      attempts: 0,
    })),
  }
}

/** The context of a batch's item that stands alone from now on. */
function singleItem(context: EventContext): EventContext {
  const { items: _, ...alone } = context
  return alone.route === 'cdp' && alone.kind === 'batch' ? { ...alone, kind: 'any' } : alone
}

function narrow(entry: Entry, events: NormalizedEvent[]): Entry {
  const items = events.map(event => event.index)
  return { ...entry, context: JSON.stringify({ ...contextOf(entry), items }) }
}

function alone(entry: Entry, event: NormalizedEvent): Entry {
  const { text, context } = itemAlone(entry.body, contextOf(entry), event.index)
  return { ...entry, body: text, context: JSON.stringify(context) }
}

function deadLetterOf(
  { entry, work: event }: Unit<NormalizedEvent | undefined>,
  error: string,
  attempts: number,
): NewDeadLetter {
  const context = contextOf(entry)
  return {
    id: event?.id ?? entry.id,
    entry: event ? alone(entry, event) : entry,
    sourceId: context.route === 'inbound' ? context.sourceId : null,
    inboundEventId: event?.inboundEventId ?? null,
    reason: 'failed',
    error,
    attempts,
  }
}

async function apply(
  options: EventKindOptions,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<void> {
  const { client } = transaction
  // First: it may have the whole transaction begin again.
  options.ensureMonths(units.map(({ work }) => work.occurredAt))
  const { fresh, duplicates } = await withoutDuplicates(transaction, units)
  if (fresh.length > 0) {
    const nodes = await options.identities.resolve(
      transaction,
      fresh.map(({ entry, work }) => ({ tenantId: entry.tenantId, identities: identitiesOf(work) })),
    )
    const events = fresh.map(
      ({ entry, work }, i): FreshEvent => ({ tenantId: entry.tenantId, event: work, node: nodes[i] ?? null }),
    )
    const conversions = await conversionsAmong(options, transaction, events)
    const converting = new Set(conversions.map(({ event }) => event))
    await insertEvents(
      client,
      events.map(fresh => ({ ...fresh, conversion: converting.has(fresh.event) })),
    )
    await options.touches.apply(transaction, events)
    if (conversions.length > 0) await applyConversions(transaction, options.identities, conversions)
    for (const listener of options.listeners) await listener(transaction, events)
  }
  await keepInboundTraces(transaction, fresh, duplicates)
}

/** Skips what the processed-event store knows; what is new is marked in it, with the effects or not at all. */
async function withoutDuplicates({ client, now }: Transaction, units: Unit<NormalizedEvent>[]) {
  const claims: EventClaim[] = []
  const claimedKeys = new Map<number, Set<string>>()
  const duplicates: Unit<NormalizedEvent>[] = []
  const candidates: Unit<NormalizedEvent>[] = []
  for (const unit of units) {
    const { inboundEventId, sourceConfigId, id } = unit.work
    if (inboundEventId !== null) {
      const { tenantId } = unit.entry
      const key = processedKey(sourceConfigId, inboundEventId)
      const keys = claimedKeys.get(tenantId) ?? new Set()
      if (keys.size === 0) claimedKeys.set(tenantId, keys)
      if (keys.has(key)) {
        duplicates.push(unit)
        continue
      }
      keys.add(key)
      claims.push({ tenantId, key, eventId: id })
    }
    candidates.push(unit)
  }
  if (claims.length === 0) return { fresh: candidates, duplicates }
  const repeated = await claimEvents(client, claims, now)
  if (repeated.size === 0) return { fresh: candidates, duplicates }
  const fresh = candidates.filter(unit => {
    const isFresh = unit.work.inboundEventId === null || !repeated.has(unit.work.id)
    if (!isFresh) duplicates.push(unit)
    return isFresh
  })
  return { fresh, duplicates }
}

async function conversionsAmong(
  options: EventKindOptions,
  transaction: Transaction,
  events: FreshEvent[],
): Promise<ConversionEvent[]> {
  const types = new Map<number, ReadonlySet<string>>()
  for (const { tenantId } of events) {
    if (!types.has(tenantId)) types.set(tenantId, await options.conversionTypes(transaction, tenantId))
  }
  return events.flatMap(fresh => {
    const conversion = conversionOf(fresh.event, types.get(fresh.tenantId)!)
    return conversion ? [{ ...fresh, conversion }] : []
  })
}

/** Of events from inbound sources: the result into the archive, then the receipt. */
async function keepInboundTraces(
  { client }: Transaction,
  fresh: Unit<NormalizedEvent>[],
  duplicates: Unit<NormalizedEvent>[],
): Promise<void> {
  const inbound = fresh.filter(unit => unit.work.sourceConfigId !== null)
  const repeated = duplicates.filter(unit => unit.work.sourceConfigId !== null)
  if (inbound.length > 0) {
    await insertArchive(
      client,
      inbound.map(({ entry, work }) => ({
        tenantId: entry.tenantId,
        id: work.id,
        receivedAt: work.receivedAt,
        sourceId: work.sourceConfigId!,
        result: archived(work),
      })),
    )
  }
  const receipts = [
    ...inbound.map(({ entry, work }) => ({
      ...receiptOf(entry.tenantId, work),
      outcome: 'processed' as const,
      detail: null,
    })),
    ...repeated.map(({ entry, work }) => ({
      ...receiptOf(entry.tenantId, work),
      outcome: 'duplicate' as const,
      detail: null,
    })),
  ]
  if (receipts.length > 0) await insertReceipts(client, receipts)
}

function receiptOf(tenantId: number, event: NormalizedEvent) {
  return {
    tenantId,
    sourceId: event.sourceConfigId!,
    id: event.id,
    receivedAt: event.receivedAt,
    inboundEventId: event.inboundEventId,
    eventType: event.eventType,
    firstId: null,
  }
}

/** The normalized event as it was processed. */
function archived(event: NormalizedEvent): string {
  const facts = JSON.stringify({
    inbound_event_id: event.inboundEventId,
    source_config_id: event.sourceConfigId,
    source_type: event.sourceType,
    provider_event_id: event.providerEventId,
    event_type: event.eventType,
    occurred_at: event.occurredAt,
    received_at: event.receivedAt,
    headers: event.headers,
    meta: event.meta,
  })
  return `${facts.slice(0, -1)},"payload":${event.payload}}`
}

/** Contact records join the names of a person. */
export function contactIdentities(identities: Identities): RecordListener {
  return async (transaction, changed) => {
    const sightings = changed.flatMap(record =>
      record.entityType === 'contact' && record.data
        ? [{ tenantId: record.tenantId, identities: identitiesOfContact(record.id, record.data) }]
        : [],
    )
    if (sightings.length > 0) await identities.resolve(transaction, sightings)
  }
}
