import type pg from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible'
import type { SourceConfig } from '../domain/inbound/source-config.ts'
import { CLOCKS_APART_MS } from '../domain/time.ts'
import { type Coalesced, coalesce } from './coalesce.ts'
import type { WithDatabase } from './optional-database.ts'

/** A bucket of `events` tokens that is refilled `per_seconds` after the first token was taken. */
export type RateLimit = SourceConfig['rate_limit']

/** How many more events each source may send. */
export type Budgets = {
  /** Takes up to `wanted` tokens; returns how many. */
  take(sourceId: string, limit: RateLimit, wanted: number): Promise<number>
  /** Takes all or none; if none, returns when the bucket is refilled. */
  takeAll(sourceId: string, limit: RateLimit, wanted: number): Promise<{ retryAfterMs: number } | null>
  giveBack(sourceId: string, limit: RateLimit, unused: number): Promise<void>
}

type Limiter = Pick<RateLimiterMemory, 'consume' | 'reward' | 'delete'>
type Taken = { granted: number; emptyForMs: number }

type BudgetOptions = {
  store: 'memory' | 'postgres'
  pool: pg.Pool
  withDatabase?: WithDatabase
  /** How many processes share the budgets. */
  nodes?: () => number
}

/**
 * memory: each process has its own budgets; postgres: all nodes share them. While PostgreSQL is unavailable and events are kept on
 * NATS, each node has its share.
 */
export function openBudgets(options: BudgetOptions): Budgets {
  const { store, pool, withDatabase = work => work(), nodes = () => 1 } = options
  const local = openLocalBudgets()
  if (store === 'memory') return local
  const shared = coalesceTakes(openBuckets({ store, pool }))
  const shareOf = ({ events, per_seconds }: RateLimit): RateLimit => ({
    ...{ events: Math.max(1, Math.floor(events / nodes())), per_seconds },
  })
  return {
    take: (id, limit, wanted) =>
      withDatabase(
        () => shared.take(id, limit, wanted),
        () => local.take(id, shareOf(limit), wanted),
      ),
    takeAll: (id, limit, wanted) =>
      withDatabase(
        () => shared.takeAll(id, limit, wanted),
        () => local.takeAll(id, shareOf(limit), wanted),
      ),
    giveBack: (id, limit, unused) =>
      withDatabase(
        () => shared.giveBack(id, limit, unused),
        () => local.giveBack(id, shareOf(limit), unused),
      ),
  }
}

function openLocalBudgets(): Budgets {
  const { take, giveBack } = openBuckets({ store: 'memory' })
  return {
    take: async (...wanted) => (await take(...wanted)).granted,
    async takeAll(id, limit, wanted) {
      const { granted, emptyForMs } = await take(id, limit, wanted)
      if (granted === wanted) return null
      await giveBack(id, limit, granted)
      return { retryAfterMs: emptyForMs }
    },
    giveBack,
  }
}

type Buckets = { store: 'memory' } | { store: 'postgres'; pool: pg.Pool }

function openBuckets(options: Buckets): { take: Take; giveBack: Budgets['giveBack'] } {
  const limiters = new Map<string, Limiter>()
  function findLimiter(limit: RateLimit): Limiter {
    const name = formatLimit(limit)
    let limiter = limiters.get(name)
    if (!limiter) {
      limiter = createLimiter(options, limit)
      limiters.set(name, limiter)
    }
    return limiter
  }

  return {
    take: (sourceId, limit, wanted) => takeFrom(findLimiter(limit), bucketKey(sourceId, limit), limit, wanted),
    async giveBack(sourceId, limit, unused) {
      if (unused > 0) await findLimiter(limit).reward(bucketKey(sourceId, limit), unused)
    },
  }
}

function formatLimit({ events, per_seconds }: RateLimit): string {
  return `${events}/${per_seconds}`
}

/** Includes the limit: after a change of the limit the bucket is full. */
function bucketKey(sourceId: string, limit: RateLimit): string {
  return `${sourceId} ${formatLimit(limit)}`
}

