import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { eventsOf, hmac, makeSource, rows, signed } from './source.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const BODY = '{ "event_type":"x",  "payload":{"n":1.50} }'
const nowS = () => Math.floor(Date.now() / 1000)

async function answers(
  expected: [number, string?],
  answer: ReturnType<Awaited<ReturnType<typeof makeSource>>['post']>,
) {
  const { status, body, headers } = await answer
  assert.deepEqual([status, body.code], [expected[0], expected[1]])
  if (status === 401) assert.match(headers.get('www-authenticate')!, /^Bearer realm="kontor"/)
}

test('404 for an unknown source, 403 for a disabled one, 401 for a missing or invalid token; nothing is accepted', async () => {
  const source = await makeSource(server)
  const other = await makeSource(server)
  for (const id of ['src_nothing', 'x', '%00', "src_'--", `src_${'a'.repeat(100)}`, source.id.toLowerCase()]) {
    const answer = await server.request(`/ingest/inbound/${id}`, {
      method: 'POST',
      key: source.token,
      body: BODY,
    })
    assert.deepEqual([answer.status, answer.body.code], [404, 'source_not_found'])
  }
  await answers([401, 'missing_credentials'], source.post(BODY, { key: '' }))
  for (const key of [other.token, `${source.token}x`, source.token.slice(0, -1), 'tok_', server.tenant.privateKey])
    await answers([401, 'invalid_credentials'], source.post(BODY, { key }))
  for (const authorization of ['Basic dG9rOg==', source.token, `Token ${source.token}`, 'Bearer'])
    await answers([401, 'invalid_credentials'], source.post(BODY, { key: '', headers: { authorization } }))
  await answers([401, 'missing_credentials'], source.post(BODY, { key: '', headers: { 'x-api-key': source.token } }))
  await answers([200], source.post(BODY))

  await server.admin.sources.setEnabled(source.id, false)
  await changed(source, 403)
  await answers([403, 'source_disabled'], source.post(BODY))
  await answers([401, 'invalid_credentials'], source.post(BODY, { key: 'wrong' }))
  await answers([401, 'missing_credentials'], source.post(BODY, { key: '' }))
  await server.admin.sources.delete(other.id)
  await changed(other, 404)
  await answers([404, 'source_not_found'], other.post(BODY))
  assert.equal((await eventsOf(server, source.id)).length, 1)
})

test('a disabled source with a signing secret answers 403 only to a valid signature', async () => {
  const secret = 'a-secret-of-the-shop'
  const settings = { preset: 'shopify', signing_secret: secret, enabled: false }
  const source = await makeSource(server, settings)
  const headers = { 'x-shopify-topic': 'orders/create', 'x-shopify-webhook-id': 'w-1' }
  const post = (signature: string) =>
    source.post('{"id":1}', { key: '', headers: { ...headers, 'x-shopify-hmac-sha256': signature } })
  await answers([401, 'signature_invalid'], post(hmac('another-secret', '{"id":1}', 'base64')))
  await answers([403, 'source_disabled'], post(hmac(secret, '{"id":1}', 'base64')))
})

test('a source with allowed addresses rejects all others, even with the token', async () => {
  const office = await makeSource(server, { allowed_addresses: ['203.0.113.0/24'] })
  await answers([403, 'address_not_allowed'], office.post(BODY))
  await answers([401, 'invalid_credentials'], office.post(BODY, { key: 'wrong' }))
  const here = await makeSource(server, { allowed_addresses: ['203.0.113.0/24', '127.0.0.0/8', '::1'] })
  await answers([200], here.post(BODY))
  await assert.rejects(makeSource(server, { allowed_addresses: ['everywhere'] }), /Invalid value/)
})

test('a rotated token remains valid during the overlap, and not longer', async () => {
  const source = await makeSource(server)
  const { token } = await server.admin.sources.rotate(source.id, { what: 'token', overlapHours: 1 })
  await changed(source, 200, token)
  await answers([200], source.post(BODY, { key: token! }))
  await answers([200], source.post(BODY))
  // The hour passes.
  await server.pool.query(
    `update sources set tokens = jsonb_set(tokens, '{1,expires_at}', to_jsonb(now() - interval '1 second')) where id = $1`,
    [source.id],
  )
  await changed(source, 401)
  await answers([401, 'token_expired'], source.post(BODY))
  await answers([200], source.post(BODY, { key: token! }))
})

