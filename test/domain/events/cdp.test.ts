import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemId } from '../../../src/domain/ids.ts'
import { TIME_FORMAT } from '../../../src/domain/time.ts'
import { cdpContext, cdpEvent, ENTRY_ID, inboundContext, RECEIVED_AT, received } from './received.ts'

test('a track call has a name, ids and properties', () => {
  const raw =
    '{"type":"track","event":"Order Completed","messageId":"m1","anonymousId":"a1","userId":"u1","properties":{"total":1.50},"context":{"sessionId":1735732800},"timestamp":"2025-01-01T11:59:00Z"}'
  const event = cdpEvent(raw)
  assert.partialDeepStrictEqual(event, {
    eventType: 'Order Completed',
    source: 'cdp',
    sourceConfigId: null,
    inboundEventId: 'm1',
    visitor: 'a1',
    userId: 'u1',
    sessionId: '1735732800',
    payload: raw,
    subject: { total: 1.5 },
    meta: { kind: 'track' },
  })
  assert.equal(event.occurredAt.toISOString(), '2025-01-01T11:59:00.000Z')
})

test('for other kinds, the kind is the event type', () => {
  for (const type of ['identify', 'page', 'screen', 'group', 'alias']) {
    assert.equal(cdpEvent({ type, userId: 'u' }).eventType, type)
  }
  assert.equal(cdpEvent({ kind: 'page' }).eventType, 'page')
  assert.deepEqual(cdpEvent({ type: 'identify', traits: { plan: 'x' } }).subject, { plan: 'x' })
  assert.deepEqual(cdpEvent({ type: 'page', properties: { url: 'x' } }).subject, { url: 'x' })
  assert.equal(cdpEvent({ type: 'alias', userId: 'u', previousId: 'p' }).previousId, 'p')
})

test('the route sets the kind if the item has none', () => {
  assert.equal(cdpEvent({ userId: 'u' }, 'identify').eventType, 'identify')
  assert.equal(cdpEvent({ event: 'Signed Up', type: 'nonsense' }, 'track').eventType, 'Signed Up')
  assert.equal(received({ userId: 'u' }, cdpContext()).rejected.length, 1)
})

test('an invalid item does not affect valid ones', () => {
  const batch = [{ type: 'track' }, { type: 'page', messageId: 'm' }, 5, { type: 'x' }, { type: 'screen', userId: {} }]
  const { events, rejected } = received({ batch }, cdpContext('batch'))
  assert.deepEqual(
    events.map(event => [event.id, event.index, event.meta.batch_index, event.meta.batch_size]),
    [[itemId(ENTRY_ID, 1), 1, 1, 5]],
  )
  assert.deepEqual(rejected, [
    { index: 0, message: 'event is required', raw: '{"type":"track"}', inboundEventId: null },
    { index: 2, message: 'an event must be a JSON object', raw: '5', inboundEventId: null },
    {
      index: 3,
      message: 'type must be one of track, identify, page, screen, group, alias',
      raw: '{"type":"x"}',
      inboundEventId: null,
    },
    {
      index: 4,
      message: 'userId must be a string',
      raw: '{"type":"screen","userId":{}}',
      inboundEventId: null,
    },
  ])
})

test('sentAt and context of a batch apply to its items', () => {
  const body = `{"batch":[{"type":"page","timestamp":"2025-01-01T09:59:00Z"},{"type":"page","context":{"a":1}},{ }],
    "sentAt":"2025-01-01T10:00:00Z","context":{"userAgent":"Googlebot/2.1 (+http://www.google.com/bot.html)"}}`
  const { events } = received(body, cdpContext('batch'))
  assert.equal(events[0]!.occurredAt.toISOString(), '2025-01-01T11:59:00.000Z')
  assert.equal(events[0]!.meta.bot, true)
  assert.deepEqual(JSON.parse(events[0]!.payload), {
    context: { userAgent: 'Googlebot/2.1 (+http://www.google.com/bot.html)' },
    type: 'page',
    timestamp: '2025-01-01T09:59:00Z',
  })
  assert.equal(events[1]!.payload, '{"type":"page","context":{"a":1}}')
})

