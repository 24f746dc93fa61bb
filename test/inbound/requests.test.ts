// The requests that a source received, unchanged, for developers who build a handler for them.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as requestHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { deleteRequestsOf, insertRequests } from '../../src/store/inbound/requests.ts'
import { hears, startKontor } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer } from '../server.ts'
import { makeSource, rows, signed } from './source.ts'

const server = await startServer({ KONTOR_PORT: String(await freePort()) })
after(() => server.close())

async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  await new Promise(resolve => holder.close(resolve))
  return port
}

/** Posts like a provider, with Node's own client, which keeps the spelling of headers. */
async function post(path: string, headers: string[], body: Buffer): Promise<number> {
  const sending = requestHttp(server.url + path, {
    method: 'POST',
    headers: ['Host', 'kontor', ...headers, 'Content-Length', String(body.length)],
    agent: false,
  })
  sending.end(body)
  const [answer] = await once(sending, 'response')
  answer.resume()
  return answer.statusCode
}

type Handled = { headers: string[]; body: Buffer }

/** A handler under development. */
async function handler(t: TestContext, port = 0) {
  const handled: Handled[] = []
  const listening = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    handled.push({ headers: request.rawHeaders, body: Buffer.concat(chunks) })
    response.writeHead(204).end()
  }).listen(port, '127.0.0.1')
  await once(listening, 'listening')
  t.after(() => listening.close())
  return { handled, url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}/hook?x=1` }
}

const list = (id: string, query = '', key = server.tenant.privateKey) =>
  server.request(`/v1/sources/${id}/requests${query}`, { key })

const EVER = '?since=2020-01-01'
const eventOf = (id: string) => ({ inbound_event_id: id, event_type: 'order.shipped', payload: { id } })

test('requests are stored unchanged, including repeats, but without their credentials', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const body = Buffer.from(
    `\ufeff{ "inbound_event_id" : "e-1",  "event_type":"ä.b", "payload":{"n":1.0, "z":"\\u0000"} }\n`,
  )
  const signature = signed(source.signing_secret!, body.toString())
  const headers = [
    'authorization',
    `Bearer ${source.token}`,
    'X-Odd-CASE',
    'ö'.normalize(),
    'x-service-signature',
    signature,
  ]
  headers[3] = 'twice'
  headers.push('x-odd-case', 'and again', 'Cookie', 'session=1', 'content-encoding', 'gzip')
  assert.equal(await post(source.path, headers, gzipSync(body)), 200)
  assert.equal(await post(source.path, headers, gzipSync(body)), 200)
  // Requests younger than the oldest running transaction of this PostgreSQL, including other tests, are not listed yet.
  const page = await eventually('both requests in the list', async () => {
    const { status, body } = await list(source.id, EVER)
    assert.equal(status, 200)
    return body.results.length >= 2 && body
  })
  assert.equal(page.results.length, 2)
  const [first] = page.results
  assert.equal(first.body_encoding, 'utf-8')
  assert.deepEqual(Buffer.from(first.body), body)
  assert.deepEqual(
    first.headers.filter(([name]: string[]) => /odd|signature/i.test(name!)),
    [
      ['X-Odd-CASE', 'twice'],
      ['x-service-signature', signature],
      ['x-odd-case', 'and again'],
    ],
  )
  assert.ok(!/tok_|session=1/.test(JSON.stringify(page)))
  assert.equal(first.answer.accepted, 1)
  assert.deepEqual((await list(source.id, `?cursor=${page.next_cursor}`)).body.results, [])
})

test('paging returns each request once and in order, also while more arrive', async () => {
  const source = await makeSource(server)
  const posts = Array.from({ length: 60 }, (_, i) => source.post(eventOf(`m-${i}`)))
  const seen: string[] = []
  let cursor = EVER
  await eventually('all of them', async () => {
    const { body } = await list(source.id, `${cursor}&limit=7`)
    seen.push(...body.results.map(({ body: text }: { body: string }) => JSON.parse(text).inbound_event_id))
    cursor = `?cursor=${body.next_cursor}`
    return seen.length >= posts.length
  })
  await Promise.all(posts)
  assert.equal(new Set(seen).size, 60)
  const waiting = list(source.id, `${cursor}&wait=30`)
  await source.post(eventOf('the next'))
  assert.match((await waiting).body.results[0].body, /the next/)
})

test('requests are in the order of their transactions, also when the transaction id gets another digit', async () => {
  const source = await makeSource(server)
  await server.pool.query(
    `insert into inbound_requests (tenant_id, source_id, xid, ord, id, received_at, headers, answer, bytes, body)
     select $1, $2, xid::text::xid8, 1, gen_random_uuid(), now(), '[]', '{}', 3, convert_to(xid::text, 'UTF8')
     from generate_series(95, 104) as xid`,
    [Number(server.tenant.id.slice(4)), source.id],
  )
  const seen: string[] = []
  let cursor = EVER
  for (let page = 0; page < 4; page++) {
    const { body } = await list(source.id, `${cursor}&limit=3`)
    seen.push(...body.results.map(({ body: text }: { body: string }) => text))
    cursor = `?cursor=${body.next_cursor}`
  }
  assert.deepEqual(seen, ['95', '96', '97', '98', '99', '100', '101', '102', '103', '104'])
})

test('each request is listed once and in order despite out-of-order commits, an erasure and two listeners', async () => {
  const tenant = await server.anotherTenant('out of order')
  const source = await makeSource(server, { tenant: tenant.id })
  const at = new Date()
  const requestOf = (name: string) => ({
    ...{ tenantId: Number(tenant.id.slice(4)), sourceId: source.id, id: randomUUID(), receivedAt: at },
    ...{
      headers: '[]',
      answer: '{"accepted":1,"duplicates":0,"deferred":0,"rejected":[]}',
      body: Buffer.from(name),
    },
  })
  type Listener = { cursor: string; seen: string[] }
  const listeners: Listener[] = [
    { cursor: EVER, seen: [] },
    { cursor: EVER, seen: [] },
  ]
  const look = async (listener: Listener, limit: number) => {
    const { body } = await list(source.id, `${listener.cursor}&limit=${limit}`, tenant.privateKey)
    listener.seen.push(...body.results.map(({ body: text }: { body: string }) => text))
    listener.cursor = `?cursor=${body.next_cursor}`
  }
  // Transactions are ordered by their first write.
  const clients = await Promise.all([0, 1, 2, 3].map(() => server.pool.connect()))
  const expected: string[] = []
  try {
    for (const [round, order] of [
      [3, 1, 0, 2],
      [1, 0, 3, 2],
      [2, 3, 1, 0],
    ].entries()) {
      for (const [i, client] of clients.entries()) {
        await client.query('begin')
        const names = [`${round}.${i}.a`, `${round}.${i}.b`]
        await insertRequests(client, names.map(requestOf))
        expected.push(...names)
      }
      for (const [step, i] of order.entries()) {
        await clients[i]!.query('commit')
        await look(listeners[0]!, 1 + step)
        if (step === 2) await look(listeners[1]!, 100)
      }
      for (const listener of listeners)
        await eventually('all that was committed', async () => {
          await look(listener, 3)
          return listener.seen.length === expected.length
        })
      for (const { seen } of listeners) assert.deepEqual(seen, expected)
      if (round === 1) await deleteRequestsOf(clients[0]!, Number(tenant.id.slice(4)))
    }
    for (const listener of listeners) await look(listener, 100)
    for (const { seen } of listeners) assert.deepEqual(seen, expected)
  } finally {
    for (const client of clients) client.release()
  }
})

test('requests are visible only to keys of their tenant that may read everything a body can contain', async () => {
  const source = await makeSource(server)
  await source.post(eventOf('e-1'))
  const other = await server.anotherTenant('other')
  assert.equal((await list(source.id, EVER, other.privateKey)).status, 404)
  assert.equal((await list('src_doesnotexist', EVER)).status, 404)
  const { key } = await server.admin.keys.create({
    tenant: server.tenant.id,
    kind: 'private',
    scopes: ['events:read'],
  })
  const refused = await list(source.id, EVER, key)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'])
  for (const cursor of ['nonsense', '1.1.1', '99999999999999999999.1', '1.4294967296'])
    assert.equal((await list(source.id, `?cursor=${cursor}`)).status, 400, cursor)
})

test('an erasure deletes all stored requests of the tenant', async () => {
  const tenant = await server.anotherTenant('forgetful')
  const source = await makeSource(server, { tenant: tenant.id })
  await source.post({ ...eventOf('e-1'), payload: { email: 'ada@example.com' } })
  await server.settled()
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.deepEqual((await list(source.id, EVER, tenant.privateKey)).body.results, [])
})

test('requests of an older source are stored only after a listener has connected', async () => {
  const source = await makeSource(server)
  const grownUp = 'update sources set created_at = now() - interval $$2 days$$ where id = $1'
  await rows(server, grownUp, [source.id])
  await eventually('the age to be known', async () => {
    await source.post(eventOf(crypto.randomUUID()))
    const [count] = await rows<{ kept: number }>(
      server,
      'select count(*) as kept from inbound_requests where source_id = $1',
      [source.id],
    )
    await source.post(eventOf(crypto.randomUUID()))
    const [later] = await rows<{ kept: number }>(
      server,
      'select count(*) as kept from inbound_requests where source_id = $1',
      [source.id],
    )
    return later!.kept === count!.kept
  })
  const { body } = await list(source.id)
  await source.post(eventOf('heard'))
  const { results } = (await list(source.id, `?cursor=${body.next_cursor}&wait=30`)).body
  assert.equal(results.length, 1)
})

test('listen forwards past and new requests unchanged, across a restart and while the handler is unreachable', async t => {
  const source = await makeSource(server)
  const bytes = (id: string) =>
    Buffer.from(`{"inbound_event_id": "${id}",\t"event_type":"a.b", "payload": {"n": 1.10} }`)
  const send = (id: string) =>
    post(source.path, ['authorization', `Bearer ${source.token}`, 'X-Signature', id], bytes(id))
  for (const id of ['1', '2', '3']) await send(id)
  const { handled, url } = await handler(t)
  const env = { KONTOR_URL: server.url, KONTOR_KEY: server.tenant.privateKey }
  const listen = startKontor(t, ['listen', source.id, '--forward', url, '--since', '1h', '--json'], env)
  await eventually('what came before', () => handled.length === 3, { state: listen.err })
  await server.restart()
  await send('4')
  await eventually('what came after the restart', () => handled.length === 4, { state: listen.err })
  assert.deepEqual(
    handled.map(({ body }) => body),
    ['1', '2', '3', '4'].map(bytes),
  )
  const pairs = handled[3]!.headers.join('|')
  assert.match(pairs, /X-Signature\|4/)
  assert.doesNotMatch(pairs, /authorization|tok_/i)
  const statuses = () =>
    listen
      .out()
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line).forwarded.status)
  await eventually('the last answer', () => statuses().length === 4)
  assert.deepEqual(statuses(), [204, 204, 204, 204])
  listen.child.kill('SIGINT')
  assert.equal(await listen.ended, 0)

  const port = await freePort()
  // A handler that dies during its response has received the request.
  const halves: string[] = []
  const dying = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    halves.push(Buffer.concat(chunks).toString())
    response.writeHead(200, { 'content-length': '100' }).write('half', () => request.socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(dying, 'listening')
  t.after(() => dying.close())
  const dyingUrl = `http://127.0.0.1:${(dying.address() as AddressInfo).port}/`
  const dyingListen = startKontor(t, ['listen', source.id, '--forward', dyingUrl, '--since', '1h', '--retry'], env)
  await eventually('a line for each request', () => dyingListen.out().split('\n').length > 4, {
    state: dyingListen.err,
  })
  dyingListen.child.kill('SIGINT')
  await dyingListen.ended
  assert.deepEqual(
    halves,
    ['1', '2', '3', '4'].map(id => bytes(id).toString()),
  )
  const words = ['listen', source.id, '--forward', `http://127.0.0.1:${port}/`, '--since', '1h', '--retry']
  const retrying = startKontor(t, words, { DATABASE_URL: server.databaseUrl })
  await hears(retrying, /is unreachable/)
  const late = await handler(t, port)
  await eventually('all requests, once the handler listens', () => late.handled.length === 4)
  assert.deepEqual(
    late.handled.map(({ body }) => body),
    ['1', '2', '3', '4'].map(bytes),
  )
})

test('listen prints an error for a rejected request and exits', async t => {
  const env = { KONTOR_URL: server.url, KONTOR_KEY: server.tenant.privateKey }
  const listen = startKontor(t, ['listen', 'src_unknown'], env)
  assert.equal(await listen.ended, 1)
  assert.match(listen.err(), /404: No such source/)
})
