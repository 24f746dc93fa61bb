/** Shops. Their webhooks become records. */

import type { EntityType, RecordWrite } from '../records/records.ts'
import type { ShopChange, ShopEvent } from './shops/shop.ts'
import { SHOPIFY_TOPIC, shopifyChanges } from './shops/shopify.ts'
import { WOOCOMMERCE_TOPIC, woocommerceChanges } from './shops/woocommerce.ts'

const SHOPS: Record<string, (event: ShopEvent) => ShopChange[]> = {
  shopify: shopifyChanges,
  woocommerce: woocommerceChanges,
}

export function isShop(preset: string | null): boolean {
  return preset !== null && Object.hasOwn(SHOPS, preset)
}

const TYPES: Record<string, EntityType> = {
  ...{ products: 'product', customers: 'contact', orders: 'order', refunds: 'order' },
  ...{ product: 'product', customer: 'contact', order: 'order' },
}

/** The entity type of the records that an event of this topic may change; null: none. */
export function readEntityType({ preset, headers }: Pick<ShopEvent, 'preset' | 'headers'>): EntityType | null {
  const topic = headers[preset === 'woocommerce' ? WOOCOMMERCE_TOPIC : SHOPIFY_TOPIC] ?? ''
  const [resource = ''] = topic.split(/[/.]/)
  return Object.hasOwn(TYPES, resource) ? TYPES[resource]! : null
}

/** The handle in the id of a record from Shopify's CSV export, which has no ids; null: another record. */
export function readFileHandle({
  entityType,
  id,
  data: { handle, source },
}: Pick<RecordWrite, 'entityType' | 'id' | 'data'>): string | null {
  if (entityType !== 'product' || typeof handle !== 'string' || source !== undefined) return null
  return id === handle || id.startsWith(`${handle}/`) ? handle : null
}

/** The changes of records in an event, in order. Never throws. */
export function readShopChanges(event: ShopEvent): ShopChange[] {
  return isShop(event.preset) ? SHOPS[event.preset!]!(event) : []
}
