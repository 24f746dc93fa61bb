import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Api, aDelete, openApi, type Type } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

test('a delete is accepted with 202 and the same body as a write', async () => {
  await api.write('order', { id: 'o-1' })
  const answer = await api.remove('order', { id: 'o-1' })
  const { operationId, ...body } = answer.body
  assert.equal(answer.status, 202)
  assert.deepEqual(body, { accepted: true, duplicate: false, entityType: 'order', id: 'o-1' })
  assert.equal(answer.headers.get('location'), `/v1/operations/${operationId}`)
  assert.equal(await api.statusOf(answer), 'applied')
  assert.equal(await api.record('order', 'o-1'), null)
})

test('deleting an unknown record is accepted', async () => {
  for (const fields of [{ id: 'never' }, { externalId: 'never' }, { data: { sku: 'never' } }]) {
    const answer = await api.remove('product', fields)
    assert.equal(answer.status, 202)
    assert.equal(await api.statusOf(answer), 'applied')
  }
})

type Deletion = { type: Type; names: Record<string, unknown>; by: Record<string, unknown> }

const deletions: [how: string, deletion: Deletion][] = [
  ['id', { type: 'contact', names: {}, by: { id: 'r' } }],
  ['externalId', { type: 'contact', names: { externalId: 'ext' }, by: { externalId: 'ext' } }],
  ['externalId of an order', { type: 'order', names: { externalId: 'ext' }, by: { externalId: 'ext' } }],
  ['sku', { type: 'product', names: { data: { sku: 'S-1' } }, by: { data: { sku: 'S-1' } } }],
  ['code', { type: 'product', names: { data: { code: 'C-1' } }, by: { data: { code: 'C-1' } } }],
  ['a sku that is a number', { type: 'product', names: { data: { sku: 4711 } }, by: { data: { sku: 4711 } } }],
  ['a number for a sku that is text', { type: 'product', names: { data: { sku: '815' } }, by: { data: { sku: 815 } } }],
  [
    'a unicode sku',
    { type: 'product', names: { data: { sku: '🦀'.repeat(255) } }, by: { data: { sku: '🦀'.repeat(255) } } },
  ],
]

for (const [how, { type, names, by }] of deletions) {
  let number = 0
  const id = () => ('id' in by ? 'r' : `${how} ${++number}`)

  test(`by ${how}: the record is deleted, and later writes restore it`, async () => {
    const own = id()
    await api.write(type, { ...names, id: own, sourceUpdatedAt: '2026-01-01' })
    const deleted = await api.remove(type, { ...by, sourceUpdatedAt: '2026-01-02' })
    assert.equal(await api.statusOf(deleted), 'applied')
    assert.equal(await api.record(type, own), null)
    await api.write(type, { ...names, id: own, sourceUpdatedAt: '2026-01-03' })
    assert.equal((await api.record(type, own))?.id, own)
    await api.remove(type, { ...by, sourceUpdatedAt: '2026-01-04' })
    assert.equal(await api.record(type, own), null)
  })

  test(`by ${how}: a late older write does not restore the record, and is superseded`, async () => {
    const own = id()
    const deleted = await api.remove(type, { ...by, sourceUpdatedAt: '2026-02-02' })
    assert.equal(await api.statusOf(deleted), 'applied')
    const late = await api.write(type, { ...names, id: own, sourceUpdatedAt: '2026-02-01' })
    assert.equal(await api.statusOf(late), 'superseded')
    assert.equal(await api.record(type, own), null)
  })

  test(`by ${how}: an older delete leaves a newer record, and is superseded`, async () => {
    const own = id()
    await api.write(type, { ...names, id: own, sourceUpdatedAt: '2026-03-02' })
    const deleted = await api.remove(type, { ...by, sourceUpdatedAt: '2026-03-01' })
    assert.equal(await api.statusOf(deleted), 'superseded')
    assert.equal((await api.record(type, own))?.id, own)
  })

  test(`by ${how}: of equal times the later arrival wins`, async () => {
    const own = id()
    const time = { sourceUpdatedAt: '2026-04-01' }
    await api.write(type, { ...names, ...time, id: own })
    await api.remove(type, { ...by, ...time })
    assert.equal(await api.record(type, own), null)
    await api.write(type, { ...names, ...time, id: own })
    assert.equal((await api.record(type, own))?.id, own)
  })
}

