import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { isLong } from '../long.ts'
import { startServer, type TestServer } from '../server.ts'
import { drained, hmac, makeSource, rows, signed } from './source.ts'

const REQUESTS = isLong ? 5_000 : 2_000
const CONNECTIONS = 32

let server: TestServer
let agent: Agent
before(async () => {
  server = await startServer()
  agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
})
after(async () => {
  agent.destroy()
  await server.close()
})

type Source = Awaited<ReturnType<typeof makeSource>>
type Sent = {
  source: Source | null
  body: string | Buffer
  headers?: Record<string, string>
  status: number
  code?: string
  /** Ids of its valid events. */
  good?: string[]
  items?: number
  bad?: number
}
type Tally = { accepted: number; duplicates: number; deferred: number; rejected: object[] }

function send(sent: Sent): Promise<{ status: number; body: Tally & { code?: string } }> {
  return new Promise((resolve, reject) => {
    const path = sent.source?.path ?? '/ingest/inbound/src_0000000000000000'
    const headers = { authorization: `Bearer ${sent.source?.token}`, ...sent.headers }
    if (headers.authorization === '') delete (headers as Partial<typeof headers>).authorization
    const request = httpRequest(server.url + path, { method: 'POST', agent, headers }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode!, body: JSON.parse(text) }))
      response.on('error', reject)
    })
    request.on('error', reject).end(sent.body)
  })
}

const event = (id: string) => ({ inbound_event_id: id, event_type: 'x', payload: { id } })
const text = (value: unknown) => JSON.stringify(value)

async function makeSources() {
  const open = await makeSource(server, { rate_limit: { events: 1_000_000, per_seconds: 60 } })
  const strict = await makeSource(server, { signing_secret: 'generate' })
  const small = await makeSource(server, { max_body_bytes: 300 })
  const disabled = await makeSource(server, { enabled: false })
  const slow = await makeSource(server, { rate_limit: { events: REQUESTS * 0.03, per_seconds: 1 } })
  const dropping = await makeSource(server, {
    rate_limit: { events: 50, per_seconds: 86_400 },
    overflow: 'drop',
  })
  const cdp = await makeSource(server, { type: 'cdp', rate_limit: { events: 1_000_000, per_seconds: 60 } })
  return { open, strict, small, disabled, slow, dropping, cdp }
}

const BOMB = gzipSync(Buffer.alloc(3_000_000, 32))
const DEEP = `${'['.repeat(5_000)}${']'.repeat(5_000)}`

/** Cycles through all kinds of requests; `n` makes each unique. */
function mixture({ open, strict, small, disabled, slow, dropping, cdp }: Awaited<ReturnType<typeof makeSources>>) {
  const signedBody = (n: number) => text(event(`signed-${n}`))
  const signature = (value: string) => ({ 'x-service-signature': value })
  const refused = (source: Source | null, status: number, code: string, body: Sent['body'], headers = {}): Sent => ({
    ...{ source, status, code, body, headers },
  })
  return [
    n => ({ source: open, status: 200, body: text(event(`new-${n}`)), good: [`new-${n}`] }),
    n => ({ source: open, status: 200, body: text(event(`repeat-${n % 50}`)), good: [`repeat-${n % 50}`] }),
    n => ({
      ...{ source: open, status: 200, items: 5, bad: 2, good: [`b-${n}`, `c-${n}`, `repeat-${n % 50}`] },
      body: text([event(`b-${n}`), {}, event(`c-${n}`), 'no', event(`repeat-${n % 50}`)]),
    }),
    n => ({
      ...{ source: cdp, status: 200, items: 2, bad: 1, good: [`m-${n}`] },
      body: text({ batch: [{ type: 'page', messageId: `m-${n}` }, { type: 'nonsense' }] }),
    }),
    n => ({
      ...{ source: open, status: 200, good: [`odd-${n}\ufffd`] },
      body: `{"inbound_event_id":"odd-${n}\\u0000","event_type":"x","payload":{"t":"\\ud800"}}`,
    }),
    n => ({
      ...{ source: strict, status: 200, body: signedBody(n), good: [`signed-${n}`] },
      headers: signature(signed(strict.signing_secret!, signedBody(n))),
    }),
    n => ({ source: slow, status: 200, body: text(event(`slow-${n}`)), good: [`slow-${n}`] }),
    n => ({ source: dropping, status: 200, body: text(event(`drop-${n}`)), items: 1 }),
    () => refused(open, 401, 'missing_credentials', text(event('no')), { authorization: '' }),
    () =>
      refused(open, 401, 'invalid_credentials', text(event('no')), {
        authorization: `Bearer ${strict.token}`,
      }),
    () => refused(null, 404, 'source_not_found', text(event('no'))),
    () => refused(disabled, 403, 'source_disabled', text(event('no'))),
    () => refused(open, 400, 'malformed_json', '{"event_type":'),
    () => refused(open, 400, 'malformed_json', DEEP),
    () => refused(open, 400, 'invalid_request', text([{}, { event_type: 1 }])),
    () => refused(open, 400, 'malformed_gzip', 'not gzip', { 'content-encoding': 'gzip' }),
    () => refused(open, 415, 'unsupported_encoding', 'x', { 'content-encoding': 'br' }),
    () => refused(small, 413, 'payload_too_large', 'x'.repeat(301)),
    () => refused(small, 413, 'payload_too_large', BOMB, { 'content-encoding': 'gzip' }),
    n => refused(strict, 401, 'signature_missing', signedBody(n)),
    n => refused(strict, 401, 'signature_invalid', signedBody(n), signature(`sha256=${hmac('wrong', signedBody(n))}`)),
    n =>
      refused(
        ...([strict, 401, 'signature_expired', signedBody(n)] as const),
        signature(signed(strict.signing_secret!, signedBody(n), 1_600_000_000)),
      ),
  ] satisfies ((n: number) => Sent)[]
}

