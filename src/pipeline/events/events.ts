import { conversionOf } from '../../domain/conversions/conversions.ts'
import type { Entry } from '../../domain/entries/entry.ts'
import type { EventContext, NormalizedEvent } from '../../domain/events/events.ts'
import { itemAlone, MAX_NAMED_REJECTIONS, normalize } from '../../domain/events/normalize/normalize.ts'
import { identitiesOf } from '../../domain/identity/identity.ts'
import { itemId } from '../../domain/ids.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import { insertEvents } from '../../store/events/events.ts'
import { claimEvents, type EventClaim, processedKey } from '../../store/inbound/processed.ts'
import { addEventSums } from '../../store/sums/events.ts'
import { applyConversions, type ConversionEvent } from '../conversions/conversions.ts'
import type { ConversionTypes } from '../conversions/types.ts'
import type { Identities } from '../identity/identity.ts'
import type { Suppressions } from '../identity/suppressions.ts'
import type { Touches } from '../identity/touches.ts'
import { sumEvents } from '../sums/sums.ts'
import type { Kind, Transaction, Unit } from '../unit.ts'
import type { EventListener, FreshEvent } from './fresh-event.ts'
import { keepFailure, keepInboundResults } from './inbound-results.ts'
import { applySuppressed, withoutSuppressed } from './suppressed.ts'

export type EventKindOptions = {
  identities: Identities
  touches: Touches
  conversionTypes: ConversionTypes
  /** Sees that there is room for events of these moments; throws BeginAgain where there is none yet. */
  ensureMonths(moments: Date[]): void
  /** What events of shops say of records. */
  records: {
    lock: NonNullable<Kind['lock']>
    apply(transaction: Transaction, events: Pick<FreshEvent, 'tenantId' | 'event'>[]): Promise<void>
  }
  /** How long ago, at most, an event of a public key may have happened, where its tenant has nothing set. */
  floorMs: number | null
  suppressions: Suppressions
  /** What events say of billing. */
  ledger: EventListener
  listeners: EventListener[]
}

export function eventKind(options: EventKindOptions): Kind<NormalizedEvent> {
  return {
    decode: entry => decode(entry, options.floorMs),
    narrow,
    lock: options.records.lock,
    apply: (transaction, units) => apply(options, transaction, units),
    deadLetter: deadLetterOf,
    recordFailure: keepFailure,
  }
}

async function apply(
  options: EventKindOptions,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<void> {
  // First: it may have the whole transaction begin again.
  options.ensureMonths(units.map(({ work }) => work.occurredAt))
  const { fresh: all, duplicates } = await withoutDuplicates(transaction, units)
  const ofShops = all.filter(({ work }) => work.makesRecords)
  if (ofShops.length > 0)
    await options.records.apply(
      transaction,
      ofShops.map(({ entry, work }) => ({ tenantId: entry.tenantId, event: work })),
    )
  const parted = await withoutSuppressed(options.suppressions, transaction, all)
  const { kept: fresh, suppressed } = parted
  if (fresh.length > 0) await applyFresh(options, transaction, fresh)
  if (suppressed.length > 0) await applySuppressed(options, transaction, parted)
  await keepInboundResults(transaction, { fresh, duplicates, suppressed })
}

async function applyFresh(
  options: EventKindOptions,
  transaction: Transaction,
  fresh: Unit<NormalizedEvent>[],
): Promise<void> {
  const { client } = transaction
  const nodes = await options.identities.resolve(
    transaction,
    fresh.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      identities: identitiesOf(work),
      trusted: work.trusted,
      cause: { kind: 'event', id: work.id },
    })),
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
  const others = events.filter(({ event }) => !converting.has(event))
  if (others.length > 0) await addEventSums(client, sumEvents(others))
  await options.touches.apply(transaction, events)
  if (conversions.length > 0) await applyConversions(transaction, options.identities, conversions)
  for (const listener of [options.ledger, ...options.listeners]) await listener(transaction, events)
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

function contextOf(entry: Entry): EventContext {
  return JSON.parse(entry.context) as EventContext
}

/** The events of an entry; of what can never become one, the first hundred are dead letters. */
function decode(
  entry: Entry,
  floorMs: number | null,
): { works: NormalizedEvent[]; rejected: NewDeadLetter[] } {
  const context = contextOf(entry)
  // Of a replay, the times of its events count from when it first came in.
  const receivedAt = context.firstReceivedAt ? new Date(context.firstReceivedAt) : entry.receivedAt
  const { events, rejected } = normalize({
    entryId: entry.id,
    receivedAt,
    body: entry.body,
    context,
    floorMs: floorOf(context, floorMs),
  })
  for (const event of events) event.receivedAt = entry.receivedAt
  return {
    works: events,
    rejected: rejected.slice(0, MAX_NAMED_REJECTIONS).map(({ index, message, raw, inboundEventId }) => ({
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

function floorOf({ floorDays }: EventContext, installationMs: number | null): number | null {
  if (floorDays === undefined) return installationMs
  return floorDays === 0 ? null : floorDays * DAY_MS
}

/** The context of an item that is taken out of its batch. */
function singleItem(context: EventContext): EventContext {
  const { items: _, ...alone } = context
  return alone.route === 'cdp' && alone.kind === 'batch' ? { ...alone, kind: 'any' } : alone
}

/** The entry with only these events. */
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