test('a previous identifier of a record does not delete it', async () => {
  await api.write('product', {
    id: 'renamed',
    externalId: 'e1',
    sourceUpdatedAt: '2026-01-01',
    data: { sku: 'A' },
  })
  await api.write('product', {
    id: 'renamed',
    externalId: 'e2',
    sourceUpdatedAt: '2026-01-02',
    data: { sku: 'B' },
  })
  await api.remove('product', { externalId: 'e1', sourceUpdatedAt: '2026-01-03' })
  await api.remove('product', { data: { sku: 'A' }, sourceUpdatedAt: '2026-01-03' })
  assert.deepEqual((await api.record('product', 'renamed')).data, { sku: 'B' })
})

test('one delete by name deletes all records of that name and no others', async () => {
  for (const id of ['n-1', 'n-2']) await api.write('contact', { id, externalId: 'shared' })
  await api.write('contact', { id: 'n-3', externalId: 'other' })
  await api.write('order', { id: 'n-4', externalId: 'shared' })
  await api.remove('contact', { externalId: 'shared' })
  assert.equal(await api.record('contact', 'n-1'), null)
  assert.equal(await api.record('contact', 'n-2'), null)
  assert.equal((await api.record('contact', 'n-3')).id, 'n-3')
  assert.equal((await api.record('order', 'n-4')).id, 'n-4')
})

test('the id takes precedence over the other names', async () => {
  await api.write('product', { id: 'by-id', data: { sku: 'X' } })
  await api.write('product', { id: 'by-sku', data: { sku: 'Y' } })
  await api.remove('product', { id: 'by-id', externalId: 'nobody', data: { sku: 'Y' } })
  assert.equal(await api.record('product', 'by-id'), null)
  assert.equal((await api.record('product', 'by-sku')).id, 'by-sku')
})

test('a product whose sku is longer than a name keeps it, and is deleted by its other names', async () => {
  const sku = 'x'.repeat(5_000)
  await api.write('product', { id: 'long', externalId: 'long', data: { sku, code: 'long' } })
  assert.equal((await api.record('product', 'long')).data.sku, sku)
  await api.remove('product', { data: { sku, code: 'long' } })
  assert.equal(await api.record('product', 'long'), null)
})

test('a delete by another name has no id', async () => {
  const answer = await api.remove('product', { data: { sku: 'unnamed' } })
  assert.equal(answer.body.id, null)
  await api.server.settled()
  assert.equal((await api.get(answer.headers.get('location')!)).body.id, null)
})

test('a restored record has a new creation time', async () => {
  await api.write('contact', { id: 'back', sourceUpdatedAt: '2026-01-01' })
  const { createdAt } = await api.record('contact', 'back')
  await api.remove('contact', { id: 'back', sourceUpdatedAt: '2026-01-02' })
  await api.server.settled()
  await api.write('contact', { id: 'back', sourceUpdatedAt: '2026-01-03' })
  assert.ok((await api.record('contact', 'back')).createdAt > createdAt)
})

const refused: [what: string, type: Type, fields: Record<string, unknown>, pointers: string[]][] = [
  ['neither id nor externalId', 'contact', {}, ['/id']],
  ['a sku for a contact', 'contact', { data: { sku: 'S' } }, ['/id']],
  ['a code for an order', 'order', { data: { code: 'C' } }, ['/id']],
  ['an empty sku', 'product', { data: { sku: '' } }, ['/id']],
  ['a sku that is no name', 'product', { data: { sku: { a: 1 } } }, ['/id']],
  ['a sku that is longer than a name', 'product', { data: { sku: 'x'.repeat(256) } }, ['/data/sku']],
  ['a code that is longer than a name', 'product', { data: { code: '🦀'.repeat(256) } }, ['/data/code']],
  ['no time and no name', 'product', { sourceUpdatedAt: undefined }, ['/id', '/sourceUpdatedAt']],
  ['an id that is a number', 'product', { id: 5, data: { sku: 'S' } }, ['/id']],
  ['another type than the path', 'product', { entityType: 'order', id: 'x' }, ['/entityType']],
]

for (const [what, type, fields, pointers] of refused) {
  test(`a delete with ${what} is rejected, and nothing is enqueued`, async () => {
    const before = await api.entries()
    const answer = await api.delete(`/v1/${type}s`, aDelete(type, fields))
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(), pointers)
    assert.equal(await api.entries(), before)
  })
}
