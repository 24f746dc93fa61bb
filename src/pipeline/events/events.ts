import type { Entry } from '../../domain/entries/entry.ts'
import { itemAlone, MAX_NAMED_REJECTIONS, normalize } from '../../domain/events/normalize/normalize.ts'
import type { EventContext, NormalizedEvent } from '../../domain/events/types.ts'
import { suppressibleIdentifiers } from '../../domain/identity/erasure.ts'
import { itemId } from '../../domain/ids.ts'
import { type EventOfResult, eventResult, suppressedReceipt, TEST_RECEIPT } from '../../domain/inbound/receipts.ts'
import { DAY_MS, MINUTE_MS } from '../../domain/time.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import type { LearnedIdentifier } from '../../store/identity/suppressions.ts'
import { claimEvents, type EventClaim, idScope, processedKey, verifiedKeyOf } from '../../store/inbound/processed.ts'
import { insertArchive, insertReceipts, RESULT_IN_EVENT } from '../../store/inbound/receipts.ts'
import type { EventSum } from '../../store/sums/series.ts'
import type { Suppressions } from '../identity/suppressions.ts'
import type { Kind, Transaction, Unit } from '../unit.ts'

/** An event that is applied now and not a duplicate. */
export type FreshEvent = {
  tenantId: number
  event: NormalizedEvent
  node: number | null
  /** Set for an event of a suppressed person: what is derived from it contains no identifier. */
  nameless?: true
}

/** `floorMs`: the maximum age of an event sent with a public tracking key, if its tenant has no setting. */
export function eventKind(floorMs: number | null): Kind<NormalizedEvent> {
  return {
    decode: entry => decode(entry, floorMs),
    narrow,
    deadLetter: buildDeadLetter,
    recordFailure: writeFailureReceipt,
  }
}

function readContext(entry: Entry): EventContext {
  return JSON.parse(entry.context) as EventContext
}

