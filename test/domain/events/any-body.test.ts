import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { contactFacts, orderConversion, readConversion } from '../../../src/domain/conversions/conversions.ts'
import { inspect, openBody } from '../../../src/domain/events/normalize/normalize.ts'
import type { EventContext } from '../../../src/domain/events/types.ts'
import { readTouch } from '../../../src/domain/identity/attribution.ts'
import { eventIdentifiers } from '../../../src/domain/identity/identifiers.ts'
import type { EventTypeOverride } from '../../../src/domain/inbound/source-config.ts'
import { storable } from '../../../src/domain/json/json.ts'
import { runs } from '../../long.ts'
import { anyText, anyValue } from '../json/any-json.ts'
import { cdpContext, inboundContext, received, trackContext } from './received.ts'

const FIELDS = [
  ...['event_type', 'visitor', 'session_id', 'user_id', 'event_id', 'occurred_at', 'data', 'payload', 'type', 'kind'],
  ...['event', 'messageId', 'anonymousId', 'userId', 'previousId', 'traits', 'properties', 'context', 'timestamp'],
  ...['sentAt', 'writeKey', 'inbound_event_id', 'id', 'object', 'created', 'email', 'page', 'batch', '__proto__'],
  ...['campaign', 'referrer', 'amount', 'currency', 'order_id', 'customer', 'metadata', 'conversion_type'],
]
const WORDS = ['track', 'identify', 'alias', 'group', 'event', 'invoice', 'invoice.paid', 'convert', '2025-01-01', 'u1']

const field = fc.constantFrom(...FIELDS)
const loose = fc.oneof(anyValue, fc.constantFrom(...WORDS), fc.constantFrom(1e21, 1735732800, 5))
const nested = fc.oneof(loose, fc.dictionary(field, fc.oneof(loose, fc.dictionary(field, loose, { maxKeys: 4 }))))
const item = fc.oneof({ weight: 5, arbitrary: fc.dictionary(field, nested) }, loose)
const body = fc.oneof(
  { weight: 4, arbitrary: item },
  {
    weight: 3,
    arbitrary: fc.record({ batch: fc.array(item), sentAt: loose, context: nested }, { requiredKeys: ['batch'] }),
  },
  { weight: 2, arbitrary: fc.array(item) },
)
const text = fc.oneof({ weight: 9, arbitrary: body.map(value => JSON.stringify(value)) }, anyText)

const override = fc.oneof(
  fc.constant<EventTypeOverride | null>(null),
  fc.record({ set: anyText }),
  fc.record({ prefix: anyText }),
  fc.record({ map: fc.dictionary(fc.oneof(anyText, fc.constantFrom(...WORDS)), anyText) }),
  fc.record({ path: fc.array(field).map(keys => keys.join('.')) }),
)
const inbound = fc
  .record({
    sourceType: fc.constantFrom('webhook' as const, 'automation' as const, 'cdp' as const),
    preset: fc.constantFrom(null, 'stripe', 'shopify', 'github', 'standard-webhooks', 'none such'),
    eventTypeOverride: override,
    eventIdPath: fc.option(fc.array(field).map(keys => keys.join('.'))),
  })
  .map(settings => inboundContext(settings))
const context: fc.Arbitrary<EventContext> = fc.oneof(
  fc.constant(trackContext),
  fc.constantFrom('any' as const, 'batch' as const, 'track' as const, 'alias' as const).map(cdpContext),
  inbound,
)

test('intake and pipeline read any body alike, and nothing throws', () => {
  fc.assert(
    fc.property(text, context, (text, context) => {
      const inspection = inspect(openBody(text), context)
      const { events, rejected } = received(text, context)
      assert.equal(inspection.items, events.length + rejected.length)
      assert.deepEqual(
        inspection.accepted.map(({ index }) => index),
        events.map(({ index }) => index),
      )
      for (const [i, { inboundEventId }] of inspection.accepted.entries()) {
        if (inboundEventId !== null) assert.equal(inboundEventId, events[i]!.inboundEventId)
        else assert.ok(events[i]!.inboundEventId === null || events[i]!.meta.generated_id)
      }
      assert.deepEqual(
        inspection.rejected,
        rejected.map(({ index, message }) => ({ index, message })),
      )
      assert.ok(inspection.errors.length >= rejected.length)
      for (const { message } of rejected) assert.ok(message.length > 0)
    }),
    { numRuns: runs(3000) },
  )
})

test('every accepted event can be stored and processed', () => {
  const types = new Set(['invoice.paid', 'u1', 'track'])
  let seen = 0
  fc.assert(
    fc.property(text, context, (text, context) => {
      for (const event of received(text, context).events) {
        seen++
        assert.ok(storable(event.payload))
        const payload = JSON.parse(event.payload)
        assert.ok(typeof payload === 'object' && payload !== null && !Array.isArray(payload))
        for (const column of [event.visitor, event.sessionId, event.userId, event.inboundEventId, event.email]) {
          assert.ok(column === null || (column.length > 0 && [...column].length <= 255))
        }
        assert.ok(event.eventType.length > 0 && [...event.eventType].length <= 200)
        assert.ok(event.occurredAt.getTime() <= event.receivedAt.getTime() + 300_000)
        for (const { value } of eventIdentifiers(event)) assert.ok(value.trim() !== '' && value.length <= 255)
        const conversion = readConversion(event, types)
        if (conversion?.amount) assert.match(conversion.amount, /^-?\d+(\.\d+)?$/)
        readTouch(event)
        contactFacts(event.subject)
        orderConversion(event.subject)
      }
    }),
    { numRuns: runs(3000) },
  )
  assert.ok(seen > runs(3000) / 30, `only ${seen} bodies were good`)
})

test('events that belong together have the same ordering key', () => {
  const key = (body: object, context: EventContext) => inspect(openBody(JSON.stringify(body)), context).orderingKey
  assert.equal(key({ event_type: 'x', visitor: 'v', user_id: 'u' }, trackContext), 'v')
  assert.equal(key({ event_type: 'x', user_id: 'u' }, trackContext), 'u')
  assert.equal(key({ event_type: 'x' }, trackContext), null)
  assert.equal(key({ batch: [{}, { type: 'page', anonymousId: 'a' }] }, cdpContext('batch')), 'a')
  assert.equal(key({ event_type: 'x', payload: { id: 7 } }, inboundContext()), 'src_1/7')
  const stripe = { id: 'evt_1', object: 'event', type: 'invoice.paid', data: { object: { id: 'in_1' } } }
  assert.equal(key(stripe, inboundContext()), 'src_1/in_1')
  assert.equal(key({ event_type: 'x', inbound_event_id: 'e', payload: {} }, inboundContext()), 'src_1/e')
})
