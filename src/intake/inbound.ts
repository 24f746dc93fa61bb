import type pg from 'pg'
import type { Entry } from '../domain/entries/entry.ts'
import { type Body, MAX_NAMED_REJECTIONS } from '../domain/events/normalize/normalize.ts'
import type { InboundContext, Inspection, RejectedItem } from '../domain/events/types.ts'
import { itemId, newEntryId } from '../domain/ids.ts'
import { findPreset } from '../domain/inbound/presets.ts'
import type { Append } from '../log/log.ts'
import type { Budgets } from '../overload/budgets.ts'
import { coalesce } from '../overload/coalesce.ts'
import type { WithDatabase } from '../overload/optional-database.ts'
import type { Throttle } from '../overload/throttle.ts'
import { isTransient, isUnavailable, withClient } from '../postgres/database.ts'
import { retryWithPartitions } from '../postgres/partitions.ts'
import { findProcessed, type ProcessedKey, processedKey } from '../store/inbound/processed.ts'
import { insertReceipts, type Receipt } from '../store/inbound/receipts.ts'
import type { Source } from '../store/inbound/sources.ts'
import { type Accept, eventEntry } from './accept.ts'
import type { Overflow } from './overflow.ts'

/** The outcome of a request's items. The four numbers add up to all items. */
type Received = { accepted: number; duplicates: number; deferred: number; rejected: RejectedItem[] }

export type Inbound = {
  /** Throttles a source over its limit: resolves when the request may proceed. `null`: immediately. */
  throttle(source: Source, bytes: number): Promise<void> | null
  /** `dropped` of the rejected items were valid, but over the limit. Without a valid item `received` is null. */
  receive(
    source: Source,
    body: Body,
    context: InboundContext,
    now: Date,
  ): Promise<{ inspection: Inspection; received: (Received & { dropped: number }) | null }>
  /** Writes the buffered receipts: of duplicates, and of events dropped while PostgreSQL was unavailable. */
  writeReceipts(): Promise<void>
}

/** Stored with the body in the log: the current settings of the source and the facts of the request. */
export function inboundContext(
  source: Source,
  facts: Pick<InboundContext, 'ip' | 'headers' | 'signature' | 'test'>,
): InboundContext {
  return {
    route: 'inbound',
    sourceId: source.id,
    sourceType: source.type,
    preset: source.preset,
    eventTypeOverride: source.config.event_type_override,
    eventIdPath: source.config.event_id_path,
    requireEventId: requiresEventId(source),
    ...effectSettings(source),
    ...facts,
  }
}

/** The source's settings for the effects of its events, in addition to its type and preset. */
export function effectSettings({
  config: { billing, namespace, records },
}: Source): Pick<InboundContext, 'billing' | 'namespace' | 'records'> {
  return {
    ...(billing !== null && { billing }),
    ...(namespace !== null && { namespace }),
    ...(records !== null && { records }),
  }
}

/** A provider gives every event an id, so an event without one was tampered with. */
export function requiresEventId({ preset, config }: Source): boolean {
  return config.require_event_id ?? (preset !== null && !findPreset(preset)?.withoutIds)
}

type Good = Inspection['accepted'][number]
type Known = { item: Good; firstId: string | null }

const DROPPED = 'dropped: above the rate limit of the source'

