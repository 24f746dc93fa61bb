import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InboundContext } from '../../../src/domain/events/types.ts'
import { TIME_FORMAT } from '../../../src/domain/time.ts'
import { ENTRY_ID, inboundContext, inboundEvent, RECEIVED_AT, received } from '../events/received.ts'

const message = (body: unknown, settings: Partial<InboundContext> = {}) =>
  received(body, inboundContext(settings)).rejected[0]?.message

test('id, type and payload of a webhook are used as received', () => {
  const body = '{"inbound_event_id":"e1","event_type":"order.paid","payload":{"id": "o1","n":1.0}}'
  assert.partialDeepStrictEqual(inboundEvent(body, { signature: 't,v1' }), {
    id: ENTRY_ID,
    eventType: 'order.paid',
    source: 'webhook',
    sourceConfigId: 'src_1',
    inboundEventId: 'e1',
    providerEventId: null,
    payload: '{"id": "o1","n":1.0}',
    subject: { id: 'o1', n: 1 },
  })
  assert.deepEqual(inboundEvent(body, { signature: 't,v1' }).meta, { signature: 't,v1' })
  assert.equal(inboundEvent(body, { sourceType: 'automation' }).source, 'automation')
})

test('without a payload field, the payload is the complete body', () => {
  assert.equal(inboundEvent('{"event_type":"x","a":1.0}').payload, '{"event_type":"x","a":1.0}')
  assert.equal(inboundEvent('{"event_type":"x","payload":null}').payload, '{"event_type":"x","payload":null}')
  assert.equal(inboundEvent('{"event_type":"x","payload":{"payload":{}}}').payload, '{"payload":{}}')
  assert.equal(message({ event_type: 'x', payload: [1] }), 'payload must be an object')
})

test('without an id, a deterministic one is derived from the entry', () => {
  const event = inboundEvent({ event_type: 'x' })
  assert.equal(event.inboundEventId, ENTRY_ID)
  assert.equal(event.meta.generated_id, true)
})

test('the id can be anywhere in the body', () => {
  const id = (body: object, eventIdPath: string) => inboundEvent({ event_type: 'x', ...body }, { eventIdPath })
  assert.equal(id({ payload: { meta: { id: 'p1' } } }, 'payload.meta.id').inboundEventId, 'p1')
  assert.equal(id({ list: [{ id: 5 }] }, 'list.0.id').inboundEventId, '5')
  assert.equal(id({ inbound_event_id: 'own', other: 'x' }, 'other').inboundEventId, 'own')
  for (const path of ['nowhere', 'constructor.name', '__proto__.x', '', '.', 'event_type.length']) {
    assert.equal(id({}, path).meta.generated_id, true, path)
  }
  const settings = { eventIdPath: 'a.b' }
  assert.match(message({ event_type: 'x', a: { b: {} } }, settings)!, /the event id must be a string/)
})

test('the type can be set, prefixed, mapped or read elsewhere', () => {
  const type = (
    override: InboundContext['eventTypeOverride'],
    body: object = { event_type: 'a', k: { t: 'deep' } },
  ) => {
    const event = inboundEvent(body, { eventTypeOverride: override })
    return [event.eventType, event.meta.overridden_from]
  }
  assert.deepEqual(type({ set: 'b' }), ['b', 'a'])
  assert.deepEqual(type({ set: 'a' }), ['a', undefined])
  assert.deepEqual(type({ set: 'b' }, {}), ['b', undefined])
  assert.deepEqual(type({ prefix: 'x.' }), ['x.a', 'a'])
  assert.deepEqual(type({ map: { a: 'b' } }), ['b', 'a'])
  assert.deepEqual(type({ map: { constructor: 'b' } }), ['a', undefined])
  assert.deepEqual(type({ map: {} }, { event_type: 'constructor' }), ['constructor', undefined])
  assert.deepEqual(type({ path: 'k.t' }), ['deep', 'a'])
  assert.deepEqual(type({ path: 'k.nowhere' }), ['a', undefined])
})

test('an event without a type from the body or the source is rejected', () => {
  assert.equal(message({ payload: {} }), 'event_type is required')
  assert.equal(message({ event_type: 5 }), 'event_type must be a string')
  assert.equal(message({}, { eventTypeOverride: { prefix: 'x.' } }), 'event_type is required')
  assert.equal(message({}, { eventTypeOverride: { path: 'kind' } }), 'event_type is required')
  assert.match(message({ event_type: 'x' }, { eventTypeOverride: { set: 'y'.repeat(201) } })!, /1 to 200 characters/)
  assert.equal(
    message({ inbound_event_id: {}, payload: 'x' }),
    'payload must be an object; event_type is required; inbound_event_id must be a string',
  )
})

test('a Stripe event is recognized without a preset', () => {
  const object = { id: 'in_1', object: 'invoice' }
  const body = { id: 'evt_1', object: 'event', type: 'invoice.paid', created: 1735731000, data: { object } }
  const event = inboundEvent(body)
  assert.partialDeepStrictEqual(event, {
    eventType: 'invoice.paid',
    inboundEventId: 'evt_1',
    providerEventId: 'evt_1',
    payload: JSON.stringify(body),
    subject: body,
  })
  assert.equal(event.occurredAt.toISOString(), '2025-01-01T11:30:00.000Z')
  assert.partialDeepStrictEqual(inboundEvent({ inbound_event_id: 'e', event_type: 'x', payload: body }), {
    inboundEventId: 'e',
    eventType: 'x',
    providerEventId: 'evt_1',
  })
})

