import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemAlone } from '../../../src/domain/events/normalize/normalize.ts'
import type { EventContext } from '../../../src/domain/events/types.ts'
import { cdpContext, inboundContext, received, trackContext } from './received.ts'

const cases: [string, EventContext][] = [
  ['{"event_type":"x","data":{"a":1.0}}', trackContext],
  ['{"type":"track","event":"x"}', cdpContext('track')],
  [
    '{"sentAt":"2024-01-01T00:00:00Z","context":{"app":1.0},"writeKey":"k","batch":[{"type":"page","timestamp":"2023-12-31T23:59:00Z"},' +
      '{"type":"track","event":"a\\u0000","properties":{"n":1.10}}]}',
    cdpContext('batch'),
  ],
  ['[{"type":"page"},{"type":"screen","name":"Home"}]', cdpContext('batch')],
  ['[{"event_type":"a","inbound_event_id":"1"},{"event_type":"b","inbound_event_id":"2"}]', inboundContext()],
  [
    '{"batch":[{"type":"page","messageId":"1"},{"type":"page","messageId":"2"}]}',
    inboundContext({ sourceType: 'cdp' }),
  ],
]

test('an item alone is read as it is in its batch', () => {
  for (const [text, context] of cases) {
    const { events } = received(text, context)
    for (const event of events) {
      const alone = itemAlone(text, { ...context, items: [event.index] }, event.index)
      const again = received(alone.text, alone.context)
      assert.deepEqual(again.rejected, [])
      assert.equal(again.events.length, 1, text)
      const place = { id: '', index: 0, meta: { ...event.meta, batch_index: 0, batch_size: 0 } }
      const [same] = again.events
      assert.deepEqual({ ...same, ...place }, { ...event, ...place })
    }
  }
})

test('an item alone contains nothing of the other items', () => {
  const [text, context] = cases[2]!
  const alone = itemAlone(text, context, 1)
  assert.ok(!alone.text.includes('"page"'))
  assert.ok(!alone.text.includes('writeKey'))
})
