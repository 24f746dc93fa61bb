import type { JsonObject } from './json.ts'

/** The value at a dotted path (`data.object.id`, `items.0.sku`), through own fields only. */
export function valueAt(body: unknown, path: string): unknown {
  let value: unknown = body
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as JsonObject)[key]
  }
  return value
}
