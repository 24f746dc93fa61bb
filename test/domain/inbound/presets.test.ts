import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { findPreset, type Headers, PRESET_NAMES, type PresetName } from '../../../src/domain/inbound/presets.ts'
import { signingSecret } from '../../../src/domain/inbound/signatures.ts'
import type { CustomSignature } from '../../../src/domain/inbound/source-config.ts'

const now = new Date('2025-01-01T12:00:00Z')
const nowS = now.getTime() / 1000

function verify(name: PresetName, headers: Headers, body: string, secrets: string[], at = now) {
  const preset = findPreset(name)!
  const prepared = secrets.map(secret => signingSecret(secret, preset.keyBytes))
  const result = preset.verify({ headers, body: Buffer.from(body), secrets: prepared, now: at })
  return result.ok ? result.format : result.code
}

test('stripe: only signatures of its own library are accepted', () => {
  const secret = 'whsec_test_secret'
  const payload = '{"id":"evt_1","type":"invoice.paid","object":"event"}'
  const header = new Stripe('sk_test_1').webhooks.generateTestHeaderString({
    payload,
    secret,
    timestamp: nowS,
  })
  const headers = { 'stripe-signature': header }
  assert.equal(verify('stripe', headers, payload, [secret]), 'stripe')
  assert.equal(verify('stripe', headers, payload, ['other', secret]), 'stripe')
  assert.equal(verify('stripe', headers, payload, ['other']), 'signature_invalid')
  assert.equal(verify('stripe', headers, `${payload} `, [secret]), 'signature_invalid')
  assert.equal(verify('stripe', headers, payload, [secret], new Date(now.getTime() + 301_000)), 'signature_expired')
  assert.equal(verify('stripe', {}, payload, [secret]), 'signature_missing')
  const preset = findPreset('stripe')!
  assert.equal(preset.eventType({}, JSON.parse(payload)), 'invoice.paid')
  assert.equal(preset.eventId({}, JSON.parse(payload)), 'evt_1')
})

test('standard webhooks: only signatures of the reference library are accepted', () => {
  const secret = `whsec_${Buffer.from('a key of some length').toString('base64')}`
  const body = '{"type":"order.paid","timestamp":"2025-01-01T12:00:00Z","data":{"id":"o1","amount":5}}'
  const signature = new Webhook(secret).sign('msg_1', now, body)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': `${nowS}`, 'webhook-signature': signature }
  assert.equal(verify('standard-webhooks', headers, body, [secret]), 'standard')
  assert.equal(verify('standard-webhooks', headers, body, ['whsec_b3RoZXI=', secret.slice(6)]), 'standard')
  assert.equal(
    verify('standard-webhooks', { ...headers, 'webhook-signature': `v1,AAAA v1a,x ${signature}` }, body, [secret]),
    'standard',
  )
  for (const changed of [
    { ...headers, 'webhook-id': 'msg_2' },
    { ...headers, 'webhook-timestamp': `${nowS + 1}` },
    { ...headers, 'webhook-signature': signature.replace('v1,', 'v2,') },
  ]) {
    assert.equal(verify('standard-webhooks', changed, body, [secret]), 'signature_invalid')
  }
  assert.equal(verify('standard-webhooks', headers, `${body} `, [secret]), 'signature_invalid')
  const late = new Date(now.getTime() + 301_000)
  assert.equal(verify('standard-webhooks', headers, body, [secret], late), 'signature_expired')
  for (const name of Object.keys(headers)) {
    const without = { ...headers, [name]: undefined }
    assert.equal(verify('standard-webhooks', without, body, [secret]), 'signature_missing')
  }
  const preset = findPreset('standard-webhooks')!
  assert.equal(preset.eventType(headers, JSON.parse(body)), 'order.paid')
  assert.equal(preset.eventId(headers, JSON.parse(body)), 'msg_1')
  assert.deepEqual(preset.subject!(JSON.parse(body)), { id: 'o1', amount: 5 })
})

test('standard webhooks: a secret that is not base64 rejects every request', () => {
  const signature = `v1,${createHmac('sha256', '').update(`m.${nowS}.{}`).digest('base64')}`
  const headers = { 'webhook-id': 'm', 'webhook-timestamp': `${nowS}`, 'webhook-signature': signature }
  assert.equal(verify('standard-webhooks', headers, '{}', ['whsec_!']), 'signature_invalid')
})

