import { createHmac } from 'node:crypto'
import { eventually } from '../eventually.ts'
import type { Answer, TestServer } from '../server.ts'

type Settings = Record<string, unknown> & { type?: string; tenant?: string }

/** A source, and a function that posts to it like an external system. */
export async function makeSource(server: TestServer, settings: Settings = {}) {
  const made = await server.admin.sources.create({ tenant: server.tenant.id, type: 'webhook', ...settings })
  const path = `/ingest/inbound/${made.id}`
  return {
    ...made,
    path,
    /** Uses the source's token unless `key` is set; `key: ''` sends none. */
    post(body: unknown, options: { key?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
      const { key = made.token, headers = {} } = options
      return server.request(path, { method: 'POST', key, headers, body: textOf(body) })
    },
  }
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body)
}

export function hmac(secret: string, content: string | Buffer, encoding: 'hex' | 'base64' = 'hex'): string {
  return createHmac('sha256', secret).update(content).digest(encoding)
}

/** `t=…,v1=…` as documented. */
export function signed(secret: string, body: string, atS = Math.floor(Date.now() / 1000)): string {
  return `t=${atS},v1=${hmac(secret, `${atS}.${body}`)}`
}

export async function rows<Row extends object = Record<string, unknown>>(
  server: TestServer,
  sql: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await server.pool.query<Row>(sql, values)).rows
}

/** The events of a source in the order in which they were applied, with their JSON parsed. */
export async function eventsOf(server: TestServer, sourceId: string) {
  await server.settled()
  const found = await rows<Record<string, string>>(
    server,
    `select *, event_meta(kind, ip, batch_index, batch_size, meta) as meta, coalesce(headers, '{"content-type":"application/json"}') as headers,
       case provider_event_id when '' then inbound_event_id else provider_event_id end as provider_event_id
     from events where source_config_id = $1 order by received_at, id`,
    [sourceId],
  )
  return found.map(row => ({
    ...row,
    payload: JSON.parse(row.payload!),
    headers: JSON.parse(row.headers!),
    meta: JSON.parse(row.meta!),
  })) as (Record<string, unknown> & {
    payload: Record<string, unknown>
    headers: Record<string, string>
    meta: Record<string, unknown>
  })[]
}

/** Waits until the overflow queue of the source is empty and all its events are applied. */
export async function drained(server: TestServer, sourceId: string): Promise<void> {
  await eventually(
    'the overflow to be empty',
    async () => (await rows(server, 'select from overflow where source_id = $1 limit 1', [sourceId])).length === 0,
  )
  await server.settled()
}
