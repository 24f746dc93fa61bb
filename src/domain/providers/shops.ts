/** Shops, whose webhooks become records. */

import type { ShopChange, ShopEvent } from './shops/shop.ts'
import { shopifyChanges } from './shops/shopify.ts'
import { woocommerceChanges } from './shops/woocommerce.ts'

const SHOPS: Record<string, (event: ShopEvent) => ShopChange[]> = {
  shopify: shopifyChanges,
  woocommerce: woocommerceChanges,
}

export function isShop(preset: string | null): boolean {
  return preset !== null && Object.hasOwn(SHOPS, preset)
}

/** What the event says of records, in the order in which it does. Never throws. */
export function shopChanges(event: ShopEvent): ShopChange[] {
  return isShop(event.preset) ? SHOPS[event.preset!]!(event) : []
}