test('a preset reads type and id from the fields of its provider', () => {
  const headers = { 'x-shopify-topic': 'orders/paid', 'x-shopify-webhook-id': 'w1' }
  const body = '{"id":820982911946154508,"payload":"theirs"}'
  assert.partialDeepStrictEqual(inboundEvent(body, { preset: 'shopify', headers }), {
    eventType: 'orders/paid',
    inboundEventId: 'w1',
    providerEventId: 'w1',
    payload: body,
    subject: { id: '820982911946154508' },
    headers,
  })
  const standard = { type: 'order.paid', data: { id: 'o1' } }
  assert.partialDeepStrictEqual(
    inboundEvent(standard, { preset: 'standard-webhooks', headers: { 'webhook-id': 'msg_1' } }),
    {
      eventType: 'order.paid',
      inboundEventId: 'msg_1',
      payload: JSON.stringify(standard),
      subject: { id: 'o1' },
    },
  )
  const plain = inboundEvent({ event_type: 'x', inbound_event_id: 'e', payload: {} }, { preset: 'stripe' })
  assert.deepEqual([plain.eventType, plain.inboundEventId], ['x', 'e'])
})

test('an id in a header is read even if the source sets the event type', () => {
  const settings = { preset: 'standard-webhooks', headers: { 'webhook-id': 'm3' }, requireEventId: true } as const
  const event = inboundEvent({ a: 1 }, { ...settings, eventTypeOverride: { set: 'partner.event' } })
  assert.deepEqual([event.eventType, event.inboundEventId], ['partner.event', 'm3'])
  const named = inboundEvent({ kind: 'k.z' }, { ...settings, eventTypeOverride: { path: 'kind' } })
  assert.deepEqual([named.eventType, named.inboundEventId], ['k.z', 'm3'])
  assert.doesNotMatch(message({ a: 1 }, settings)!, /has no id/)
})

test('the events of an array have different ids, although they share the id in the header', () => {
  const context = inboundContext({ preset: 'standard-webhooks', headers: { 'webhook-id': 'm5' } })
  const body = [{ type: 'a', n: 1 }, { type: 'a', n: 2 }, { type: 'a' }]
  const ids = received(body, context).events.map(event => event.inboundEventId)
  assert.equal(new Set(ids).size, 3)
  assert.ok(ids.every(id => id?.startsWith('m5/')))
  assert.deepEqual(
    received(body.toReversed(), context).events.map(event => event.inboundEventId),
    ids.toReversed(),
  )
})

test("a webhook's own time is used if it has one", () => {
  const standard = { type: 'order.paid', timestamp: '2024-12-30T20:26:10.344Z', data: {} }
  const times = [
    inboundEvent(standard, { preset: 'standard-webhooks', headers: { 'webhook-id': 'm4' } }),
    inboundEvent({ object: 'v2.core.event', id: 'evt_1', type: 't', created: '2024-12-30T20:26:10.344Z' }),
  ].map(event => event.occurredAt.toISOString())
  assert.deepEqual(times, ['2024-12-30T20:26:10.344Z', '2024-12-30T20:26:10.344Z'])
  const at = (occurred_at: unknown) => inboundEvent({ event_type: 'x', occurred_at })
  assert.equal(at('2025-01-01T10:00:00Z').occurredAt.toISOString(), '2025-01-01T10:00:00.000Z')
  assert.equal(at('2026-01-01T10:00:00Z').meta.client_time, '2026-01-01T10:00:00Z')
})

test('an unreadable time is rejected beside a payload, and shown if the body is arbitrary', () => {
  for (const occurred_at of ['soon', '', '2026-02-30', '2025-01-01 10:00:00', 1_735_725_600]) {
    const words = message({ event_type: 'x', occurred_at, payload: {} })
    assert.equal(words, `occurred_at must be ${TIME_FORMAT}`, `${occurred_at}`)
    const event = inboundEvent({ event_type: 'x', occurred_at })
    assert.deepEqual([event.occurredAt, event.meta.client_time], [RECEIVED_AT, occurred_at])
  }
  assert.equal('client_time' in inboundEvent({ event_type: 'x', occurred_at: null, payload: {} }).meta, false)
  assert.equal('client_time' in inboundEvent({ event_type: 'x', occurred_at: { at: 'x'.repeat(1_000) } }).meta, false)
})

test('an array is a batch, a field called batch is not', () => {
  const { events, rejected } = received([{ event_type: 'a' }, 5, { event_type: 'b' }], inboundContext())
  assert.deepEqual(
    events.map(event => [event.eventType, event.meta.batch_index, event.meta.batch_size]),
    [
      ['a', 0, 3],
      ['b', 2, 3],
    ],
  )
  assert.deepEqual(
    rejected.map(item => item.index),
    [1],
  )
  const single = inboundEvent({ event_type: 'x', batch: [1, 2] })
  assert.equal(single.meta.batch_size, undefined)
})