function createLimiter(buckets: Buckets, limit: RateLimit): Limiter {
  const settings = { keyPrefix: '', points: limit.events, duration: limit.per_seconds }
  if (buckets.store === 'memory') return new RateLimiterMemory(settings)
  const { pool } = buckets
  return new RateLimiterPostgres({
    ...settings,
    // Without a statement name: transaction poolers do not support prepared statements.
    storeClient: { query: (query: pg.QueryConfig) => pool.query(query.text, query.values) },
    storeType: 'client',
    tableName: 'volume_budgets',
    tableCreated: true,
    clearExpiredByTimeout: false,
  })
}

/**
 * The limiter grants all or nothing, and counts either way. A rejected request has emptied the bucket: it gets what was in
 * it, and the rest is given back. No other request can have been granted in between.
 */
async function takeFrom(limiter: Limiter, key: string, limit: RateLimit, wanted: number): Promise<Taken> {
  // The limiter uses the clock of its node. A bucket that lasts longer than its period was created by a node whose clock is
  // ahead, or is read by one whose clock is behind. It is deleted: otherwise it would block its source for as long as the
  // clocks differ.
  const isFromWrongClock = (ms: number) => ms > limit.per_seconds * 1_000 + CLOCKS_APART_MS
  try {
    const { msBeforeNext } = await limiter.consume(key, wanted)
    if (isFromWrongClock(msBeforeNext)) await limiter.delete(key)
    return { granted: wanted, emptyForMs: 0 }
  } catch (rejection) {
    if (rejection instanceof Error) throw rejection
    const { consumedPoints, msBeforeNext } = rejection as RateLimiterRes
    if (isFromWrongClock(msBeforeNext)) {
      await limiter.delete(key)
      return { granted: 0, emptyForMs: 0 }
    }
    const over = Math.min(wanted, consumedPoints - limit.events)
    // In the next period these tokens would be extra.
    if (msBeforeNext > 0) await limiter.reward(key, over)
    return { granted: wanted - over, emptyForMs: msBeforeNext }
  }
}

type Take = (sourceId: string, limit: RateLimit, wanted: number) => Promise<Taken>
type Bucket = { takes: Coalesced<number, number>; emptyUntil: number }

const MAX_BUCKETS = 10_000

/**
 * One take per source at a time; requests that arrive meanwhile share the next. Otherwise a flood would queue at the lock of
 * its row. An empty bucket is not queried.
 */
function coalesceTakes({ take, giveBack }: { take: Take; giveBack: Budgets['giveBack'] }): Budgets {
  const buckets = new Map<string, Bucket>()

  function findBucket(sourceId: string, limit: RateLimit): Bucket {
    const key = bucketKey(sourceId, limit)
    const existing = buckets.get(key)
    if (existing) return existing
    const bucket: Bucket = {
      takes: coalesce({
        async run(wanted: number[]) {
          const total = wanted.reduce((sum, each) => sum + each, 0)
          const { granted, emptyForMs } = await take(sourceId, limit, total)
          bucket.emptyUntil = performance.now() + emptyForMs
          return distribute(granted, wanted)
        },
        maxItems: Infinity,
        maxInFlight: 1,
      }),
      emptyUntil: 0,
    }
    if (buckets.size >= MAX_BUCKETS) buckets.clear()
    buckets.set(key, bucket)
    return bucket
  }

  return {
    async take(sourceId, limit, wanted) {
      const { takes, emptyUntil } = findBucket(sourceId, limit)
      return performance.now() < emptyUntil ? 0 : (await takes.submit([wanted]))[0]!
    },
    async takeAll(sourceId, limit, wanted) {
      const granted = await this.take(sourceId, limit, wanted)
      if (granted === wanted) return null
      const retryAfterMs = findBucket(sourceId, limit).emptyUntil - performance.now()
      await this.giveBack(sourceId, limit, granted)
      return { retryAfterMs }
    },
    async giveBack(sourceId, limit, unused) {
      await giveBack(sourceId, limit, unused)
      if (unused > 0) findBucket(sourceId, limit).emptyUntil = 0
    },
  }
}

/** First come, first served. */
function distribute(granted: number, wanted: number[]): number[] {
  let left = granted
  return wanted.map(each => {
    const share = Math.min(each, left)
    left -= share
    return share
  })
}
