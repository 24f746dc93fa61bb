import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Api, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

test('a product is found by its sku', async () => {
  await api.write('product', { id: 'p-1', data: { sku: 'MUG-01', name: 'Mug' } })
  assert.equal((await api.record('product', 'MUG-01')).id, 'p-1')
})

test('a product is found by its id if no product has that sku', async () => {
  await api.write('product', { id: 'p-2', data: { sku: 'MUG-02' } })
  assert.equal((await api.record('product', 'p-2')).id, 'p-2')
  await api.write('product', { id: 'no-sku' })
  assert.equal((await api.record('product', 'no-sku')).id, 'no-sku')
})

test('the sku of one product takes precedence over the id of another', async () => {
  await api.write('product', { id: 'x', data: { sku: 'y', is: 'x' } })
  await api.write('product', { id: 'y', data: { sku: 'z', is: 'y' } })
  assert.equal((await api.record('product', 'y')).data.is, 'x')
  assert.equal((await api.record('product', 'z')).data.is, 'y')
  await api.remove('product', { id: 'x' })
  assert.equal((await api.record('product', 'y')).data.is, 'y')
})

test('of several products with one sku the last changed one is found, in any order of arrival', async () => {
  await api.write('product', { id: 'tie-2', sourceUpdatedAt: '2026-01-02', data: { sku: 'TIE' } })
  await api.write('product', { id: 'tie-3', sourceUpdatedAt: '2026-01-03', data: { sku: 'TIE' } })
  await api.write('product', { id: 'tie-1', sourceUpdatedAt: '2026-01-01', data: { sku: 'TIE' } })
  assert.equal((await api.record('product', 'TIE')).id, 'tie-3')
  await api.remove('product', { id: 'tie-3' })
  assert.equal((await api.record('product', 'TIE')).id, 'tie-2')
})

test('a product that got another sku is not found by the old one', async () => {
  await api.write('product', { id: 'moved', sourceUpdatedAt: '2026-01-01', data: { sku: 'OLD' } })
  await api.write('product', { id: 'moved', sourceUpdatedAt: '2026-01-02', data: { sku: 'NEW' } })
  assert.equal(await api.record('product', 'OLD'), null)
  assert.equal((await api.record('product', 'NEW')).id, 'moved')
})

test('a sku that is a number is found by its digits', async () => {
  await api.write('product', { id: 'numeric', data: { sku: 4711 } })
  assert.equal((await api.record('product', '4711')).id, 'numeric')
})

test('skus are exact: case and spaces matter', async () => {
  await api.write('product', { id: 'exact', data: { sku: 'Ab c' } })
  assert.equal((await api.record('product', 'Ab c')).id, 'exact')
  for (const other of ['ab c', 'Ab c ', 'Abc']) assert.equal(await api.record('product', other), null)
})

test('contacts and orders are found by id only', async () => {
  await api.write('contact', { id: 'c', externalId: 'ext', data: { sku: 'S' } })
  assert.equal(await api.record('contact', 'S'), null)
  assert.equal(await api.record('contact', 'ext'), null)
  assert.equal((await api.record('contact', 'c')).id, 'c')
})