/** Sorts the events of a request into duplicates, due and over budget, and stores each part. */
export function openInbound(deps: {
  pool: pg.Pool
  accept: Accept
  budgets: Budgets
  overflow: Overflow
  throttle: Throttle
  withDatabase: WithDatabase
}): Inbound {
  const { accept, budgets, overflow, throttle, withDatabase } = deps
  // Sources over their limit have their own look-ups, so that a flood does not delay other sources.
  const run = (keys: ProcessedKey[]) => findFirstIds(deps.pool, keys)
  const lookUps = coalesce({ run, ...LOOK_UPS })
  const lookUpsOfFloods = coalesce({ run, ...FLOOD_LOOK_UPS })
  const writeReceipts = (receipts: Receipt[]) =>
    retryWithPartitions(deps.pool, () => withClient(deps.pool, client => insertReceipts(client, receipts)))
  // Receipts of duplicates are not worth waiting for: a job writes them in batches.
  let laterReceipts: Receipt[] = []
  function writeLater(receipts: Receipt[]): void {
    if (laterReceipts.length < MAX_LATER_RECEIPTS) laterReceipts.push(...receipts)
  }
  const receiptWrites = coalesce({
    async run(receipts: Receipt[]) {
      await writeReceipts(receipts)
      return receipts
    },
    ...RECEIPT_WRITES,
  })

  /** Takes the available budget. Events in the overflow queue go first. */
  async function budgetFor(source: Source, wanted: number): Promise<number> {
    const { overflow: mode, rate_limit } = source.config
    const isBacklogged = () =>
      withDatabase(
        () => overflow.isBacklogged(source.id),
        () => overflow.wasBacklogged(source.id),
      )
    if (wanted === 0 || (mode === 'defer' && (await isBacklogged()))) return 0
    return budgets.take(source.id, rate_limit, wanted)
  }

  async function keep(source: Source, parts: Parts, append: Append, context: InboundContext): Promise<void> {
    const { entry } = append
    const { due, over, rejected } = parts
    const kept: Promise<unknown>[] = []
    // Rejected items are stored with the due ones, or alone if none is due.
    const named = rejected.slice(0, MAX_NAMED_REJECTIONS)
    const items = [...due, ...named].map(({ index }) => index).sort((a, b) => a - b)
    if (items.length > 0)
      kept.push(accept([parts.isWhole ? append : { ...append, entry: withItems(entry, context, items) }]))
    if (over.length > 0 && source.config.overflow === 'defer') {
      const later = { ...entry, id: newEntryId(entry.receivedAt.getTime()) }
      const deferred = withItems(
        later,
        context,
        over.map(({ index }) => index),
      )
      kept.push(
        withDatabase<unknown>(
          () => overflow.defer({ sourceId: source.id, entry: deferred, items: over.length }),
          // With the same id: if both are stored, the events are processed once.
          () => accept([{ entry: withContext(deferred, { overBudget: true }), claim: null }]),
        ),
      )
    } else if (over.length > 0) {
      const receipts = receiptsOf(source, entry, over, { outcome: 'dropped', detail: DROPPED })
      kept.push(
        withDatabase<unknown>(
          () => receiptWrites.submit(receipts),
          () => writeLater(receipts),
        ),
      )
    }
    try {
      await Promise.all(kept)
    } catch (error) {
      budgets.giveBack(source.id, source.config.rate_limit, due.length).catch(() => undefined)
      throw error
    }
  }

  async function receive(source: Source, body: Body, context: InboundContext, now: Date) {
    const { inspection, append } = eventEntry(source.tenantId, body, context, now)
    if (inspection.accepted.length === 0) return { inspection, received: null }
    const lookUp = throttle.isOverLimit(source.id) ? lookUpsOfFloods : lookUps
    const { fresh, known } = await sortOut(source, inspection.accepted, keys =>
      withDatabase<(string | null)[]>(
        () => lookUp.submit(keys),
        () => keys.map(() => null),
      ),
    )
    const budget = await budgetFor(source, fresh.length)
    const due = fresh.slice(0, budget)
    const over = fresh.slice(budget)
    throttle.record(source.id, source.config.rate_limit, inspection.items, over.length > 0)
    const { rejected } = inspection
    const isWhole = due.length === inspection.accepted.length
    await keep(source, { due, over, rejected, isWhole }, append, context)
    for (const { item, firstId } of known)
      writeLater(receiptsOf(source, append.entry, [item], { outcome: 'duplicate', firstId }))

    const defers = source.config.overflow === 'defer'
    const dropped = defers ? [] : over.map(({ index }) => ({ index, message: DROPPED }))
    const received = {
      accepted: due.length,
      duplicates: known.length,
      deferred: defers ? over.length : 0,
      rejected: [...rejected, ...dropped].sort((a, b) => a.index - b.index),
      dropped: dropped.length,
    }
    return { inspection, received }
  }

  return {
    receive,
    throttle: (source, bytes) => throttle.wait(source.id, source.config.rate_limit, bytes),
    async writeReceipts() {
      const receipts = laterReceipts
      laterReceipts = []
      if (receipts.length === 0) return
      try {
        await writeReceipts(receipts)
      } catch (error) {
        if (isTransient(error)) writeLater(receipts)
        throw error
      }
    },
  }
}

