import type pg from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible'
import type { SourceConfig } from '../domain/inbound/source-config.ts'
import { CLOCKS_APART_MS } from '../domain/time.ts'
import { type Coalesced, coalesce } from './coalesce.ts'

/** A bucket of `events` tokens that is filled up again `per_seconds` after the first one was taken out. */
export type RateLimit = SourceConfig['rate_limit']

/** How many events each source may still bring in. */
export type Budgets = {
  /** Takes what there is, up to `wanted`; returns how much that was. */
  take(sourceId: string, limit: RateLimit, wanted: number): Promise<number>
  /** Takes all of it, or nothing: then it tells how long the bucket stays as empty as it is. */
  takeAll(sourceId: string, limit: RateLimit, wanted: number): Promise<{ retryAfterMs: number } | null>
  /** For what was taken and not used. */
  giveBack(sourceId: string, limit: RateLimit, unused: number): Promise<void>
}

type Limiter = Pick<RateLimiterMemory, 'consume' | 'reward' | 'delete'>
type Taken = { granted: number; emptyForMs: number }

/** memory: each node has budgets of its own; postgres: all nodes share them. */
export function openBudgets(options: { store: 'memory' | 'postgres'; pool: pg.Pool }): Budgets {
  const limiters = new Map<string, Limiter>()
  function limiterOf(limit: RateLimit): Limiter {
    const name = nameOf(limit)
    let limiter = limiters.get(name)
    if (!limiter) {
      limiter = newLimiter(options, limit)
      limiters.set(name, limiter)
    }
    return limiter
  }
  // A changed limit begins with a full bucket.
  const keyOf = (sourceId: string, limit: RateLimit) => `${sourceId} ${nameOf(limit)}`

  const budgets = {
    take: (sourceId: string, limit: RateLimit, wanted: number) =>
      takeFrom(limiterOf(limit), keyOf(sourceId, limit), limit, wanted),
    async giveBack(sourceId: string, limit: RateLimit, unused: number) {
      if (unused > 0) await limiterOf(limit).reward(keyOf(sourceId, limit), unused)
    },
  }
  if (options.store === 'postgres') return shared(budgets, keyOf)
  return {
    ...budgets,
    take: async (...wanted) => (await budgets.take(...wanted)).granted,
    async takeAll(id, limit, wanted) {
      const { granted, emptyForMs } = await budgets.take(id, limit, wanted)
      if (granted === wanted) return null
      await budgets.giveBack(id, limit, granted)
      return { retryAfterMs: emptyForMs }
    },
  }
}

function nameOf({ events, per_seconds }: RateLimit): string {
  return `${events}/${per_seconds}`
}

function newLimiter({ store, pool }: { store: string; pool: pg.Pool }, limit: RateLimit): Limiter {
  const settings = { keyPrefix: '', points: limit.events, duration: limit.per_seconds }
  if (store === 'memory') return new RateLimiterMemory(settings)
  return new RateLimiterPostgres({
    ...settings,
    // Without the statement's name: behind a transaction pooler there are no prepared statements.
    storeClient: { query: (query: pg.QueryConfig) => pool.query(query.text, query.values) },
    storeType: 'client',
    tableName: 'volume_budgets',
    tableCreated: true,
    clearExpiredByTimeout: false,
  })
}

/**
 * The limiter takes all or refuses, and counts either way. Whoever is refused has emptied the bucket: what was in it
 * is theirs, and the rest is handed back. Nobody can have been let through in between.
 */
async function takeFrom(limiter: Limiter, key: string, limit: RateLimit, wanted: number): Promise<Taken> {
  // The limiter counts by the clock of its node. A bucket that lasts longer than any does was made by one that was ahead by a year, or
  // is seen by one that is behind, and is made anew: it would hold its source back for as long as the clocks were apart.
  const isOfAnotherTime = (ms: number) => ms > limit.per_seconds * 1_000 + CLOCKS_APART_MS
  try {
    const { msBeforeNext } = await limiter.consume(key, wanted)
    if (isOfAnotherTime(msBeforeNext)) await limiter.delete(key)
    return { granted: wanted, emptyForMs: 0 }
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal
    const { consumedPoints, msBeforeNext } = refusal as RateLimiterRes
    if (isOfAnotherTime(msBeforeNext)) {
      await limiter.delete(key)
      return { granted: 0, emptyForMs: 0 }
    }
    const over = Math.min(wanted, consumedPoints - limit.events)
    // In the next period it would be a gift.
    if (msBeforeNext > 0) await limiter.reward(key, over)
    return { granted: wanted - over, emptyForMs: msBeforeNext }
  }
}

type Take = (sourceId: string, limit: RateLimit, wanted: number) => Promise<Taken>
type Bucket = { takes: Coalesced<number, number>; emptyUntil: number }

// A flood would otherwise queue up behind the lock of its one row; buckets beyond this are made anew.
const MAX_BUCKETS = 10_000
const TAKES = { maxItems: Infinity, maxInFlight: 1 }

/** One take a source at a time: what is wanted meanwhile shares the next. An empty bucket is left alone. */
function shared(
  { take, giveBack }: { take: Take; giveBack: Budgets['giveBack'] },
  keyOf: (sourceId: string, limit: RateLimit) => string,
): Budgets {
  const buckets = new Map<string, Bucket>()

  function bucketOf(sourceId: string, limit: RateLimit): Bucket {
    const key = keyOf(sourceId, limit)
    const known = buckets.get(key)
    if (known) return known
    const bucket: Bucket = {
      takes: coalesce({
        async run(wanted: number[]) {
          const { granted, emptyForMs } = await take(sourceId, limit, sum(wanted))
          bucket.emptyUntil = performance.now() + emptyForMs
          return sharesOf(granted, wanted)
        },
        ...TAKES,
      }),
      emptyUntil: 0,
    }
    if (buckets.size >= MAX_BUCKETS) buckets.clear()
    buckets.set(key, bucket)
    return bucket
  }

  return {
    async take(sourceId, limit, wanted) {
      const { takes, emptyUntil } = bucketOf(sourceId, limit)
      return performance.now() < emptyUntil ? 0 : (await takes.submit([wanted]))[0]!
    },
    async takeAll(sourceId, limit, wanted) {
      const granted = await this.take(sourceId, limit, wanted)
      if (granted === wanted) return null
      const retryAfterMs = bucketOf(sourceId, limit).emptyUntil - performance.now()
      await this.giveBack(sourceId, limit, granted)
      return { retryAfterMs }
    },
    async giveBack(sourceId, limit, unused) {
      await giveBack(sourceId, limit, unused)
      if (unused > 0) bucketOf(sourceId, limit).emptyUntil = 0
    },
  }
}

/** First come, first served. */
function sharesOf(granted: number, wanted: number[]): number[] {
  let left = granted
  return wanted.map(each => {
    const share = Math.min(each, left)
    left -= share
    return share
  })
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
