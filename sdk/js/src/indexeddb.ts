import type { EventStorage, StoredEvent } from './types.ts'

// The part of IndexedDB that is used. The package needs no types of browsers.
type Asked<Result> = { result: Result; error: unknown; onsuccess?: () => void; onerror?: () => void }
type Store = {
  add(event: StoredEvent): Asked<unknown>
  delete(key: unknown): unknown
  getAll(): Asked<StoredEvent[]>
  getAllKeys(): Asked<unknown[]>
}
type Transaction = { objectStore(name: string): Store; error: unknown; oncomplete?: () => void; onabort?: () => void }
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

  async function run<Result>(mode: 'readonly' | 'readwrite', work: (store: Store) => Asked<Result> | null) {
    const transaction = (await opened).transaction(STORE, mode)
    const asked = work(transaction.objectStore(STORE))
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error)
    })
    return asked?.result
  }
  return {
    async load(): Promise<StoredEvent[]> {
      const events = (await run('readonly', store => store.getAll())) ?? []
      const found = (await run('readonly', store => store.getAllKeys())) ?? []
      for (const [index, { id }] of events.entries()) keys.set(id, found[index])
      return events
    },
    async add(event): Promise<void> {
      keys.set(event.id, await run('readwrite', store => store.add(event)))
    },
    async remove(ids): Promise<void> {
      await run('readwrite', store => {
        for (const id of ids) {
          if (keys.has(id)) store.delete(keys.get(id))
          keys.delete(id)
        }
        return null
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
