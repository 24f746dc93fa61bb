import type pg from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, type RateLimiterRes } from 'rate-limiter-flexible'

/** A bucket of `events` tokens that is filled up again `per_seconds` after the first one was taken out. */
export type RateLimit = { events: number; per_seconds: number }

/** How many events each source may still bring in. */
export type Budgets = {
  /** Takes what there is, up to `wanted`; returns how much that was. */
  take(sourceId: string, limit: RateLimit, wanted: number): Promise<number>
  /** For what was taken and not used. */
  giveBack(sourceId: string, limit: RateLimit, unused: number): Promise<void>
}

type Limiter = Pick<RateLimiterMemory, 'consume' | 'reward'>
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
  return { ...budgets, take: async (...wish) => (await budgets.take(...wish)).granted }
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
  try {
    await limiter.consume(key, wanted)
    return { granted: wanted, emptyForMs: 0 }
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal
    const { consumedPoints, msBeforeNext } = refusal as RateLimiterRes
    const over = Math.min(wanted, consumedPoints - limit.events)
    // In the next period it would be a gift.
    if (msBeforeNext > 0) await limiter.reward(key, over)
    return { granted: wanted - over, emptyForMs: msBeforeNext }
  }
}

type Take = (sourceId: string, limit: RateLimit, wanted: number) => Promise<Taken>
type Wish = { wanted: number; resolve(granted: number): void; reject(error: unknown): void }
type Bucket = { wishes: Wish[]; isAsking: boolean; emptyUntil: number }

// A flood would otherwise queue up behind the lock of its one row; buckets beyond this are made anew.
const MAX_BUCKETS = 10_000

/** At most one question a source under way: what comes meanwhile shares the next. An empty bucket is not asked. */
function shared(
  { take, giveBack }: { take: Take; giveBack: Budgets['giveBack'] },
  keyOf: (sourceId: string, limit: RateLimit) => string,
): Budgets {
  const buckets = new Map<string, Bucket>()
  function bucketOf(sourceId: string, limit: RateLimit): Bucket {
    const key = keyOf(sourceId, limit)
    let bucket = buckets.get(key)
    if (!bucket) {
      if (buckets.size >= MAX_BUCKETS) buckets.clear()
      bucket = { wishes: [], isAsking: false, emptyUntil: 0 }
      buckets.set(key, bucket)
    }
    return bucket
  }

  async function ask(bucket: Bucket, sourceId: string, limit: RateLimit): Promise<void> {
    bucket.isAsking = true
    while (bucket.wishes.length > 0) {
      const wishes = bucket.wishes.splice(0)
      try {
        const wanted = wishes.reduce((sum, wish) => sum + wish.wanted, 0)
        let { granted, emptyForMs } = await take(sourceId, limit, wanted)
        bucket.emptyUntil = Date.now() + emptyForMs
        for (const wish of wishes) {
          const share = Math.min(wish.wanted, granted)
          granted -= share
          wish.resolve(share)
        }
      } catch (error) {
        for (const wish of wishes) wish.reject(error)
      }
    }
    bucket.isAsking = false
  }

  return {
    take(sourceId, limit, wanted) {
      const bucket = bucketOf(sourceId, limit)
      if (Date.now() < bucket.emptyUntil) return Promise.resolve(0)
      return new Promise((resolve, reject) => {
        bucket.wishes.push({ wanted, resolve, reject })
        if (!bucket.isAsking) ask(bucket, sourceId, limit)
      })
    },
    async giveBack(sourceId, limit, unused) {
      await giveBack(sourceId, limit, unused)
      if (unused > 0) bucketOf(sourceId, limit).emptyUntil = 0
    },
  }
}
