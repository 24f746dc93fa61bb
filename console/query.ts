/** What stands behind the question mark of an address or a request. */
export type Query = Record<string, string | number | null | undefined>

/** ?a=1&b=2, or nothing; what is empty is left out. */
export function searchOf(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)] as [string, string]],
  )
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
