import type { EntityType } from '../../domain/records/records.ts'
import type { Reading } from '../row.ts'
import { shopifyCustomers } from './shopify-customers.ts'
import { shopifyOrders } from './shopify-orders.ts'
import { shopifyProducts } from './shopify-products.ts'
import { woocommerceProducts } from './woocommerce-products.ts'

/** An export format of a shop with its required columns. An array lists alternative names of one column. */
export type Preset = {
  entityType: EntityType
  columns: readonly (string | readonly string[])[]
  reading(time: Date): Reading
}

export const PRESETS: Record<string, Preset> = {
  'shopify-products': shopifyProducts,
  'shopify-customers': shopifyCustomers,
  'shopify-orders': shopifyOrders,
  'woocommerce-products': woocommerceProducts,
}
