import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect, openBody } from '../../../src/domain/events/normalize/normalize.ts'
import { TIME_FORMAT } from '../../../src/domain/time.ts'
import { ENTRY_ID, RECEIVED_AT, received, trackContext, trackEvent } from './received.ts'

const errors = (body: unknown) => inspect(openBody(JSON.stringify(body)), trackContext).errors

test('a tracking event is normalized', () => {
  const body = `{"event_type":"page_view","visitor":"v1","session_id":"s1","user_id":"u1","event_id":"e1",
    "occurred_at":"2025-01-01T11:00:00+01:00","data":{"page": "https://shop.example/","n":1.50}}`
  assert.deepEqual(trackEvent(body), {
    id: ENTRY_ID,
    index: 0,
    eventType: 'page_view',
    occurredAt: new Date('2025-01-01T10:00:00Z'),
    receivedAt: RECEIVED_AT,
    source: 'tracking',
    sourceConfigId: null,
    key: null,
    preset: null,
    makesRecords: false,
    billingNamespace: null,
    trusted: false,
    inboundEventId: 'e1',
    providerEventId: null,
    visitor: 'v1',
    sessionId: 's1',
    userId: 'u1',
    previousId: null,
    email: null,
    payload: '{"page": "https://shop.example/","n":1.50}',
    subject: { page: 'https://shop.example/', n: 1.5 },
    context: null,
    headers: {},
    meta: { kind: 'track' },
  })
})

test('only event_type is required', () => {
  const event = trackEvent({ event_type: 'x' })
  assert.equal(event.payload, '{}')
  assert.equal(event.inboundEventId, null)
  assert.deepEqual(event.occurredAt, RECEIVED_AT)
  assert.equal(trackEvent({ event_type: 'x', visitor: null, data: null, occurred_at: null }).visitor, null)
})

test('other fields and data are merged in the payload, data wins, digits stay', () => {
  const payload = (body: string) => trackEvent(body).payload
  assert.equal(payload('{"event_type":"x","a":1.0,"data":{"b":2}}'), '{"a":1.0,"b":2}')
  assert.equal(payload('{"event_type":"x","a":1,"data":{"a":2}}'), '{"a":2}')
  assert.equal(payload('{"event_type":"x","a":1,"data":{ }}'), '{"a":1}')
  assert.equal(payload('{"event_type":"x","a":820982911946154508}'), '{"a":820982911946154508}')
  assert.equal(payload('{"event_type":"x","data":{"a":1},"data":{"b":2}}'), '{"b":2}')
  assert.equal(payload('{"event_type":"x","writeKey":"k","a":1}'), '{"a":1}')
  const event = trackEvent('{"event_type":"convert","amount":5,"data":{"page":"p"}}')
  assert.deepEqual(event.subject, { page: 'p', amount: 5 })
})

test('a __proto__ field changes no prototype', () => {
  const event = trackEvent('{"event_type":"x","__proto__":{"email":"a@b.c"},"data":{"__proto__":{"amount":1}}}')
  assert.equal(event.email, null)
  assert.equal(event.subject.amount, undefined)
  assert.equal(({} as Record<string, unknown>).email, undefined)
})

test('numbers are accepted as ids, exactly', () => {
  const event = trackEvent('{"event_type":"x","visitor":42,"user_id":12345678901234567890}')
  assert.equal(event.visitor, '42')
  assert.equal(event.userId, '12345678901234567890')
})

test('all validation errors of an event are reported together', () => {
  assert.deepEqual(
    errors({ visitor: {}, session_id: 'x'.repeat(256), data: [], occurred_at: 'soon', event_id: true }),
    [
      { pointer: '/data', message: 'data must be an object' },
      { pointer: '/event_type', message: 'event_type is required' },
      { pointer: '/event_id', message: 'event_id must be a string' },
      { pointer: '/visitor', message: 'visitor must be a string' },
      { pointer: '/session_id', message: 'session_id must not be longer than 255 characters' },
      { pointer: '/occurred_at', message: `occurred_at must be ${TIME_FORMAT}` },
    ],
  )
  const { rejected } = received({ event_type: '', data: 'x' }, trackContext)
  assert.deepEqual(rejected, [
    {
      index: 0,
      message: 'data must be an object; event_type must not be empty',
      raw: '{"event_type":"","data":"x"}',
      inboundEventId: null,
    },
  ])
})

test('an event type has 1 to 200 characters, whatever their size in bytes', () => {
  for (const good of ['x', 'é'.repeat(200), '😀'.repeat(200)]) assert.deepEqual(errors({ event_type: good }), [])
  for (const bad of ['', 'x'.repeat(201), '😀'.repeat(201), 5, null, {}]) {
    assert.equal(errors({ event_type: bad }).length, 1, String(bad))
  }
})

test('a time more than five minutes ahead is replaced, and the original is stored', () => {
  const event = trackEvent({ event_type: 'x', occurred_at: '2025-01-01T12:06:00Z' })
  assert.deepEqual(event.occurredAt, RECEIVED_AT)
  assert.equal(event.meta.client_time, '2025-01-01T12:06:00Z')
  const near = trackEvent({ event_type: 'x', occurred_at: '2025-01-01T12:04:00Z' })
  assert.deepEqual([near.occurredAt.toISOString(), near.meta.client_time], ['2025-01-01T12:04:00.000Z', undefined])
})

test('a body that is no event is reported, not thrown', () => {
  for (const body of ['', '{', 'null', '[]', '"x"', '5', '[{"event_type":"x"}]', '['.repeat(500)]) {
    const { events, rejected } = received(body, trackContext)
    assert.deepEqual([events.length, rejected.length], [0, 1], body)
  }
})

test('unstorable text is replaced in every column, and the event is marked', () => {
  const event = trackEvent('{"event_type":"a\\u0000","visitor":"\\ud800","event_id":"x","data":{"k\\u0000":1e999}}')
  assert.equal(event.eventType, 'a\ufffd')
  assert.equal(event.visitor, '\ufffd')
  assert.equal(event.payload, '{"k\\ufffd":null}')
  assert.deepEqual(event.subject, { 'k\ufffd': null })
  assert.equal(event.meta.sanitized, true)
  assert.equal(trackEvent({ event_type: 'fine \u{1f600}' }).meta.sanitized, undefined)
})

test('crawlers are tagged, people and server libraries are not', () => {
  const bot = (userAgent: string) =>
    received('{"event_type":"x"}', { ...trackContext, headers: { 'user-agent': userAgent } }).events[0]!.meta.bot
  assert.equal(bot('Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'), true)
  assert.equal(
    bot('Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1.15 Version/17.0 Safari/605.1.15'),
    undefined,
  )
  assert.equal(bot('node'), undefined)
  assert.equal(bot(''), undefined)
})

test("the request's address is stored", () => {
  const { events } = received('{"event_type":"x"}', { ...trackContext, ip: '192.0.2.1' })
  assert.deepEqual(events[0]!.meta, { kind: 'track', ip: '192.0.2.1' })
})
