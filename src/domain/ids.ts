import { hash, randomFillSync } from 'node:crypto'

/**
 * Entry ids are UUIDv7 whose last 20 bits are zero: they are reserved for the index of an item in a batch,
 * so that every event of an entry has an id of its own that can be computed from the entry and back.
 */
const VARIANT = ['8', '9', 'a', 'b']

const pool = Buffer.alloc(6 * 512)
let used = pool.length
let lastMs = 0
let countInMs = 0

/** Ids of one process ascend. Within a millisecond, a counter in the 12 bits after the version orders them. */
export function newEntryId(nowMs: number): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  countInMs = nowMs === lastMs ? Math.min(countInMs + 1, 0xfff) : 0
  lastMs = nowMs
  const time = nowMs.toString(16).padStart(12, '0')
  const count = countInMs.toString(16).padStart(3, '0')
  const random = pool.toString('hex', used, used + 6)
  used += 6
  const variant = VARIANT[Number.parseInt(random[0]!, 16) & 0x3]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${variant}${random.slice(1, 4)}-${random.slice(4, 11)}00000`
}

export function itemId(entryId: string, index: number): string {
  return entryId.slice(0, 31) + index.toString(16).padStart(5, '0')
}

/** The greatest id that an item of the entry can have. */
export function lastItemId(entryId: string): string {
  return itemId(entryId, 0xfffff)
}

export function toEntryId(id: string): string {
  return `${id.slice(0, 31)}00000`
}

/** The index of an item in its entry. */
export function itemIndex(id: string): number {
  return Number.parseInt(id.slice(31), 16)
}

export function idToTime(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
}

/** No id of this time or a later one is smaller. */
export function firstIdAt(at: Date): string {
  const time = at.getTime().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

/** The bytes with which ids of this time start. */
export function timeOfReceipt(at: Date): Buffer {
  return Buffer.from(at.getTime().toString(16).padStart(12, '0'), 'hex')
}

/** A deterministic id: the same text gives the same id. */
export function hashToId(text: string): string {
  const digits = hash('sha256', text, 'hex')
  const variant = VARIANT[Number.parseInt(digits[16]!, 16) & 0x3]
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20, 32)}`
}

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
}