test('shopify: base64 over the body, type and id from the headers', () => {
  const body = '{"id":820982911946154508,"total_price":"49.90"}'
  const headers = {
    'x-shopify-hmac-sha256': createHmac('sha256', 'shpss').update(body).digest('base64'),
    'x-shopify-topic': 'orders/paid',
    'x-shopify-webhook-id': 'w-1',
    'x-shopify-event-id': 'e-1',
  }
  assert.equal(verify('shopify', headers, body, ['shpss']), 'shopify')
  assert.equal(verify('shopify', headers, body, ['wrong']), 'signature_invalid')
  assert.equal(verify('shopify', headers, body.replace('49', '48'), ['shpss']), 'signature_invalid')
  assert.equal(verify('shopify', {}, body, ['shpss']), 'signature_missing')
  const preset = findPreset('shopify')!
  assert.equal(preset.eventType(headers, {}), 'orders/paid')
  assert.equal(preset.eventId(headers, {}), 'w-1')
  assert.equal(preset.eventId({ 'x-shopify-event-id': 'e-1' }, {}), 'e-1')
})

test('github: sha256= over the body, type from header and action', () => {
  const body = '{"action":"opened"}'
  const signature = `sha256=${createHmac('sha256', 's').update(body).digest('hex')}`
  const headers = { 'x-hub-signature-256': signature, 'x-github-event': 'issues', 'x-github-delivery': 'd-1' }
  assert.equal(verify('github', headers, body, ['s']), 'github')
  assert.equal(verify('github', { 'x-hub-signature-256': signature.slice(7) }, body, ['s']), 'signature_invalid')
  assert.equal(verify('github', headers, body, ['t']), 'signature_invalid')
  assert.equal(verify('github', {}, body, ['s']), 'signature_missing')
  const preset = findPreset('github')!
  assert.equal(preset.eventType(headers, JSON.parse(body)), 'issues.opened')
  assert.equal(preset.eventType(headers, {}), 'issues')
  assert.equal(preset.eventId(headers, {}), 'd-1')
})

const SECRET = 'a-signing-secret-of-length'
const PADDLE_BODY = '{"event_id":"evt_01","event_type":"transaction.completed","data":{"id":"txn_01"}}'

// signatures created with openssl
test('paddle: ts and h1 over "<ts>:" + body', () => {
  const signature = 'c892b83aa8d9654921d87d9b24e1ce28b07e9a2fd51acf9d837bf71c5b5c1651'
  const good = { 'paddle-signature': `ts=1735732800;h1=${signature}` }
  const checked = (header: string, at = now, secrets = [SECRET]) =>
    verify('paddle', { 'paddle-signature': header }, PADDLE_BODY, secrets, at)
  assert.equal(verify('paddle', good, PADDLE_BODY, [SECRET]), 'paddle')
  assert.equal(checked(`ts=1735732800;h1=${'0'.repeat(64)};h1=${signature}`), 'paddle')
  assert.equal(checked(good['paddle-signature'], new Date(now.getTime() + 301_000)), 'signature_expired')
  assert.equal(checked(good['paddle-signature'], now, ['another']), 'signature_invalid')
  for (const header of [
    `ts=1735732801;h1=${signature}`,
    `h1=${signature}`,
    `ts=1735732800;ts=1735732800;h1=${signature}`,
    'ts=1735732800',
    'x',
  ])
    assert.equal(checked(header), 'signature_invalid')
  assert.equal(verify('paddle', {}, PADDLE_BODY, [SECRET]), 'signature_missing')
  const preset = findPreset('paddle')!
  assert.equal(preset.eventType({}, JSON.parse(PADDLE_BODY)), 'transaction.completed')
  assert.equal(preset.eventId({}, JSON.parse(PADDLE_BODY)), 'evt_01')
})

