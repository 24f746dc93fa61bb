import type { EntityType } from '../../domain/records/records.ts'
import type { Reading } from '../row.ts'
import { shopifyCustomers } from './shopify-customers.ts'
import { shopifyOrders } from './shopify-orders.ts'
import { shopifyProducts } from './shopify-products.ts'
import { woocommerceProducts } from './woocommerce-products.ts'

/** A shop's own export: what it holds, and the columns without which it is not that; of several names, one suffices. */
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