test("the client's clock is corrected only if it is wrong", () => {
  const at = (fields: object) => cdpEvent({ type: 'page', ...fields }).occurredAt.toISOString()
  assert.equal(at({}), RECEIVED_AT.toISOString())
  assert.equal(at({ timestamp: '2024-12-31T00:00:00Z', sentAt: '2025-01-01T11:59:59Z' }), '2024-12-31T00:00:00.000Z')
  assert.equal(
    at({ originalTimestamp: '2025-01-02T00:00:00Z', sentAt: '2025-01-02T00:01:00Z' }),
    '2025-01-01T11:59:00.000Z',
  )
  assert.equal(at({ timestamp: '2024-12-31T00:00:00Z', sentAt: 'nonsense' }), '2024-12-31T00:00:00.000Z')
  const ahead = cdpEvent({ type: 'page', timestamp: '2025-01-02T00:00:00Z' })
  assert.deepEqual([ahead.occurredAt, ahead.meta.client_time], [RECEIVED_AT, '2025-01-02T00:00:00Z'])
  const { rejected } = received({ type: 'page', timestamp: 'yesterday' }, cdpContext())
  assert.equal(rejected[0]?.message, `timestamp must be ${TIME_FORMAT}`)
})

test('a write key in the body is not stored', () => {
  const event = cdpEvent('{"type":"page","writeKey":"secret","messageId":"m"}')
  assert.equal(event.payload, '{"type":"page","messageId":"m"}')
})

test('only the item with unstorable text is marked as sanitized', () => {
  const body = '{"batch":[{"type":"track","event":"a\\u0000"},{"type":"track","event":"b","n":1}]}'
  const { events } = received(body, cdpContext('batch'))
  assert.deepEqual(
    events.map(event => [event.eventType, event.meta.sanitized, event.payload]),
    [
      ['a\ufffd', true, '{"type":"track","event":"a\\ufffd"}'],
      ['b', undefined, '{"type":"track","event":"b","n":1}'],
    ],
  )
})

test('of repeated batch keys the last one counts', () => {
  const { events } = received('{"batch":[{"type":"page"}],"batch":[{"type":"screen"}]}', cdpContext('batch'))
  assert.deepEqual(
    events.map(event => [event.eventType, event.payload]),
    [['screen', '{"type":"screen"}']],
  )
})

test('a body without a valid batch is rejected completely', () => {
  for (const body of ['{"batch":{}}', '{"batch":null}', '{}', 'null', '5']) {
    const { events, rejected } = received(body, cdpContext('batch'))
    assert.deepEqual([events.length, rejected.length, rejected[0]?.index], [0, 1, 0], body)
  }
  assert.deepEqual(received('{"batch":[]}', cdpContext('batch')), { events: [], rejected: [] })
})

test('a cdp source accepts single events and batches, and its override applies', () => {
  const context = inboundContext({ sourceType: 'cdp', eventTypeOverride: { prefix: 'shop.' } })
  const { events } = received({ batch: [{ type: 'track', event: 'a', messageId: 'm' }, { type: 'page' }] }, context)
  assert.partialDeepStrictEqual(events, [
    {
      eventType: 'shop.a',
      source: 'cdp',
      sourceConfigId: 'src_1',
      inboundEventId: 'm',
      meta: { kind: 'track', overridden_from: 'a', batch_index: 0 },
    },
    { eventType: 'shop.page', inboundEventId: itemId(ENTRY_ID, 1), meta: { generated_id: true } },
  ])
  assert.equal(received({ type: 'page' }, context).events.length, 1)
  assert.equal(received({ type: 'x' }, context).rejected.length, 1)
})

test('an entry with a part of its batch returns that part', () => {
  const context = { ...cdpContext('batch'), items: [1, 3] }
  const { events, rejected } = received({ batch: [{ type: 'page' }, { type: 'page' }, {}, {}] }, context)
  assert.deepEqual([events.map(event => event.index), rejected.map(item => item.index)], [[1], [3]])
})
