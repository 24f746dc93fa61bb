import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Api, aDelete, aRecord, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

const withKey = (key: string) => ({ headers: { 'x-idempotency-key': key } })

for (const [how, send] of [
  ['header', (key: string, v: number) => api.write('order', { id: `${key}-o`, data: { v } }, withKey(key))],
  ['body field', (key: string, v: number) => api.write('order', { id: `${key}-o`, data: { v }, idempotencyKey: key })],
] as const) {
  test(`a key in the ${how} that was used is 200 duplicate, and the change is not applied again`, async () => {
    const key = `by-${how.replace(' ', '-')}`
    const first = await send(key, 1)
    assert.equal(first.status, 202)
    assert.equal(first.body.duplicate, false)
    const again = await send(key, 1)
    assert.equal(again.status, 200)
    assert.deepEqual(again.body, {
      accepted: true,
      duplicate: true,
      operationId: first.body.operationId,
      entityType: 'order',
      id: `${key}-o`,
    })
    assert.equal(again.headers.get('location'), `/v1/operations/${first.body.operationId}`)
    // The same source time but a later arrival: it would win if it were applied.
    const other = await send(key, 2)
    assert.equal(other.status, 200)
    assert.equal(other.body.payloadMismatch, true)
    assert.deepEqual((await api.record('order', `${key}-o`)).data, { v: 1 })
  })
}

test('header and body field share the same keys, and the header takes precedence', async () => {
  const first = await api.write('order', { id: 'wins', idempotencyKey: 'in-body' }, withKey('in-header'))
  assert.equal(first.status, 202)
  assert.equal((await api.write('order', { id: 'wins', idempotencyKey: 'in-header' })).status, 200)
  assert.equal((await api.write('order', { id: 'wins', idempotencyKey: 'in-body' })).status, 202)
})

test('a repeated key is a duplicate whatever the body: another record, another type, a delete', async () => {
  const first = await api.write('product', { id: 'p', data: { sku: 'P' } }, withKey('whatever'))
  const expected = { duplicate: true, operationId: first.body.operationId, entityType: 'product', id: 'p' }
  for (const answer of [
    await api.write('product', { id: 'q' }, withKey('whatever')),
    await api.write('contact', { id: 'c' }, withKey('whatever')),
    await api.remove('product', { id: 'p', sourceUpdatedAt: '2026-06-01' }, withKey('whatever')),
  ]) {
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { accepted: true, ...expected, payloadMismatch: true })
  }
  assert.equal((await api.record('product', 'P')).id, 'p')
  assert.equal(await api.record('contact', 'c'), null)
})

test('the same content in another order and spelling is not a mismatch', async () => {
  const written = '{"entityType":"order","id":"o","sourceUpdatedAt":"2026-01-01","data":{"a":1,"b":{"c":[1,2],"d":2}}}'
  const other = ` { "data": {"b":{"d":2.0,"c":[1, 2]},"\\u0061":1.0}, "sourceUpdatedAt":"2026-01-01","id":"o", "entityType":"order"}`
  assert.equal((await api.post('/v1/orders', written, withKey('spelling'))).status, 202)
  const again = await api.post('/v1/orders', other, withKey('spelling'))
  assert.equal(again.status, 200)
  assert.equal('payloadMismatch' in again.body, false)
  const moved = await api.post('/v1/orders', { ...JSON.parse(written), idempotencyKey: 'spelling' })
  assert.equal('payloadMismatch' in moved.body, false)
})

test('deletes accept keys too', async () => {
  const first = await api.remove('order', { id: 'gone' }, withKey('delete'))
  assert.equal(first.status, 202)
  const again = await api.remove('order', { id: 'gone' }, withKey('delete'))
  assert.equal(again.status, 200)
  assert.equal(again.body.operationId, first.body.operationId)
  assert.equal('payloadMismatch' in again.body, false)
  const byName = await api.remove('product', { data: { sku: 'x' } }, withKey('delete by name'))
  const repeated = await api.remove('product', { data: { sku: 'x' } }, withKey('delete by name'))
  assert.equal(repeated.body.operationId, byName.body.operationId)
  assert.equal(repeated.body.id, null)
})

test('a rejected write does not consume its key', async () => {
  const refused = [
    () => api.post('/v1/orders', {}, withKey('refused')),
    () => api.post('/v1/orders', 'no json', withKey('refused')),
    () => api.post('/v1/orders', aRecord('order', { data: { a: '\0' } }), withKey('refused')),
    () => api.post('/v1/orders', aRecord('order'), { ...withKey('refused'), key: 'private-unknown' }),
    () => api.post('/v1/contacts', aRecord('order'), withKey('refused')),
    () => api.delete('/v1/orders', aDelete('order', {}), withKey('refused')),
  ]
  for (const send of refused) assert.ok((await send()).status >= 400)
  assert.equal((await api.write('order', { id: 'good' }, withKey('refused'))).status, 202)
})

