/** Changes of records in a shop's webhook. */

import type { NormalizedEvent } from '../../events/types.ts'
import { MAX_ID_LENGTH } from '../../identity/identifiers.ts'
import type { JsonObject } from '../../json/json.ts'
import type { EntityType } from '../../records/records.ts'
import { timestampText } from '../../time.ts'

export type ShopRecord = {
  entityType: EntityType
  id: string
  /** The mapped fields. The provider's object is stored with them as `source`. */
  fields: JsonObject
  /** JSON text. */
  source: string
}

export type ShopChange = {
  /** ISO 8601 in UTC with microseconds, so it can be compared as a string. */
  at: string
} & (
  | { op: 'write'; record: ShopRecord }
  | { op: 'delete'; entityType: EntityType; id: string }
  /** A product with all its records. Its other records are deleted, except those in `kept`. */
  | {
      op: 'product'
      id: string
      records: ShopRecord[]
      kept: string[]
      /** The records form one version: an older version changes none of them. */
      isSnapshot: boolean
      /** The product's handle in the shop's CSV export, which has no ids. */
      handle: string | null
    }
  /** A refund that is sent without its order. */
  | { op: 'refund'; orderId: string; refund: JsonObject }
)

export type ShopEvent = Pick<
  NormalizedEvent,
  'preset' | 'subject' | 'payload' | 'headers' | 'occurredAt' | 'receivedAt'
>

/** Shopify's maximum. A product with more variants is an attempt to overload the server. */
export const MAX_VARIANTS = 2_048

/** Product fields are copied into the record of each variant. */
const MAX_SHARED_TEXT = 500

export function readShopId(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value > 0 ? String(value) : null
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH ? value : null
}

export function sharedText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, MAX_SHARED_TEXT).toWellFormed() : undefined
}

/** The first valid timestamp, else the time of the event. */
export function readTime(event: ShopEvent, ...given: unknown[]): string {
  for (const value of given) {
    const text = timestampText(value)
    if (text !== null) return text
  }
  return timestampText(event.occurredAt.toISOString())!
}

/** Drops empty fields. */
export function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  )
}

/** A line of an order. `variant`: the shop's name of the field with the variant id. `total`: after discounts, if it is known. */
export function lineFields(line: JsonObject, variant: string, total: unknown): JsonObject {
  const { name, sku, quantity, price } = line
  return present({
    ...{ name, sku, quantity, price, total },
    product_id: readShopId(line.product_id),
    variant_id: readShopId(line[variant]),
  })
}
