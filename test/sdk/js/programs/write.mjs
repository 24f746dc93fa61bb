// A user's program: writes everything that read.mjs reads.
import assert from 'node:assert/strict'
import { Kontor, KontorError } from '@kontor/sdk'

const { KONTOR_URL: url, PRIVATE_KEY: privateKey, TRACKING_KEY: trackingKey } = process.env
const kontor = new Kontor({ url: `${url}/`, privateKey, trackingKey })

const mug = {
  id: 'p-1',
  externalId: 'ext-1',
  sourceUpdatedAt: new Date('2026-01-31T09:30:00Z'),
  data: { sku: 'MUG-01' },
}
const first = await kontor.products.upsert(mug, { idempotencyKey: 'schlüssel ☂', waitS: 10 })
assert.deepEqual([first.accepted, first.duplicate, first.id, first.status], [true, false, 'p-1', 'applied'])
const again = await kontor.products.upsert({ ...mug, data: {} }, { idempotencyKey: 'schlüssel ☂' })
assert.deepEqual([again.duplicate, again.operationId, again.payloadMismatch], [true, first.operationId, true])
assert.equal((await kontor.operations.get(first.operationId)).status, 'applied')

await kontor.contacts.upsert({ id: 'c/1 ä?', data: { email: 'ada@example.com', name: 'Ada' } }, { waitS: 10 })
assert.equal((await kontor.contacts.get('c/1 ä?')).data.name, 'Ada')
const order = { id: 'o-1', data: { total: 49.9, currency: 'EUR', contactId: 'c/1 ä?' } }
assert.equal((await kontor.orders.upsert(order, { waitS: 10 })).status, 'applied')

async function* catalog() {
  for (let n = 0; n < 2_345; n++) yield n === 1_234 ? { id: '' } : { id: `many-${n}`, data: { sku: `SKU-${n}`, n } }
}
const results = []
for await (const result of kontor.products.upsertMany(catalog(), { waitS: 10 })) results.push(result)
assert.deepEqual(
  results.map(({ index }) => index),
  Array.from({ length: 2_345 }, (_, n) => n),
)
const [bad, ...others] = results.filter(({ accepted }) => !accepted)
assert.deepEqual([bad.index, bad.id, others.length], [1_234, '', 0])
assert.equal(bad.errors[0].pointer, '/id')
assert.ok(
  results.every(
    ({ accepted, status, id, index }) => !accepted || (typeof status === 'string' && id === `many-${index}`),
  ),
)

await kontor.products.upsert({ id: 'gone' }, { waitS: 10 })
assert.equal((await kontor.products.delete({ id: 'gone' }, { waitS: 10 })).status, 'applied')
assert.equal(await kontor.products.get('gone'), null)
assert.equal(await kontor.orders.get('never seen'), null)
assert.equal(await kontor.operations.get('0'), null)

for (let n = 0; n < 1_200; n++)
  assert.equal(kontor.track({ event_type: 'page_view', visitor: `v-${n % 7}`, data: { n } }), true)
const occurred_at = new Date('2026-03-01T09:00:00Z')
kontor.track({
  event_type: 'seen',
  event_id: 'e-1',
  visitor: 'v-1',
  session_id: 's-1',
  user_id: 'u-1',
  occurred_at,
  data: { sku: 'MUG-01' },
})
await kontor.flush()
kontor.track({
  event_type: 'convert',
  visitor: 'v-1',
  data: { order_id: 'o-2', amount: 12.5, currency: 'EUR' },
})
await kontor.close()
await kontor.close()

const problem = error =>
  error instanceof KontorError && [
    error.status,
    error.code,
    typeof error.requestId,
    error.errors.map(({ pointer }) => pointer),
  ]
await assert.rejects(kontor.products.upsert({ id: 'x'.repeat(300), sourceUpdatedAt: 'noon' }), error => {
  assert.deepEqual(problem(error), [400, 'invalid_request', 'string', ['/id', '/sourceUpdatedAt']])
  return true
})
const unauthenticated = new Kontor({ url, privateKey: 'private-unknown' })
await assert.rejects(unauthenticated.products.get('p-1'), error => {
  assert.deepEqual(problem(error).slice(0, 2), [401, 'invalid_credentials'])
  return true
})
await assert.rejects(unauthenticated.products.get('..'), TypeError)
await assert.rejects(new Kontor({ url }).products.get('p-1'), TypeError)
assert.throws(() => unauthenticated.track({ event_type: 'x' }), TypeError)
assert.throws(() => new Kontor({ url: 'kontor' }), TypeError)

// Tracked events are sent before the program exits, without waiting for them here.
new Kontor({ url, trackingKey }).track({ event_type: 'last words' })
