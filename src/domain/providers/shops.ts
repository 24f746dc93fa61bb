/** Shops, whose webhooks become records. */

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

/** Which records the event may tell of, by its topic; null: none. */
export function shopType({ preset, headers }: Pick<ShopEvent, 'preset' | 'headers'>): EntityType | null {
  const topic = headers[preset === 'woocommerce' ? WOOCOMMERCE_TOPIC : SHOPIFY_TOPIC] ?? ''
  const [resource = ''] = topic.split(/[/.]/)
  return Object.hasOwn(TYPES, resource) ? TYPES[resource]! : null
}

/** The handle by which a row of Shopify's file goes, which knows no ids; null where it is no such row. */
export function handleInFile({
  entityType,
  id,
  data: { handle, source },
}: Pick<RecordWrite, 'entityType' | 'id' | 'data'>): string | null {
  if (entityType !== 'product' || typeof handle !== 'string' || source !== undefined) return null
  return id === handle || id.startsWith(`${handle}/`) ? handle : null
}

/** What the event says of records, in the order in which it does. Never throws. */
export function shopChanges(event: ShopEvent): ShopChange[] {
  return isShop(event.preset) ? SHOPS[event.preset!]!(event) : []
}