test('recurly: milliseconds and one or more signatures; object, event type and time form the id', () => {
  const signature = '01741a5180757a058bbf053b7d8396f390b08cdc7ce59f1d168f0efe6ebd0448'
  const checked = (header: string, at = now) =>
    verify('recurly', { 'recurly-signature': header }, PADDLE_BODY, [SECRET], at)
  assert.equal(checked(`1735732800000,${signature}`), 'recurly')
  assert.equal(checked(`1735732800000,${'0'.repeat(64)},${signature}`), 'recurly')
  assert.equal(checked(`1735732800000,${signature}`, new Date(now.getTime() - 301_000)), 'signature_expired')
  for (const header of [`1735732800,${signature}`, signature, '1735732800000', `${signature},1735732800000`])
    assert.equal(checked(header), 'signature_invalid')
  assert.equal(verify('recurly', {}, PADDLE_BODY, [SECRET]), 'signature_missing')
  const body = {
    ...{ id: 'ra8foq26o2dt', object_type: 'subscription', site_id: 'qc326l1hl8k9', event_type: 'created' },
    ...{ event_time: '2022-07-26T22:01:56Z', uuid: '63ab531e1d5b1d47eaf1ef44eeb853c3' },
  }
  const preset = findPreset('recurly')!
  assert.equal(preset.eventType({}, body), 'subscription.created')
  assert.equal(preset.eventId({}, body), 'ra8foq26o2dt/subscription/created/2022-07-26T22:01:56Z')
  assert.notEqual(preset.eventId({}, { ...body, event_time: '2022-07-27' }), preset.eventId({}, body))
})

