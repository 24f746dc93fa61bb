import { conversionOf } from '../../domain/conversions/conversions.ts'
import type { NormalizedEvent } from '../../domain/events/events.ts'
import { identitiesOf } from '../../domain/identity/identity.ts'
import { insertEvents } from '../../store/events/events.ts'
import { claimEvents, type EventClaim, processedKey } from '../../store/inbound/processed.ts'
import { applyConversions, type ConversionEvent } from '../conversions/conversions.ts'
import type { ConversionTypes } from '../conversions/types.ts'
import type { Identities } from '../identity/identity.ts'
import type { Touches } from '../identity/touches.ts'
import type { Kind, Transaction, Unit } from '../unit.ts'
import { deadLetterOf, decode, narrow } from './entries.ts'
import type { EventListener, FreshEvent } from './fresh-event.ts'
import { keepFailure, keepInboundResults } from './inbound-results.ts'

export type EventKindOptions = {
  identities: Identities
  touches: Touches
  conversionTypes: ConversionTypes
  /** Sees that there is room for events of these moments; throws BeginAgain where there is none yet. */
  ensureMonths(moments: Date[]): void
  /** How long ago, at most, an event of a public key may have happened, where its tenant has nothing set. */
  floorMs: number | null
  listeners: EventListener[]
}

export function eventKind(options: EventKindOptions): Kind<NormalizedEvent> {
  return {
    decode: entry => decode(entry, options.floorMs),
    narrow,
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
  const { client } = transaction
  // First: it may have the whole transaction begin again.
  options.ensureMonths(units.map(({ work }) => work.occurredAt))
  const { fresh, duplicates } = await withoutDuplicates(transaction, units)
  if (fresh.length > 0) {
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
    await options.touches.apply(transaction, events)
    if (conversions.length > 0) await applyConversions(transaction, options.identities, conversions)
    for (const listener of options.listeners) await listener(transaction, events)
  }
  await keepInboundResults(transaction, fresh, duplicates)
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