test('with a signing secret every supported signature format is accepted, over the raw bytes', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const secret = source.signing_secret!
  const signatures: [string, string][] = [
    [signed(secret, BODY), 't,v1'],
    [`${signed('other', BODY)},v1=${hmac(secret, `${nowS()}.${BODY}`)}`, 't,v1'],
    [`sha256=${hmac(secret, BODY)}`, 'sha256'],
    [hmac(secret, BODY), 'hex'],
    [hmac(secret, BODY, 'base64'), 'base64'],
  ]
  for (const [signature] of signatures)
    await answers([200], source.post(BODY, { headers: { 'x-service-signature': signature } }))
  const events = await eventsOf(server, source.id)
  assert.deepEqual(
    events.map(event => event.meta.signature),
    signatures.map(([, format]) => format),
  )
  assert.equal(
    events.some(event => 'x-service-signature' in event.headers),
    false,
  )
})

test('a signature that is missing, wrong, old, from the future, or over other bytes is rejected', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const secret = source.signing_secret!
  const refused: [string, string | undefined][] = [
    ['signature_missing', undefined],
    ['signature_missing', ''],
    ['signature_invalid', 'x'],
    ['signature_invalid', 't=1,v1=00'],
    ['signature_invalid', signed('wrong', BODY)],
    ['signature_invalid', signed(secret, JSON.stringify(JSON.parse(BODY)))],
    ['signature_invalid', `sha256=${hmac(secret.slice(6), BODY)}`],
    ['signature_expired', signed(secret, BODY, nowS() - 400)],
    ['signature_expired', signed(secret, BODY, nowS() + 400)],
  ]
  for (const [code, signature] of refused) {
    const headers: Record<string, string> = {}
    if (signature !== undefined) headers['x-service-signature'] = signature
    await answers([401, code], source.post(BODY, { headers }))
  }
  // A valid signature does not replace the token.
  const headers = { 'x-service-signature': signed(secret, BODY) }
  await answers([401, 'missing_credentials'], source.post(BODY, { key: '', headers }))
  await answers([401, 'invalid_credentials'], source.post(BODY, { key: 'wrong', headers }))

  const strict = await makeSource(server, { signing_secret: secret, require_timestamped_signature: true })
  await answers([200], strict.post(BODY, { headers }))
  const plain = { 'x-service-signature': `sha256=${hmac(secret, BODY)}` }
  await answers([401, 'signature_invalid'], strict.post(BODY, { headers: plain }))
  assert.equal((await eventsOf(server, source.id)).length, 0)
})

test('during a rotation the last two secrets are valid, and older ones are not', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const second = await server.admin.sources.rotate(source.id, { what: 'signing_secret' })
  const third = await server.admin.sources.rotate(source.id, { what: 'signing_secret' })
  const post = (secret: string) => source.post(BODY, { headers: { 'x-service-signature': signed(secret, BODY) } })
  await eventually('the third secret to be good', async () => (await post(third.signing_secret!)).status === 200)
  await answers([200], post(second.signing_secret!))
  await answers([401, 'signature_invalid'], post(source.signing_secret!))
})

test('503 for a secret that cannot be decrypted, so that senders retry', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  await server.pool.query(
    `update sources set signing_secrets = jsonb_set(signing_secrets, '{0,sealed}', '"v1.AAAA.AAAA.AAAA"') where id = $1`,
    [source.id],
  )
  const headers = { 'x-service-signature': signed(source.signing_secret!, BODY) }
  await eventually('the broken secret to be noticed', async () => (await source.post(BODY, { headers })).status !== 200)
  const answer = await source.post(BODY, { headers })
  assert.equal(answer.status, 503)
  assert.match(answer.headers.get('retry-after')!, /^\d+$/)
  await answers([401, 'signature_missing'], source.post(BODY))
})

