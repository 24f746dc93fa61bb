import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import {
  type Headers,
  PRESET_NAMES,
  type PresetName,
  presetNamed,
} from '../../../src/domain/inbound/presets.ts'

const now = new Date('2025-01-01T12:00:00Z')
const nowS = now.getTime() / 1000

function verify(name: PresetName, headers: Headers, body: string, secrets: string[], at = now) {
  const result = presetNamed(name)!.verify({ headers, body: Buffer.from(body), secrets, now: at })
  return result.ok ? result.format : result.code
}

test('stripe: what its own library signs is accepted, and nothing else', () => {
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
  assert.equal(
    verify('stripe', headers, payload, [secret], new Date(now.getTime() + 301_000)),
    'signature_expired',
  )
  assert.equal(verify('stripe', {}, payload, [secret]), 'signature_missing')
  const preset = presetNamed('stripe')!
  assert.equal(preset.eventType({}, JSON.parse(payload)), 'invoice.paid')
  assert.equal(preset.eventId({}, JSON.parse(payload)), 'evt_1')
})

test('standard webhooks: what the reference library signs is accepted, and nothing else', () => {
  const secret = `whsec_${Buffer.from('a key of some length').toString('base64')}`
  const body = '{"type":"order.paid","timestamp":"2025-01-01T12:00:00Z","data":{"id":"o1","amount":5}}'
  const signature = new Webhook(secret).sign('msg_1', now, body)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': `${nowS}`, 'webhook-signature': signature }
  assert.equal(verify('standard-webhooks', headers, body, [secret]), 'standard')
  assert.equal(verify('standard-webhooks', headers, body, ['whsec_b3RoZXI=', secret.slice(6)]), 'standard')
  assert.equal(
    verify('standard-webhooks', { ...headers, 'webhook-signature': `v1,AAAA v1a,x ${signature}` }, body, [
      secret,
    ]),
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
  const preset = presetNamed('standard-webhooks')!
  assert.equal(preset.eventType(headers, JSON.parse(body)), 'order.paid')
  assert.equal(preset.eventId(headers, JSON.parse(body)), 'msg_1')
  assert.deepEqual(preset.subject(JSON.parse(body)), { id: 'o1', amount: 5 })
})

test('standard webhooks: a secret that is no base64 lets nobody in', () => {
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
  const preset = presetNamed('shopify')!
  assert.equal(preset.eventType(headers, {}), 'orders/paid')
  assert.equal(preset.eventId(headers, {}), 'w-1')
  assert.equal(preset.eventId({ 'x-shopify-event-id': 'e-1' }, {}), 'e-1')
})

test('github: sha256= over the body, type from header and action', () => {
  const body = '{"action":"opened"}'
  const signature = `sha256=${createHmac('sha256', 's').update(body).digest('hex')}`
  const headers = { 'x-hub-signature-256': signature, 'x-github-event': 'issues', 'x-github-delivery': 'd-1' }
  assert.equal(verify('github', headers, body, ['s']), 'github')
  assert.equal(
    verify('github', { 'x-hub-signature-256': signature.slice(7) }, body, ['s']),
    'signature_invalid',
  )
  assert.equal(verify('github', headers, body, ['t']), 'signature_invalid')
  assert.equal(verify('github', {}, body, ['s']), 'signature_missing')
  const preset = presetNamed('github')!
  assert.equal(preset.eventType(headers, JSON.parse(body)), 'issues.opened')
  assert.equal(preset.eventType(headers, {}), 'issues')
  assert.equal(preset.eventId(headers, {}), 'd-1')
})

test('a preset is found by name only', () => {
  for (const name of PRESET_NAMES) assert.equal(presetNamed(name)?.name, name)
  for (const name of [null, '', 'constructor', 'Stripe']) assert.equal(presetNamed(name), null)
})

test('no preset keeps a signature among its headers', () => {
  for (const name of PRESET_NAMES) {
    for (const header of presetNamed(name)!.keepHeaders)
      assert.doesNotMatch(header, /signature|hmac|authorization/)
  }
})