test('woocommerce and lago: base64 over the body', () => {
  const signature = 'tP4itZ5HDAAY1Z/k7a+k1QQkV1Ns5lOdKkgJ8OyyaSc='
  for (const [name, header] of [
    ['woocommerce', 'x-wc-webhook-signature'],
    ['lago', 'x-lago-signature'],
  ] as const) {
    assert.equal(verify(name, { [header]: signature }, PADDLE_BODY, [SECRET]), name)
    assert.equal(verify(name, { [header]: signature }, `${PADDLE_BODY} `, [SECRET]), 'signature_invalid')
    // Lago's signature if the endpoint does not use hmac
    assert.equal(
      verify(name, { [header]: 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln' }, PADDLE_BODY, [SECRET]),
      'signature_invalid',
    )
    assert.equal(verify(name, {}, PADDLE_BODY, [SECRET]), 'signature_missing')
  }
  // Lago names the algorithm in a header of its own
  for (const [algorithm, expected] of [
    ['hmac', 'lago'],
    ['HMAC', 'lago'],
    ['jwt', 'signature_invalid'],
  ] as const) {
    const named = { 'x-lago-signature': signature, 'x-lago-signature-algorithm': algorithm }
    assert.equal(verify('lago', named, PADDLE_BODY, [SECRET]), expected)
  }
  const shop = findPreset('woocommerce')!
  const headers = { 'x-wc-webhook-topic': 'order.updated', 'x-wc-webhook-delivery-id': '9f1c' }
  assert.equal(shop.eventType(headers, { id: 727 }), 'order.updated')
  assert.equal(shop.eventId(headers, { id: 727 }), '9f1c/order.updated/727')
  assert.equal(shop.eventId({ 'x-wc-webhook-topic': 'order.updated' }, { id: 727 }), null)
  assert.ok(shop.isPing!(Buffer.from('webhook_id=12')))
  for (const body of ['webhook_id=', 'webhook_id=12&x=1', '{}', `webhook_id=${'1'.repeat(50)}`])
    assert.ok(!shop.isPing!(Buffer.from(body)))
  const lago = findPreset('lago')!
  assert.equal(lago.eventType({}, { webhook_type: 'invoice.created' }), 'invoice.created')
  assert.equal(lago.eventId({ 'x-lago-unique-key': 'k-1' }, {}), 'k-1')
})

test('chargebee and revenuecat: the Authorization header contains the secret', () => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  const checked = (headers: Headers) => verify('chargebee', headers, '{}', ['old:password', 'hook:a:password'])
  assert.equal(checked(basic('hook:a:password')), 'chargebee')
  assert.equal(checked(basic('old:password')), 'chargebee')
  for (const text of ['hook:a:passwor', 'hook:', '', 'hook:a:password '])
    assert.equal(checked(basic(text)), 'signature_invalid')
  assert.equal(checked({ authorization: 'Bearer hook:a:password' }), 'signature_invalid')
  assert.equal(checked({}), 'signature_missing')
  assert.equal(findPreset('chargebee')!.checkSecret!('hook:a:password'), null)
  assert.match(findPreset('chargebee')!.checkSecret!('a-password-alone')!, /user:password/)
  const shown = (authorization?: string) =>
    verify('revenuecat', authorization === undefined ? {} : { authorization }, '{}', ['Bearer of-this-value'])
  assert.equal(shown('Bearer of-this-value'), 'revenuecat')
  assert.equal(shown('of-this-value'), 'signature_invalid')
  assert.equal(shown(''), 'signature_invalid')
  assert.equal(shown(), 'signature_missing')
  assert.equal(findPreset('revenuecat')!.eventType({}, { event: { type: 'RENEWAL', id: 'e' } }), 'RENEWAL')
  assert.equal(findPreset('revenuecat')!.eventId({}, { event: { type: 'RENEWAL', id: 'e' } }), 'e')
})

test('custom: location, encoding and content of the signature are settings', () => {
  const checked = (custom: CustomSignature | null, headers: Headers, body = PADDLE_BODY, at = now) => {
    const secrets = ['other', SECRET].map(secret => signingSecret(secret))
    const result = findPreset('custom')!.verify({ headers, body: Buffer.from(body), secrets, now: at, custom })
    return result.ok ? result.format : result.code
  }
  const sha1 = '7df0f4c3429d6f8da36b99ecea9503199e6cf752'
  const plain: CustomSignature = { header: 'x-sig', algorithm: 'sha1', prefix: 'sha1=' }
  assert.equal(checked(plain, { 'x-sig': `sha1=${sha1}` }), 'custom')
  assert.equal(checked(plain, { 'x-sig': sha1 }), 'signature_invalid')
  assert.equal(checked(plain, { 'x-sig': `sha1=${sha1}` }, '{}'), 'signature_invalid')
  assert.equal(checked({ ...plain, algorithm: 'sha256' }, { 'x-sig': `sha1=${sha1}` }), 'signature_invalid')
  assert.equal(checked(plain, {}), 'signature_missing')
  assert.equal(checked(null, { 'x-sig': `sha1=${sha1}` }), 'signature_invalid')
  const timed: CustomSignature = {
    ...{ header: 'x-sig', algorithm: 'sha512', encoding: 'base64', template: '{timestamp}.{body}' },
    ...{ timestamp_header: 'x-time', tolerance_s: 60 },
  }
  const signature = 'InJEaxCaO8Yqn2FoZtRTVeuVZWnnuBSGmbzC0pQoNdjouH1yhKjyMPJv1MgJ7SVdeyciMqm6E54NBRL4wf8aew=='
  const headers = { 'x-sig': signature, 'x-time': '1735732800' }
  assert.equal(checked(timed, headers), 'custom')
  assert.equal(checked(timed, headers, PADDLE_BODY, new Date(now.getTime() + 61_000)), 'signature_expired')
  assert.equal(checked(timed, { ...headers, 'x-time': '1735732801' }), 'signature_invalid')
  assert.equal(checked(timed, { 'x-sig': signature }), 'signature_missing')
  const inside: CustomSignature = {
    body_path: 'signature.value',
    template: '{signature.time}{signature.token}',
  }
  const body = (token: string) =>
    JSON.stringify({
      signature: {
        ...{ time: 1735732800, token },
        value: 'daeb6969258402ff5a91393bb9aa05282cfab800beaa7fd57e6cbec23534cb12',
      },
    })
  assert.equal(checked(inside, {}, body('tok')), 'custom')
  assert.equal(checked(inside, {}, body('tok2')), 'signature_invalid')
  assert.equal(checked(inside, {}, '{'), 'signature_missing')
})

test('a preset is found by name only', () => {
  for (const name of PRESET_NAMES) assert.equal(findPreset(name)?.name, name)
  for (const name of [null, '', 'constructor', 'Stripe']) assert.equal(findPreset(name), null)
})

test('no preset stores a signature header', () => {
  for (const name of PRESET_NAMES) {
    for (const header of findPreset(name)!.keepHeaders) assert.doesNotMatch(header, /signature|hmac|authorization/)
  }
})