/** Decodes the events of an entry. The first hundred invalid items become dead letters. */
function decode(entry: Entry, floorMs: number | null): { works: NormalizedEvent[]; rejected: NewDeadLetter[] } {
  const context = readContext(entry)
  // The event times of a replayed entry are relative to when it was first received.
  const receivedAt = context.firstReceivedAt ? new Date(context.firstReceivedAt) : entry.receivedAt
  const { events, rejected } = normalize({
    entryId: entry.id,
    receivedAt,
    body: entry.body,
    context,
    floorMs: floorFor(context, floorMs),
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

function floorFor({ floorDays }: EventContext, installationMs: number | null): number | null {
  if (floorDays === undefined) return installationMs
  return floorDays === 0 ? null : floorDays * DAY_MS
}

/** The context of one item outside of its batch. */
function singleItem(context: EventContext): EventContext {
  const { items: _, ...alone } = context
  return alone.route === 'cdp' && alone.kind === 'batch' ? { ...alone, kind: 'any' } : alone
}

/** The entry with only these events. */
function narrow(entry: Entry, events: NormalizedEvent[]): Entry {
  const items = events.map(event => event.index)
  return { ...entry, context: JSON.stringify({ ...readContext(entry), items }) }
}

function extractItem(entry: Entry, event: NormalizedEvent): Entry {
  const { text, context } = itemAlone(entry.body, readContext(entry), event.index)
  return { ...entry, body: text, context: JSON.stringify(context) }
}

function buildDeadLetter(
  { entry, work: event }: Unit<NormalizedEvent | undefined>,
  error: string,
  attempts: number,
): NewDeadLetter {
  const context = readContext(entry)
  return {
    id: event?.id ?? entry.id,
    entry: event ? extractItem(entry, event) : entry,
    sourceId: context.route === 'inbound' ? context.sourceId : null,
    inboundEventId: event?.inboundEventId ?? null,
    reason: 'failed',
    error,
    attempts,
  }
}

/** Claims the ids of events in the processed-event store, in the transaction of their effects, and finds duplicates. */
export async function claimFresh({ client, now }: Transaction, units: Unit<NormalizedEvent>[]) {
  const claims: EventClaim[] = []
  const claimedKeys = new Map<number, Set<string>>()
  const duplicates: Unit<NormalizedEvent>[] = []
  const candidates: Unit<NormalizedEvent>[] = []
  for (const unit of units) {
    const { inboundEventId, id } = unit.work
    if (inboundEventId !== null) {
      const { tenantId } = unit.entry
      const key = processedKey(idScope(unit.work), inboundEventId)
      const verifiedKey = verifiedKeyOf(key)
      const keys = claimedKeys.get(tenantId) ?? new Set()
      if (keys.size === 0) claimedKeys.set(tenantId, keys)
      if (keys.has(key) || (verifiedKey !== undefined && keys.has(verifiedKey))) {
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

/** Separates the events of suppressed people from the others. */
export async function separateSuppressed(
  suppressions: Suppressions,
  transaction: Transaction,
  units: Unit<NormalizedEvent>[],
): Promise<Record<'kept' | 'suppressed', Unit<NormalizedEvent>[]> & { learned: LearnedIdentifier[] }> {
  if (!(await suppressions.isNeeded(transaction, new Set(units.map(({ entry }) => entry.tenantId)))))
    return { kept: units, suppressed: [], learned: [] }
  const { are, learned } = await suppressions.among(
    transaction,
    units.map(({ entry, work }) => ({
      tenantId: entry.tenantId,
      identities: () => suppressibleIdentifiers(work),
      isVerified: work.trusted,
      isLearned: true,
    })),
  )
  if (!are.includes(true)) return { kept: units, suppressed: [], learned }
  return { kept: units.filter((_, i) => !are[i]), suppressed: units.filter((_, i) => are[i]), learned }
}

/** The counts that events add to the series: one row per minute, type and source. */
export function countEvents(events: { tenantId: number; event: NormalizedEvent }[]): EventSum[] {
  const sums = new Map<string, EventSum>()
  // Most events of a type are of one minute.
  const latest = new Map<string, { sum: EventSum; minute: number }>()
  for (const { tenantId, event } of events) {
    const { eventType, source } = event
    const minute = Math.floor(event.occurredAt.getTime() / MINUTE_MS)
    let own = latest.get(eventType)
    if (own?.minute !== minute || own.sum.tenantId !== tenantId || own.sum.source !== source) {
      const key = `${tenantId} ${minute} ${source} ${eventType}`
      let sum = sums.get(key)
      if (!sum) {
        sum = { tenantId, minute: new Date(minute * MINUTE_MS).toISOString(), eventType, source, count: 0 }
        sums.set(key, sum)
      }
      own = { sum, minute }
      latest.set(eventType, own)
    }
    own.sum.count++
  }
  return [...sums.values()]
}

/** Writes the results of inbound events to the archive, and their receipts. `copiesEvents`: see `Effects`. */
export async function writeInboundResults(
  { client }: Transaction,
  { fresh, duplicates, suppressed }: Record<'fresh' | 'duplicates' | 'suppressed', Unit<NormalizedEvent>[]>,
  copiesEvents: boolean,
): Promise<void> {
  const processed = fresh.filter(isInbound)
  if (processed.length > 0) {
    await insertArchive(
      client,
      processed.map(({ entry, work }) => ({
        tenantId: entry.tenantId,
        id: work.id,
        receivedAt: work.receivedAt,
        sourceId: work.sourceConfigId!,
        result: copiesEvents ? eventResult(withTexts(work)) : RESULT_IN_EVENT,
      })),
    )
  }
  const receipts = [
    ...processed.map(unit => ({
      ...receiptFields(unit),
      outcome: 'processed' as const,
      detail: unit.work.meta.test && !unit.work.meta.test_mode ? TEST_RECEIPT : null,
    })),
    ...duplicates
      .filter(isInbound)
      .map(unit => ({ ...receiptFields(unit), outcome: 'duplicate' as const, detail: null })),
    ...suppressed.filter(isInbound).map(unit => ({ ...receiptFields(unit), ...suppressedReceipt(unit.work) })),
  ]
  if (receipts.length > 0) await insertReceipts(client, receipts)
}

function withTexts(event: NormalizedEvent): EventOfResult {
  return { ...event, headers: JSON.stringify(event.headers), meta: JSON.stringify(event.meta) }
}

/** Writes the receipt of an inbound event that becomes a dead letter. */
async function writeFailureReceipt({ client }: Transaction, unit: Unit<NormalizedEvent>, error: string): Promise<void> {
  if (!isInbound(unit)) return
  await insertReceipts(client, [{ ...receiptFields(unit), outcome: 'dead_letter', detail: error }])
}

/** An entry that could not be decoded has no event. */
function isInbound({ work }: Unit<NormalizedEvent | undefined>): boolean {
  return work !== undefined && work.sourceConfigId !== null
}

function receiptFields({ entry, work: event }: Unit<NormalizedEvent>) {
  return {
    tenantId: entry.tenantId,
    sourceId: event.sourceConfigId!,
    id: event.id,
    receivedAt: event.receivedAt,
    inboundEventId: event.inboundEventId,
    eventType: event.eventType,
    firstId: null,
  }
}
