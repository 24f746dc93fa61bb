import type pg from 'pg'
import { hashOfSecret, kindOfKey } from '../../domain/tenants/keys.ts'
import { isTransient } from '../../postgres/database.ts'
import { findSources, type Source } from '../inbound/sources.ts'
import { type ApiKey, findKeysByHash, type KeyOfTenant, touchKeys } from './keys.ts'

/**
 * Caches keys and sources, so that a request needs no query for authentication and known senders are accepted while the database
 * is unavailable. After any change (see config-version.ts) everything cached is read again. If the database is unavailable, a
 * look-up returns what was cached before the change; one that was never cached throws: the response is 503, never 401.
 */
export type Directory = {
  /** Also returns a revoked or expired key. Null if it does not exist. */
  key(secret: string): KeyOfTenant | null | Promise<KeyOfTenant | null>
  source(id: string): Source | null | Promise<Source | null>
  /** Records that the key was used. `writeUses` writes the records in batches. */
  noteUse(key: ApiKey, at: Date): void
  forget(): void
  writeUses(): Promise<void>
}

// Limits the memory that invented credentials can use.
const MAX_REMEMBERED = 50_000
// After a change that many are read again at once, each time with one query of about 5 ms.
const READ_AGAIN = 1_000
// If the database does not answer in this time, what was known before the change counts.
const WAIT_MS = 500
// Each holds a connection and up to 64 KiB of its request.
const MAX_WAITING = 1_000

export function openDirectory({ pool }: { pool: pg.Pool }): Directory {
  const keys = remembering<string, KeyOfTenant>(secrets => findKeysByHash(pool, secrets.map(hashOfSecret)))
  const sources = remembering<string, Source>(ids => findSources(pool, ids))
  const uses = new Map<string, Date>()

  function forget() {
    keys.forget()
    sources.forget()
  }

  return {
    key(secret) {
      // The checksum rejects invalid keys without a query. A cached key has passed it.
      return keys.known(secret) ?? (kindOfKey(secret) === null ? null : keys.get(secret))
    },
    source: id => (/^src_[0-9A-Za-z]{1,40}$/.test(id) ? sources.get(id) : null),
    noteUse: (key, at) => uses.set(key.id, at),
    forget,
    async writeUses() {
      if (uses.size === 0) return
      const written = [...uses].map(([id, at]) => ({ id, at }))
      uses.clear()
      await touchKeys(pool, written)
    },
  }
}

/** Also caches that nothing was found. Concurrent look-ups of one key share one query. */
function remembering<K, V>(find: (keys: K[]) => Promise<(V | null)[]>) {
  const known = new Map<K, V>()
  /** Separate, so that invented keys do not push out real ones. */
  const absent = new Set<K>()
  /** What was known before the last change and is not read again yet. */
  const former = new Map<K, V>()
  const underWay = new Map<K, { lookedUp: Promise<V | null>; since: number }>()
  let generation = 0
  let waiting = 0
  let isReadingAgain = false

  async function wait(key: K): Promise<V | null> {
    const { lookedUp, since } = lookUp(key)
    const before = former.get(key)
    if (before === undefined) return lookedUp
    const left = since + WAIT_MS - performance.now()
    if (left <= 0) return before
    let timer: NodeJS.Timeout | undefined
    const tooSlow = new Promise<V>(resolve => {
      timer = setTimeout(resolve, left, before)
    })
    return Promise.race([lookedUp, tooSlow])
      .catch(error => {
        if (isTransient(error)) return before
        throw error
      })
      .finally(() => clearTimeout(timer))
  }

  async function waitInLine(key: K): Promise<V | null> {
    if (waiting >= MAX_WAITING) throw new Error('too many look-ups of keys and sources are waiting')
    waiting++
    try {
      return await wait(key)
    } finally {
      waiting--
    }
  }

  function lookUp(key: K) {
    const shared = underWay.get(key)
    if (shared) return shared
    const startedIn = generation
    const lookedUp = find([key])
      .then(([value]) => {
        if (startedIn === generation) remember(key, value!)
        // A result from before a change is like what was cached before it.
        else if (value! !== null) former.set(key, value!)
        return value!
      })
      .finally(() => {
        if (underWay.get(key) === looking) underWay.delete(key)
      })
    // Its callers may have stopped waiting.
    lookedUp.catch(() => {})
    const looking = { lookedUp, since: performance.now() }
    underWay.set(key, looking)
    return looking
  }

  function remember(key: K, value: V | null): void {
    former.delete(key)
    if (value === null) {
      if (absent.size >= MAX_REMEMBERED) absent.clear()
      absent.add(key)
    } else {
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(key, value)
    }
  }

  /** So that an outage after a change finds everything known as it is now. */
  async function readAgain(): Promise<void> {
    if (isReadingAgain) return
    isReadingAgain = true
    try {
      while (former.size > 0) {
        const startedIn = generation
        const keys = [...former.keys()].slice(0, READ_AGAIN)
        const found = await find(keys)
        if (startedIn === generation) for (const [i, key] of keys.entries()) remember(key, found[i]!)
      }
    } catch {
      // The database is unavailable: each is read when it is next needed.
    } finally {
      isReadingAgain = false
    }
  }

  const recall = (key: K): V | null | undefined => known.get(key) ?? (absent.has(key) ? null : undefined)
  return {
    known: recall,
    get(key: K): V | null | Promise<V | null> {
      const value = recall(key)
      return value === undefined ? waitInLine(key) : value
    },
    forget() {
      generation++
      for (const [key, value] of known) former.set(key, value)
      known.clear()
      absent.clear()
      underWay.clear()
      void readAgain()
    },
  }
}