type Parts = { due: Good[]; over: Good[]; rejected: RejectedItem[]; isWhole: boolean }

const MAX_LATER_RECEIPTS = 5_000
const LOOK_UPS = { maxItems: 2_000, maxInFlight: 3 }
const FLOOD_LOOK_UPS = { maxItems: 2_000, maxInFlight: 1, minIntervalMs: 5 }
const RECEIPT_WRITES = { maxItems: 5_000, maxInFlight: 1, minIntervalMs: 10 }

/** Repeats of processed events, or of an earlier item of the same body, use no budget and are not stored. */
async function sortOut(
  source: Source,
  items: Good[],
  firstIds: (keys: ProcessedKey[]) => Promise<(string | null)[]>,
): Promise<{ fresh: Good[]; known: Known[] }> {
  const named = items.filter(item => item.inboundEventId !== null)
  const keys = named.map(({ inboundEventId }) => ({
    tenantId: source.tenantId,
    key: processedKey(source.id, inboundEventId!),
  }))
  const firsts = (keys.length > 0 ? await firstIds(keys) : []).values()
  const seen = new Set<string>()
  const fresh: Good[] = []
  const known: Known[] = []
  for (const item of items) {
    if (item.inboundEventId === null) {
      fresh.push(item)
      continue
    }
    const firstId = firsts.next().value ?? null
    if (firstId !== null || seen.has(item.inboundEventId)) known.push({ item, firstId })
    else fresh.push(item)
    seen.add(item.inboundEventId)
  }
  return { fresh, known }
}

/** An optimization: duplicates that are missed here, or while storage is unavailable, are found by the pipeline. */
async function findFirstIds(pool: pg.Pool, keys: ProcessedKey[]): Promise<(string | null)[]> {
  try {
    const found = await findProcessed(pool, keys)
    if (found.length === 0) return keys.map(() => null)
    const ids = new Map(found.map(({ tenantId, key, eventId }) => [`${tenantId} ${key}`, eventId]))
    return keys.map(({ tenantId, key }) => ids.get(`${tenantId} ${key}`) ?? null)
  } catch (error) {
    if (isUnavailable(error)) return keys.map(() => null)
    throw error
  }
}

function withItems(entry: Entry, context: InboundContext, items: number[]): Entry {
  return { ...entry, context: JSON.stringify({ ...context, items }) }
}

function withContext(entry: Entry, more: Partial<InboundContext>): Entry {
  return { ...entry, context: JSON.stringify({ ...(JSON.parse(entry.context) as InboundContext), ...more }) }
}

function receiptsOf(
  source: Source,
  entry: Entry,
  items: Good[],
  facts: Pick<Receipt, 'outcome'> & Partial<Pick<Receipt, 'detail' | 'firstId'>>,
): Receipt[] {
  return items.map(({ index, inboundEventId }) => ({
    tenantId: source.tenantId,
    sourceId: source.id,
    id: itemId(entry.id, index),
    receivedAt: entry.receivedAt,
    inboundEventId,
    eventType: null,
    detail: null,
    firstId: null,
    ...facts,
  }))
}
