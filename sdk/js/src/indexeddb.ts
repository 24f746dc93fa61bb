import { randomId } from './http.ts'
import type { EventStorage, StoredEvent } from './types.ts'

// The part of IndexedDB that is used. The package needs no types of browsers.
type Asked<Result> = { result: Result; error: unknown; onsuccess?: () => void; onerror?: () => void }
type Store = {
  add(event: StoredEvent): Asked<unknown>
  delete(key: unknown): unknown
  getAll(): Asked<StoredEvent[]>
  getAllKeys(): Asked<unknown[]>
}
type Transaction = {
  objectStore(name: string): Store
  commit?(): void
  error: unknown
  oncomplete?: () => void
  onabort?: () => void
}
type Database = {
  transaction(store: string, mode: 'readonly' | 'readwrite'): Transaction
  createObjectStore(name: string, options: { autoIncrement: true }): unknown
}
type Page = {
  indexedDB: { open(name: string, version: number): Asked<Database> & { onupgradeneeded?: () => void } }
  localStorage: Record<string, string>
  addEventListener?(type: 'pagehide', listener: () => void): void
}

const STORE = 'events'
const page = globalThis as unknown as Page

/**
 * Keeps the queue of a page in the browser's IndexedDB: `new Kontor({ …, storage: indexedDbStorage() })`. The pages of an origin share it;
 * Kontor recognizes events that two of them send by their ids.
 */
export function indexedDbStorage(name = 'kontor'): EventStorage {
  const opened = open(name)
  const keys = new Map<string, unknown>()
  // A browser aborts open transactions when the page ends. The page then stores their events in localStorage, under this prefix, and
  // `load` of the next page moves them to IndexedDB.
  const left = `${name}-left-`
  const unwritten = new Set<StoredEvent>()
  page.addEventListener?.('pagehide', () => {
    if (unwritten.size > 0) page.localStorage[left + randomId()] = JSON.stringify([...unwritten])
  })
  /** The events added in the current task. They share a transaction. */
  let batch: { events: StoredEvent[]; written: Promise<void> } | null = null
  /** Settles when all added events are written. */
  let written: Promise<void> = Promise.resolve()

  /** Commits at once: the browser aborts open transactions when the page ends. */
  async function run<Result>(mode: 'readonly' | 'readwrite', work: (store: Store) => Result): Promise<Result> {
    const transaction = (await opened).transaction(STORE, mode)
    const asked = work(transaction.objectStore(STORE))
    transaction.commit?.()
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error)
    })
    return asked
  }

  async function write(events: StoredEvent[]): Promise<void> {
    const added = await run('readwrite', store => events.map(event => store.add(event)))
    for (const [index, { id }] of events.entries()) keys.set(id, added[index]!.result)
  }

  async function writeBatch(events: StoredEvent[]): Promise<void> {
    await null
    batch = null
    await write(events).finally(() => {
      for (const event of events) unwritten.delete(event)
    })
  }

  return {
    async load(): Promise<StoredEvent[]> {
      const found = await run('readonly', store => ({ events: store.getAll(), keys: store.getAllKeys() }))
      const events = found.events.result
      for (const [index, { id }] of events.entries()) keys.set(id, found.keys.result[index])
      const names = listKeys().filter(name => name.startsWith(left))
      const others = names.flatMap(readLeft)
      const missing = new Map(others.filter(({ id }) => !keys.has(id)).map(event => [event.id, event]))
      if (missing.size > 0) await write([...missing.values()])
      for (const name of names) delete page.localStorage[name]
      return [...events, ...missing.values()]
    },
    add(event): Promise<void> {
      if (!batch) {
        const events: StoredEvent[] = []
        batch = { events, written: writeBatch(events) }
        written = batch.written
      }
      batch.events.push(event)
      unwritten.add(event)
      return batch.written
    },
    async remove(ids): Promise<void> {
      await written.catch(() => {})
      await run('readwrite', store => {
        for (const id of ids) {
          if (keys.has(id)) store.delete(keys.get(id))
          keys.delete(id)
        }
      })
    },
  }
}

/** Empty where localStorage is missing (in workers) or blocked. */
function listKeys(): string[] {
  try {
    return Object.keys(page.localStorage)
  } catch {
    return []
  }
}

function readLeft(name: string): StoredEvent[] {
  try {
    return JSON.parse(page.localStorage[name]!) as StoredEvent[]
  } catch {
    return [] // damaged
  }
}

function open(name: string): Promise<Database> {
  return new Promise((resolve, reject) => {
    const asked = page.indexedDB.open(name, 1)
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { autoIncrement: true })
    asked.onsuccess = () => resolve(asked.result)
    asked.onerror = () => reject(asked.error)
  })
}