test('a used key is a duplicate whatever the body, even an invalid one', async () => {
  const first = await api.write('order', { id: 'first' }, withKey('whatever'))
  for (const body of [{}, { entityType: 'product' }, aRecord('order', { data: { a: '\0' } })]) {
    const again = await api.post('/v1/orders', body, withKey('whatever'))
    assert.equal(again.status, 200, JSON.stringify(body))
    assert.equal(again.body.duplicate, true)
    assert.equal(again.body.payloadMismatch, true)
    assert.equal(again.body.operationId, first.body.operationId)
  }
})

test('twenty requests at once with one key: exactly one 202, all others its duplicates', async () => {
  for (const body of [(i: number) => ({ v: i }), () => ({ same: true })]) {
    const key = `race ${JSON.stringify(body(0))}`
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => api.write('order', { id: key, data: body(i) }, withKey(key))),
    )
    const accepted = answers.filter(({ status }) => status === 202)
    const duplicates = answers.filter(({ status }) => status === 200)
    assert.equal(accepted.length, 1)
    assert.equal(duplicates.length, 19)
    for (const { body } of duplicates) {
      assert.equal(body.duplicate, true)
      assert.equal(body.operationId, accepted[0]!.body.operationId)
    }
  }
})

test('twenty requests at once on two nodes: exactly one 202', async () => {
  const other = await openSecondNode()
  try {
    const send = (url: string) =>
      fetch(`${url}/v1/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${api.server.tenant.privateKey}`,
          'content-type': 'application/json',
          'x-idempotency-key': 'two nodes',
        },
        body: JSON.stringify(aRecord('order', { id: 'two-nodes' })),
      })
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => send(i % 2 === 0 ? api.server.url : other.url)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 202])
  } finally {
    await other.close()
  }
})

async function openSecondNode() {
  const { startRuntime } = await import('../../src/runtime/runtime.ts')
  const { readConfig } = await import('../../src/config/config.ts')
  const { pino } = await import('pino')
  const { databaseUrl } = api.server
  const config = readConfig({ DATABASE_URL: databaseUrl, KONTOR_OPS_PORT: 'off', KONTOR_PORT: '0' }, {})
  return startRuntime({ config, connection: { url: databaseUrl }, log: pino({ level: 'silent' }) })
}

test('two tenants can use the same key', async () => {
  const other = await api.server.anotherTenant('other-keys')
  assert.equal((await api.write('order', { id: 'mine' }, withKey('ours'))).status, 202)
  const theirs = await api.write('order', { id: 'theirs' }, { ...withKey('ours'), key: other.privateKey })
  assert.equal(theirs.status, 202)
})

test('keys have 1 to 255 printable characters', async () => {
  for (const key of ['x', 'x'.repeat(255), 'with spaces and ~!@#$%^&*()']) {
    assert.equal((await api.write('order', { id: 'printable' }, withKey(key))).status, 202, key)
  }
  for (const idempotencyKey of ['ü'.repeat(255), '🦀'.repeat(255), '批次-1']) {
    assert.equal((await api.write('order', { id: 'printable', idempotencyKey })).status, 202, idempotencyKey)
  }
  for (const idempotencyKey of ['', 'x'.repeat(256), 'a\tb', 'a\u007fb', 'a\u0085b', 'a\ud800']) {
    const answer = await api.write('order', { id: 'printable', idempotencyKey })
    assert.equal(answer.status, 400, JSON.stringify(idempotencyKey))
    assert.deepEqual(
      [...new Set(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer))],
      ['/idempotencyKey'],
    )
  }
  assert.equal((await api.write('order', { id: 'printable' }, withKey('x'.repeat(256)))).status, 400)
})

test('a duplicate request can wait until the first one is applied', async () => {
  await api.write('order', { id: 'waited' }, withKey('wait'))
  const again = await api.write(
    'order',
    { id: 'waited' },
    { headers: { 'x-idempotency-key': 'wait', prefer: 'wait=10' } },
  )
  assert.equal(again.status, 200)
  assert.equal(again.body.status, 'applied')
})

test('a key survives a restart', async () => {
  const first = await api.write('order', { id: 'restart' }, withKey('restart'))
  await api.server.restart()
  const again = await api.write('order', { id: 'restart' }, withKey('restart'))
  assert.equal(again.status, 200)
  assert.equal(again.body.operationId, first.body.operationId)
})
