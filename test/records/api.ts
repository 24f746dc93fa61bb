import { type Answer, startServer, type TestServer } from '../server.ts'

export type { Answer }

type Body = Record<string, unknown> | string
type Given = { headers?: Record<string, string>; key?: string }

const PATHS = { product: '/v1/products', contact: '/v1/contacts', order: '/v1/orders' } as const

export type Type = keyof typeof PATHS
export type Api = Awaited<ReturnType<typeof openApi>>

/** A client of the data API with the keys of the default tenant, on a server with its own database. */
export async function openApi(settings: Record<string, string> = {}) {
  const server = await startServer(settings)
  const send = (method: string, path: string, body: Body | undefined, { headers = {}, key }: Given = {}) =>
    server.request(path, {
      method,
      headers,
      key: key ?? server.tenant.privateKey,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    server,
    send,
    get: (path: string, given?: Given) => send('GET', path, undefined, given),
    post: (path: string, body: Body, given?: Given) => send('POST', path, body, given),
    delete: (path: string, body: Body, given?: Given) => send('DELETE', path, body, given),
    /** A write; missing required fields get default values. */
    write: (type: Type, fields: Record<string, unknown>, given?: Given) =>
      send('POST', PATHS[type], aRecord(type, fields), given),
    remove: (type: Type, fields: Record<string, unknown>, given?: Given) =>
      send('DELETE', PATHS[type], aDelete(type, fields), given),
    /** The record after everything accepted so far is applied; null if it does not exist. */
    async record(type: Type, id: string, given?: Given) {
      await server.settled()
      const answer = await send('GET', `${PATHS[type]}/${encodeURIComponent(id)}`, undefined, given)
      return answer.status === 404 ? null : answer.body
    },
    async statusOf(accepted: Answer): Promise<string> {
      await server.settled()
      return (await send('GET', `/v1/operations/${accepted.body.operationId}`, undefined)).body.status
    },
    /** The number of entries in the log. Rejected requests must not be among them. */
    entries: () => countEntries(server),
    close: () => server.close(),
  }
}

export function aRecord(type: Type, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { entityType: type, id: 'r-1', sourceUpdatedAt: '2026-01-31T09:30:00Z', ...fields }
}

export function aDelete(type: Type, fields: Record<string, unknown>): Record<string, unknown> {
  return { entityType: type, sourceUpdatedAt: '2026-02-01T00:00:00Z', ...fields }
}

async function countEntries({ pool }: TestServer): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('select count(*) from log')
  return rows[0]!.count
}
