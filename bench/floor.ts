import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import type { Connection } from '../src/postgres/database.ts'

/**
 * Floor servers do the minimum for a request. Results are ratios to the floor of the same run, so that they are comparable
 * between machines.
 */
export type Floor = { kind: 'parse' } | { kind: 'query'; connection: Connection; tenantId: number }

export async function startFloor(floor: Floor): Promise<{ url: string; pid: number; stop(): Promise<unknown> }> {
  const child = fork(import.meta.filename, [JSON.stringify(floor)])
  const [port] = await Promise.race([
    once(child, 'message') as Promise<[number]>,
    once(child, 'exit').then(() => Promise.reject(new Error('the floor server did not start'))),
  ])
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid!,
    stop: () => {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      return exited
    },
  }
}

if (process.send) serve(JSON.parse(process.argv[2]!) as Floor)

function serve(floor: Floor): void {
  const answer = floor.kind === 'parse' ? parsing : querying(floor)
  const server = createServer((request, response) => {
    if (request.method === 'GET') return answer(request.url!, '', response)
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => answer(request.url!, Buffer.concat(chunks).toString(), response))
  })
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
  process.on('SIGTERM', () => process.exit(0))
}

type Answer = (url: string, body: string, response: ServerResponse) => void

function parsing(_url: string, body: string, response: ServerResponse): void {
  JSON.parse(body)
  send(response, '{}')
}

/** One primary-key query for the last segment of the path. */
function querying({ connection, tenantId }: Floor & { kind: 'query' }): Answer {
  const target = 'url' in connection ? { connectionString: [connection.url].flat()[0] } : connection
  const pool = new pg.Pool({ ...target, max: 10 })
  return async (url, _body, response) => {
    const [, , types, id] = url.split('/')
    const { rows } = await pool.query(
      'select id, data from records where tenant_id = $1 and entity_type = $2 and id = $3',
      [tenantId, types!.slice(0, -1), decodeURIComponent(id!)],
    )
    if (rows.length === 0) response.statusCode = 404
    send(response, JSON.stringify(rows[0] ?? {}))
  }
}

function send(response: ServerResponse, text: string): void {
  response.setHeader('content-type', 'application/json')
  response.setHeader('content-length', Buffer.byteLength(text))
  response.end(text)
}
