import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { signWebhook, verifyWebhook } from '../../../sdk/js/src/webhooks.ts'
import { makeSource } from '../../inbound/source.ts'
import { sharedServer, type TestServer } from '../../server.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`
const other = `whsec_${Buffer.from('another key').toString('base64')}`
const body = '{ "event_type":"x",  "payload":{"n":1.50,"ü":"☂"} }'
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000)

/** The headers that Standard Webhooks' own library would send. */
function standard(content = body, at = new Date(), key = secret) {
  const signature = new Webhook(key).sign('msg_1', at, content)
  const timestamp = String(Math.floor(at.getTime() / 1_000))
  return { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature }
}

test('the server accepts only bodies signed by signWebhook', async () => {
  const source = await makeSource(server, { signing_secret: secret, require_timestamped_signature: true })
  const post = async (signature: string) =>
    (await source.post(body, { headers: { 'x-service-signature': signature } })).status
  assert.equal(await post(await signWebhook({ secret, body })), 200)
  assert.equal(await post(await signWebhook({ secret, body: new TextEncoder().encode(body) })), 200)
  assert.equal(await post(await signWebhook({ secret: other, body })), 401)
  assert.equal(await post(await signWebhook({ secret, body: `${body} ` })), 401)
  assert.equal(await post(await signWebhook({ secret, body, timestamp: ago(400) })), 401)
})

test("signWebhook and verifyWebhook agree with Stripe's library on t=,v1=", async () => {
  const timestamp = Math.floor(Date.now() / 1_000)
  const theirs = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp })
  assert.equal(await signWebhook({ secret, body, timestamp }), theirs)
  assert.equal(await verifyWebhook({ secret, body, headers: { 'X-Service-Signature': theirs } }), true)
})

test('verifyWebhook accepts signatures of the Standard Webhooks library, with headers in any form', async () => {
  for (const headers of [standard(), new Headers(standard()), { ...standard(), 'webhook-id': ['msg_1'] }])
    assert.equal(await verifyWebhook({ secret, body, headers }), true)
  for (const raw of [body, Buffer.from(body), new TextEncoder().encode(body).buffer])
    assert.equal(await verifyWebhook({ secret, body: raw, headers: standard() }), true)
  const rotated = `v1a,xyz ${standard(body, new Date(), other)['webhook-signature']} ${standard()['webhook-signature']}`
  assert.equal(await verifyWebhook({ secret, body, headers: { ...standard(), 'webhook-signature': rotated } }), true)
  assert.equal(await verifyWebhook({ secret: [other, secret], body, headers: standard() }), true)
})

test('verifyWebhook returns false for another secret, body, id or time, and without a signature', async () => {
  const mine = { 'x-service-signature': await signWebhook({ secret, body }) }
  const [t, v1] = mine['x-service-signature'].split(',') as [string, string]
  const cases: [string, Parameters<typeof verifyWebhook>[0]][] = [
    ['secret', { secret: other, body, headers: standard() }],
    ['secret', { secret: other, body, headers: mine }],
    ['undecodable secret', { secret: 'whsec_%%', body, headers: standard() }],
    ['body', { secret, body: body.replace('1.50', '1.5'), headers: standard() }],
    ['body', { secret, body: body.replace('1.50', '1.5'), headers: mine }],
    ['id', { secret, body, headers: { ...standard(), 'webhook-id': 'msg_2' } }],
    ['time', { secret, body, headers: { ...standard(), 'webhook-timestamp': '1' } }],
    ['old', { secret, body, headers: standard(body, ago(310)) }],
    ['future', { secret, body, headers: standard(body, ago(-310)) }],
    [
      'old',
      {
        secret,
        body,
        headers: { 'x-service-signature': await signWebhook({ secret, body, timestamp: ago(310) }) },
      },
    ],
    ['two times', { secret, body, headers: { 'x-service-signature': `${t},t=1,${v1}` } }],
    ['no time', { secret, body, headers: { 'x-service-signature': v1 } }],
    ['half', { secret, body, headers: { 'x-service-signature': `${t},${v1.slice(0, -2)}` } }],
    ['none', { secret, body, headers: {} }],
    ['elsewhere', { secret, body, headers: mine, signatureHeader: 'x-shop-signature' }],
  ]
  for (const [name, request] of cases) assert.equal(await verifyWebhook(request), false, name)
})

test('toleranceS sets the accepted age', async () => {
  const headers = standard(body, ago(1_000))
  assert.equal(await verifyWebhook({ secret, body, headers, toleranceS: 2_000 }), true)
  assert.equal(await verifyWebhook({ secret, body, headers: standard(body, ago(30)), toleranceS: 10 }), false)
})

test('a missing secret and a parsed body throw errors instead of returning false', async () => {
  const headers = standard()
  for (const missing of ['', undefined as unknown as string])
    await assert.rejects(verifyWebhook({ secret: missing, body, headers }), TypeError)
  await assert.rejects(signWebhook({ secret: '', body }), TypeError)
  await assert.rejects(verifyWebhook({ secret, body: JSON.parse(body), headers }), TypeError)
})
