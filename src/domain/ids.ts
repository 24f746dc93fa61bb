import { randomFillSync } from 'node:crypto'

/**
 * Entry ids are UUIDv7 whose last 20 bits are zero: they are reserved for the index of an item in a batch,
 * so that every event of an entry has an id of its own that can be computed from the entry and back.
 */
const ITEM_BITS = 20
export const MAX_ITEMS_PER_ENTRY = 1 << ITEM_BITS

const pool = Buffer.alloc(8 * 512)
let used = pool.length

export function newEntryId(nowMs: number): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const time = nowMs.toString(16).padStart(12, '0')
  const random = pool.toString('hex', used, used + 8)
  used += 8
  const variant = (0x8 | (Number.parseInt(random[3]!, 16) & 0x3)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 14)}00000`
}

export function itemId(entryId: string, index: number): string {
  return entryId.slice(0, 31) + index.toString(16).padStart(5, '0')
}

export function entryIdOf(id: string): string {
  return `${id.slice(0, 31)}00000`
}

export function itemIndexOf(id: string): number {
  return Number.parseInt(id.slice(31), 16)
}

export function timeOfId(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16))
}

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text)
}