test('stripe: a request signed by its own library is accepted without a token, and no other is', async () => {
  const secret = 'whsec_stripe_endpoint'
  const source = await makeSource(server, { preset: 'stripe', signing_secret: secret })
  const payload = JSON.stringify({
    ...{ id: 'evt_1', object: 'event', type: 'invoice.paid', created: nowS() },
    data: { object: { id: 'in_1', object: 'invoice', amount_paid: 500, currency: 'eur' } },
  })
  const stripe = new Stripe('sk_test_1')
  const header = (timestamp = nowS(), key = secret) =>
    stripe.webhooks.generateTestHeaderString({ payload, secret: key, timestamp })
  const post = (signature: string, key = '') =>
    source.post(payload, { key, headers: { 'stripe-signature': signature } })
  await answers([200], post(header()))
  await answers([401, 'signature_invalid'], post(header(nowS(), 'other')))
  await answers([401, 'signature_expired'], post(header(nowS() - 400)))
  await answers([401, 'signature_missing'], source.post(payload, { key: '' }))
  await answers([401, 'signature_missing'], source.post(payload))
  await answers([401, 'invalid_credentials'], post(header(), 'a wrong token beside a good signature'))
  const [event, ...more] = await eventsOf(server, source.id)
  assert.deepEqual(more, [])
  assert.equal(event?.inbound_event_id, 'evt_1')
  assert.equal(event?.event_type, 'invoice.paid')
  assert.equal(event?.meta.signature, 'stripe')
})

test('standard webhooks: a request signed by the reference library is accepted without a token', async () => {
  const secret = `whsec_${Buffer.from('a key of twenty-four bytes').toString('base64')}`
  const source = await makeSource(server, { preset: 'standard-webhooks', signing_secret: secret })
  const payload = JSON.stringify({ type: 'order.paid', data: { id: 'o1', amount: 5 } })
  const at = new Date()
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
    'webhook-signature': new Webhook(secret).sign('msg_1', at, payload),
  }
  await answers([200], source.post(payload, { key: '', headers }))
  await answers(
    [401, 'signature_invalid'],
    source.post(payload, { key: '', headers: { ...headers, 'webhook-id': 'msg_2' } }),
  )
  const [event] = await eventsOf(server, source.id)
  assert.equal(event?.inbound_event_id, 'msg_1')
  assert.equal(event?.event_type, 'order.paid')
})

test('shopify and github: topic, id and signature are read from their own headers', async () => {
  const secret = 'a-long-shared-secret'
  const shopify = await makeSource(server, { preset: 'shopify', signing_secret: secret })
  const order = '{"id":820982911946154508,"total_price":"403.00"}'
  const shopHeaders = {
    'x-shopify-topic': 'orders/paid',
    'x-shopify-webhook-id': 'b54557e4',
    'x-shopify-hmac-sha256': hmac(secret, order, 'base64'),
  }
  await answers([200], shopify.post(order, { key: '', headers: shopHeaders }))
  await answers([401, 'signature_invalid'], shopify.post(`${order} `, { key: '', headers: shopHeaders }))
  const [paid] = await eventsOf(server, shopify.id)
  assert.equal(paid?.event_type, 'orders/paid')
  assert.equal(paid?.inbound_event_id, 'b54557e4')
  assert.equal('x-shopify-hmac-sha256' in paid!.headers, false)

  const github = await makeSource(server, { preset: 'github', signing_secret: secret })
  const push = '{"action":"opened","number":1}'
  const hubHeaders = {
    'x-github-event': 'pull_request',
    'x-github-delivery': '72d3162e',
    'x-hub-signature-256': `sha256=${hmac(secret, push)}`,
  }
  await answers([200], github.post(push, { key: '', headers: hubHeaders }))
  const [opened] = await eventsOf(server, github.id)
  assert.equal(opened?.event_type, 'pull_request.opened')
  assert.equal(opened?.inbound_event_id, '72d3162e')
})

