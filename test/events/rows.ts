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

/** The tables with rows of the tenant that contain a string, and the number of these rows. */
export async function tracesOf(server: TestServer, tenant: { id: string }, text: string): Promise<string[]> {
  const { rows: tables } = await server.pool.query(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace order by 1`,
  )
  const found: string[] = []
  for (const { name } of tables) {
    const { rows } = await server.pool.query(
      `select count(*) as count from ${name} t where tenant_id = $1 and t::text ilike $2`,
      [Number(tenant.id.slice(4)), `%${text}%`],
    )
    if (rows[0].count > 0) found.push(`${name}: ${rows[0].count}`)
  }
  const { rows: bodies } = await server.pool.query(
    'select from inbound_requests where tenant_id = $1 and position($2::bytea in body) > 0',
    [Number(tenant.id.slice(4)), Buffer.from(text)],
  )
  if (bodies.length > 0) found.push(`bodies of inbound_requests: ${bodies.length}`)
  return found
}

export const json = (value: unknown) => JSON.stringify(value)

/** A body with one native event of exactly this many bytes. */
export function eventOfBytes(bytes: number): string {
  const frame = json({ event_type: 'big', data: { fill: '' } })
  return json({ event_type: 'big', data: { fill: 'x'.repeat(bytes - frame.length) } })
}
