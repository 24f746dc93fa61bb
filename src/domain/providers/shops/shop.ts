/** What a shop's webhook says of records. */

import type { NormalizedEvent } from '../../events/events.ts'
import { MAX_ID_LENGTH } from '../../identity/identity.ts'
import type { JsonObject } from '../../json/json.ts'
import type { EntityType } from '../../records/records.ts'
import { timestampText } from '../../time.ts'

export type ShopRecord = {
  entityType: EntityType
  id: string
  /** The fields that are read here; the provider's own object goes beside them under `source`. */
  fields: JsonObject
  /** JSON text. */
  source: string
}

export type ShopChange = {
  /** ISO 8601 with microseconds, UTC: compares as text. */
  at: string
} & (
  | { op: 'write'; record: ShopRecord }
  | { op: 'delete'; entityType: EntityType; id: string }
  /** A product with all its records; what else is known of it, but for `kept`, is deleted. */
  | {
      op: 'product'
      id: string
      records: ShopRecord[]
      kept: string[]
      /** The records are told as one: an older telling changes none of them. */
      isSnapshot: boolean
      /** What it is called in a file of the shop's, which knows no ids. */
      handle: string | null
    }
  /** Money that went back, told without the order. */
  | { op: 'refund'; orderId: string; refundId: string; amount: string | null; refund: JsonObject }
)

export type ShopEvent = Pick<
  NormalizedEvent,
  'preset' | 'subject' | 'payload' | 'headers' | 'occurredAt' | 'receivedAt'
>

/** More is no product of a shop (Shopify's have 2,048 variants at most), but an attempt to keep us busy. */
export const MAX_VARIANTS = 2_048

/** Product fields stand in the record of each variant. */
const MAX_SHARED_TEXT = 500

export function idIn(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? String(value) : null
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH ? value : null
}

export function sharedText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== ''
    ? value.slice(0, MAX_SHARED_TEXT).toWellFormed()
    : undefined
}

/** The first that is a time. */
export function timeOf(event: ShopEvent, ...given: unknown[]): string {
  for (const value of given) {
    const text = timestampText(value)
    if (text !== null) return text
  }
  return timestampText(event.occurredAt.toISOString())!
}

/** Without what is not there. */
export function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  )
}

/** A line of an order; each shop has a name of its own for the variant. */
export function lineFields(line: JsonObject, variant: string): JsonObject {
  const { name, sku, quantity, price } = line
  return present({
    ...{ name, sku, quantity, price },
    product_id: idIn(line.product_id),
    variant_id: idIn(line[variant]),
  })
}