test('an unsigned topic must match the signed body, and an id is required', async () => {
  const secret = 'a-long-shared-secret'
  const shopify = await makeSource(server, { preset: 'shopify', signing_secret: secret })
  const order = {
    id: 1,
    admin_graphql_api_id: 'gid://shopify/Order/1',
    created_at: '2026-01-31',
    total_price: '9',
  }
  const shop = (topic: string, body: object, id: Record<string, string> = { 'x-shopify-webhook-id': topic }) => {
    const signature = hmac(secret, JSON.stringify(body), 'base64')
    const headers = { 'x-shopify-topic': topic, 'x-shopify-hmac-sha256': signature, ...id }
    return shopify.post(body, { key: '', headers })
  }
  for (const topic of ['orders/create', 'orders/cancelled', 'app/uninstalled']) await answers([200], shop(topic, order))
  for (const topic of ['orders/delete', 'products/update', 'customers/delete', 'refunds/create'])
    await answers([400, 'invalid_request'], shop(topic, order))
  await answers([200], shop('orders/delete', { id: 1 }))
  await answers([400, 'invalid_request'], shop('orders/updated', order, {}))

  const github = await makeSource(server, {
    preset: 'github',
    signing_secret: secret,
    require_event_id: false,
  })
  const hub = (event: string, body: object) =>
    github.post(body, {
      key: '',
      headers: {
        'x-github-event': event,
        'x-hub-signature-256': `sha256=${hmac(secret, JSON.stringify(body))}`,
      },
    })
  const comment = { action: 'created', issue: { id: 1 }, comment: { id: 2 } }
  await answers([200], hub('issue_comment', comment))
  await answers([200], hub('something_new', comment))
  for (const event of ['issues', 'push', 'pull_request', 'delete'])
    await answers([400, 'invalid_request'], hub(event, comment))
})

test('a preset without a secret does not replace the token', async () => {
  const source = await makeSource(server, { preset: 'stripe' })
  await answers([401, 'missing_credentials'], source.post({ id: 'e', object: 'event', type: 't' }, { key: '' }))
  await answers([200], source.post({ id: 'e', object: 'event', type: 't' }))
})

test('tokens are stored as hashes and secrets encrypted', async () => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const [row] = await rows(server, 'select s::text as text from sources s where id = $1', [source.id])
  assert.equal(String(row!.text).includes(source.token), false)
  assert.equal(String(row!.text).includes(source.signing_secret!), false)
})

/** A change reaches the node after a short delay. */
async function changed(source: Awaited<ReturnType<typeof makeSource>>, status: number, key?: string) {
  const expected = status === 200 ? 400 : status
  await eventually(
    `the answer ${expected}`,
    async () => (await source.post('{}', key ? { key } : {})).status === expected,
  )
}

test('a provider with its secret in the Authorization header is authenticated by it, and not by a token', async () => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  const event = (id: string) => ({ id, object: 'event', event_type: 'ping', content: {} })
  const chargebee = await makeSource(server, { preset: 'chargebee', signing_secret: 'hook:a-long-password' })
  const post = (id: string, headers: Record<string, string>) => chargebee.post(event(id), { key: '', headers })
  await answers([200], post('ev_1', basic('hook:a-long-password')))
  await answers([401, 'signature_invalid'], post('ev_2', basic('hook:a-wrong-password')))
  await answers([401, 'signature_missing'], post('ev_2', {}))
  await answers([401, 'signature_invalid'], chargebee.post(event('ev_2')))
  const revenuecat = await makeSource(server, {
    preset: 'revenuecat',
    signing_secret: 'Bearer a-long-secret',
  })
  const body = { event: { id: 'rc_1', type: 'TEST' } }
  await answers([200], revenuecat.post(body, { key: 'a-long-secret' }))
  await answers([401, 'signature_invalid'], revenuecat.post(body))
  const unsigned = await makeSource(server, { preset: 'chargebee' })
  await answers([200], unsigned.post(event('ev_3')))
  await answers([401, 'missing_credentials'], unsigned.post(event('ev_4'), { key: '' }))
  const events = await eventsOf(server, chargebee.id)
  assert.deepEqual(
    events.map(({ event_type, inbound_event_id, meta, headers }) => ({
      ...{ event_type, inbound_event_id, signature: meta.signature },
      names: Object.keys(headers),
    })),
    [
      {
        ...{ event_type: 'ping', inbound_event_id: 'ev_1', signature: 'chargebee' },
        names: ['content-type', 'user-agent'],
      },
    ],
  )
})

