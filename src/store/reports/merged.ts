/**
 * The first rows of several sources that are each in order already: merged as they are read, where sorting them
 * together would read all. `$offset + $limit` of each are enough.
 */
export function merged(sources: string[], order: string, offset: string, limit: string): string {
  const ordered = sources.map(
    source => `(${source} order by ${order} limit ${offset}::bigint + ${limit}::bigint)`,
  )
  return `(${ordered.join(' union all ')}) merged order by ${order} offset ${offset} limit ${limit}`
}
