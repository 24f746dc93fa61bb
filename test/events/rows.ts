import type { TestServer } from '../server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into rows freely
export type Row = any

/** All rows of a list, page by page, once everything accepted has taken effect. */
export async function rowsOf(
  server: TestServer,
  list: 'events' | 'conversions',
  { key = server.tenant.privateKey, query = '' } = {},
): Promise<Row[]> {
  await server.settled()
  const rows: Row[] = []
  for (let cursor = ''; ; ) {
    const { status, body } = await server.request(`/v1/${list}?limit=100${query}${cursor}`, { key })
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    rows.push(...body.results)
    if (!body.has_more) return rows
    cursor = `&cursor=${body.next_cursor}`
  }
}

export const json = (value: unknown) => JSON.stringify(value)

/** A body of exactly so many bytes that is one native event. */
export function eventOfBytes(bytes: number): string {
  const frame = json({ event_type: 'big', data: { fill: '' } })
  return json({ event_type: 'big', data: { fill: 'x'.repeat(bytes - frame.length) } })
}
