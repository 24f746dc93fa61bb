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
type Factory = { open(name: string, version: number): Asked<Database> & { onupgradeneeded?: () => void } }

const STORE = 'events'

/**
 * Keeps the queue of a page in the browser's IndexedDB: `new Kontor({ …, storage: indexedDbStorage() })`. The pages of an origin share it;
 * Kontor recognizes events that two of them send by their ids.
 */
export function indexedDbStorage(name = 'kontor'): EventStorage {
  const opened = open(name)
  const keys = new Map<string, unknown>()
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
    await null
    batch = null
    const added = await run('readwrite', store => events.map(event => store.add(event)))
    for (const [index, { id }] of events.entries()) keys.set(id, added[index]!.result)
  }

  return {
    async load(): Promise<StoredEvent[]> {
      const found = await run('readonly', store => ({ events: store.getAll(), keys: store.getAllKeys() }))
      const events = found.events.result
      for (const [index, { id }] of events.entries()) keys.set(id, found.keys.result[index])
      return events
    },
    add(event): Promise<void> {
      if (!batch) {
        const events: StoredEvent[] = []
        batch = { events, written: write(events) }
        written = batch.written
      }
      batch.events.push(event)
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

function open(name: string): Promise<Database> {
  return new Promise((resolve, reject) => {
    const asked = (globalThis as unknown as { indexedDB: Factory }).indexedDB.open(name, 1)
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { autoIncrement: true })
    asked.onsuccess = () => resolve(asked.result)
    asked.onerror = () => reject(asked.error)
  })
}
