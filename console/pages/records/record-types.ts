import type { RecordType } from '../../api/types.ts'

/** The kinds of records, by their name in addresses, with one of them in words. */
export const RECORD_TYPES: Record<RecordType, string> = {
  products: 'product',
  contacts: 'contact',
  orders: 'order',
}

export function recordTypeOf(name: string): RecordType {
  return Object.hasOwn(RECORD_TYPES, name) ? (name as RecordType) : 'products'
}