test('the unsigned ping of WooCommerce is answered and not stored', async () => {
  const shop = await makeSource(server, { preset: 'woocommerce', signing_secret: 'a-secret-of-the-shop' })
  const ping = await shop.post('webhook_id=12', {
    key: '',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  assert.deepEqual([ping.status, ping.body.accepted], [200, 0])
  await answers([401, 'signature_missing'], shop.post('webhook_id=12&x=1', { key: '' }))
  await answers([401, 'signature_missing'], shop.post('{"id":1}', { key: '' }))
  assert.deepEqual(await eventsOf(server, shop.id), [])
})

function isOfCustom(error: { errors?: { pointer: string }[] }): boolean {
  assert.deepEqual(
    error.errors?.map(({ pointer }) => pointer),
    ['/custom'],
  )
  return true
}

test('a source with the preset custom requires the description of its signature', async () => {
  const custom = { header: 'X-Sig', template: '{timestamp}:{body}', timestamp_header: 'X-Time' }
  const secret = 'a-secret-of-some-length'
  const refused = (settings: Record<string, unknown>) =>
    assert.rejects(makeSource(server, { preset: 'custom', signing_secret: secret, ...settings }), isOfCustom)
  await refused({})
  await refused({ custom: { ...custom, timestamp_header: undefined } })
  await refused({ custom: { ...custom, body_path: 'a.b' } })
  await refused({ custom: { header: 'x-sig', template: '{timestamp}', timestamp_header: 'x-time' } })
  const source = await makeSource(server, {
    ...{ preset: 'custom', signing_secret: secret, custom },
    headers: ['x-sig-id'],
  })
  const time = String(nowS())
  const good = { 'x-time': time, 'x-sig': hmac(secret, `${time}:${BODY}`), 'x-sig-id': 's-1' }
  await answers([200], source.post(BODY, { key: '', headers: good }))
  await answers([401, 'signature_invalid'], source.post(`${BODY} `, { key: '', headers: good }))
  await assert.rejects(server.admin.sources.update(source.id, { custom: null }), isOfCustom)
  const [event] = await eventsOf(server, source.id)
  assert.deepEqual(
    [event!.event_type, event!.payload, event!.meta.signature, event!.headers['x-sig-id']],
    ['x', { n: 1.5 }, 'custom', 's-1'],
  )
})

test('lago: a signature called jwt and a public key as the secret are rejected with the setting to change', async () => {
  const source = await makeSource(server, { preset: 'lago', signing_secret: 'lago-hmac-key-0123456789' })
  const body = JSON.stringify({ webhook_type: 'invoice.created', object_type: 'invoice', invoice: { lago_id: 'i' } })
  const headers = (algorithm: string) => ({
    ...{
      'x-lago-signature': hmac('lago-hmac-key-0123456789', body, 'base64'),
      'x-lago-signature-algorithm': algorithm,
    },
    'x-lago-unique-key': `k-${algorithm}`,
  })
  assert.equal((await source.post(body, { headers: headers('hmac') })).status, 200)
  const refused = await source.post(body, { headers: headers('jwt') })
  assert.deepEqual([refused.status, refused.body.code], [401, 'signature_invalid'])
  assert.match(refused.body.detail, /JWT.*hmac/)
  const key = '-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----'
  for (const signing_secret of [Buffer.from(key).toString('base64'), 'eyJhbGciOiJSUzI1NiJ9.e30.c2lnbmF0dXJl'])
    await assert.rejects(makeSource(server, { preset: 'lago', signing_secret }), ({ errors }: Body) =>
      /^must be Lago's HMAC key.*use hmac/.test(errors[0].message),
    )
})