test(`${REQUESTS} mixed valid, repeated and hostile requests end with exactly the right tables`, async () => {
  const sources = await makeSources()
  const kinds = mixture(sources)
  const expected = new Map<string, Set<string>>(Object.values(sources).map(({ id }) => [id, new Set()]))
  let bad = 0
  let dropped = 0
  let next = 0
  const startedAt = Date.now()
  async function sendOnAndOn() {
    while (next < REQUESTS) {
      const n = next++
      const sent: Sent = kinds[n % kinds.length]!(n)
      const { status, body } = await send(sent)
      assert.equal(status, sent.status, `${sent.code} ${text(body)}`)
      assert.equal(body.code, sent.code)
      if (status !== 200) continue
      const { accepted, duplicates, deferred, rejected } = body
      assert.equal(accepted + duplicates + deferred + rejected.length, sent.items ?? 1)
      bad += sent.bad ?? 0
      for (const id of sent.good ?? []) expected.get(sent.source!.id)!.add(id)
      if (sent.source === sources.dropping) {
        dropped += rejected.length
        if (accepted === 1) expected.get(sent.source.id)!.add(JSON.parse(String(sent.body)).inbound_event_id)
      }
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, sendOnAndOn))
  await drained(server, sources.slow.id)

  const events = await rows<{ source: string; id: string }>(
    server,
    'select source_config_id as source, inbound_event_id as id from events',
  )
  const found = Map.groupBy(events, row => row.source)
  for (const { id } of Object.values(sources)) {
    const ids = (found.get(id) ?? []).map(row => row.id)
    assert.equal(new Set(ids).size, ids.length, 'nothing twice')
    assert.deepEqual(ids.sort(), [...expected.get(id)!].sort())
  }
  assert.equal(expected.get(sources.dropping.id)!.size, 50)

  const count = async (sql: string) => (await rows<{ count: number }>(server, `select count(*) ${sql}`))[0]!.count
  assert.equal(await count('from dead_letters'), bad)
  assert.equal(await count('from overflow'), 0)
  assert.equal(await count('from parked_entries'), 0)
  assert.equal(await count('from processed_events'), events.length)
  assert.equal(await count('from archive'), events.length)
  assert.equal(await count(`from receipts where outcome = 'processed'`), events.length)
  assert.equal(await count(`from receipts where outcome = 'dropped'`), dropped)
  assert.equal(await count(`from receipts where outcome = 'dead_letter'`), bad)
  // Ten per cause and minute.
  const minutes = Math.ceil((Date.now() - startedAt) / 60_000)
  assert.ok((await count('from rejections')) < 200 * minutes, 'a bounded sample')
})
