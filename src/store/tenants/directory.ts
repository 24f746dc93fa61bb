import type pg from 'pg'
import { hashOfSecret, kindOfKey } from '../../domain/tenants/keys.ts'
import { findSource, type Source } from '../inbound/sources.ts'
import { type ApiKey, findKeyByHash, type KeyOfTenant, touchKeys } from './keys.ts'

/**
 * Caches keys and sources, so that a request needs no query for authentication and known senders are accepted while the database
 * is unavailable. Any change clears the cache (see config-version.ts). If the database is unavailable, a look-up that is not
 * cached throws: the response is 503, never 401.
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
// Each holds a connection and up to 64 KiB of its request.
const MAX_WAITING = 1_000

export function openDirectory({ pool }: { pool: pg.Pool }): Directory {
  const keys = remembering<string, KeyOfTenant>(secret => findKeyByHash(pool, hashOfSecret(secret)))
  const sources = remembering<string, Source>(id => findSource(pool, id))
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
function remembering<K, V>(find: (key: K) => Promise<V | null>) {
  const known = new Map<K, V | null>()
  const underWay = new Map<K, Promise<V | null>>()
  let generation = 0
  let waiting = 0

  async function wait(key: K): Promise<V | null> {
    if (waiting >= MAX_WAITING) throw new Error('too many look-ups of keys and sources are waiting')
    waiting++
    try {
      return await lookUp(key)
    } finally {
      waiting--
    }
  }

  function lookUp(key: K): Promise<V | null> {
    const shared = underWay.get(key)
    if (shared) return shared
    const startedIn = generation
    const lookedUp = find(key)
      .then(value => {
        // A result from before a change must not be cached after it.
        if (startedIn === generation) {
          if (known.size >= MAX_REMEMBERED) known.clear()
          known.set(key, value)
        }
        return value
      })
      .finally(() => {
        if (underWay.get(key) === lookedUp) underWay.delete(key)
      })
    underWay.set(key, lookedUp)
    return lookedUp
  }

  return {
    known(key: K): V | null | undefined {
      return known.get(key)
    },
    get(key: K): V | null | Promise<V | null> {
      const value = known.get(key)
      return value === undefined ? wait(key) : value
    },
    forget() {
      generation++
      known.clear()
      underWay.clear()
    },
  }
}
