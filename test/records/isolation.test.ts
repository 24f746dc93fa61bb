import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestTenant } from '../server.ts'
import { type Api, openApi, type Type } from './api.ts'

let api: Api
let other: TestTenant
before(async () => {
  api = await openApi()
  other = await api.server.anotherTenant('other')
})
after(() => api.close())

const asOther = () => ({ key: other.privateKey })

test('two tenants with the same ids, names and skus are isolated', async () => {
  const fields = { id: 'same', externalId: 'same', data: { sku: 'same', whose: 'mine' } }
  await api.write('product', fields)
  assert.equal(await api.record('product', 'same', asOther()), null)
  await api.write('product', { ...fields, data: { sku: 'same', whose: 'theirs' } }, asOther())
  assert.equal((await api.record('product', 'same')).data.whose, 'mine')
  assert.equal((await api.record('product', 'same', asOther())).data.whose, 'theirs')

  for (const by of [{ id: 'same' }, { externalId: 'same' }, { data: { sku: 'same' } }]) {
    await api.remove('product', by, asOther())
    assert.equal((await api.record('product', 'same')).data.whose, 'mine')
  }
  assert.equal(await api.record('product', 'same', asOther()), null)
})

test('a list contains only records of the tenant', async () => {
  await api.write('contact', { id: 'listed' })
  await api.server.settled()
  assert.deepEqual((await api.get('/v1/contacts', asOther())).body.results, [])
  assert.equal((await api.get('/v1/contacts')).body.results.length, 1)
})

test('the tenant comes from the key, never from the request', async () => {
  const answer = await api.post(
    `/v1/contacts?tenantId=${other.id}`,
    { entityType: 'contact', id: 'claimed', sourceUpdatedAt: '2026-01-01', tenantId: other.id, tenant_id: 2 },
    { headers: { 'x-tenant-id': other.id } },
  )
  assert.equal(answer.status, 202)
  assert.equal((await api.record('contact', 'claimed')).id, 'claimed')
  assert.equal(await api.record('contact', 'claimed', asOther()), null)
})

const scopes: [method: string, path: string, type: Type, scope: string][] = (
  ['product', 'contact', 'order'] as const
).flatMap((type): [string, string, Type, string][] => [
  ['POST', `/v1/${type}s`, type, `${type}s:write`],
  ['DELETE', `/v1/${type}s`, type, `${type}s:write`],
  ['POST', `/v1/${type}s/batch`, type, `${type}s:write`],
  ['GET', `/v1/${type}s/x`, type, `${type}s:read`],
  ['GET', `/v1/${type}s`, type, `${type}s:read`],
])

test('each route requires its scope, and a 403 says which', async () => {
  const all = [...new Set(scopes.map(([, , , scope]) => scope))]
  const keyWith = async (list: string[]) =>
    (await api.server.admin.keys.create({ tenant: api.server.tenant.id, kind: 'private', scopes: list })).key
  for (const scope of all) {
    const [only, without] = await Promise.all([keyWith([scope]), keyWith(all.filter(other => other !== scope))])
    for (const [method, path, type] of scopes.filter(([, , , needed]) => needed === scope)) {
      const record = { entityType: type, id: 'x', sourceUpdatedAt: '2026-01-01' }
      const body = method === 'GET' ? undefined : path.endsWith('batch') ? { records: [record] } : record
      assert.notEqual((await api.send(method, path, body, { key: only })).status, 403, `${method} ${path}`)
      const refused = await api.send(method, path, body, { key: without })
      assert.equal(refused.status, 403, `${method} ${path}`)
      assert.equal(refused.body.code, 'insufficient_scope')
      assert.ok(refused.body.detail.includes(scope))
    }
  }
})

test('a credential that is missing, unknown or of another kind is 401, and nothing is enqueued', async () => {
  const before = await api.entries()
  const body = JSON.stringify({ entityType: 'order', id: 'x', sourceUpdatedAt: '2026-01-01' })
  const { privateKey, trackingKey } = api.server.tenant
  for (const headers of [
    {},
    { authorization: 'Bearer private-unknown' },
    { authorization: `Bearer ${trackingKey}` },
    { 'x-api-key': trackingKey },
    { authorization: `Basic ${privateKey}` },
    { authorization: `Bearer ${privateKey}`, 'x-api-key': other.privateKey },
  ] as Record<string, string>[]) {
    const answer = await api.server.request('/v1/orders', { method: 'POST', headers, body })
    assert.equal(answer.status, 401)
    assert.ok(answer.headers.get('www-authenticate'))
    assert.equal(answer.headers.get('content-type'), 'application/problem+json')
  }
  assert.equal(await api.entries(), before)
  for (const headers of [
    { 'x-api-key': privateKey },
    { authorization: `Bearer ${privateKey}`, 'x-api-key': privateKey },
    { authorization: `bearer ${privateKey}` },
  ] as Record<string, string>[]) {
    assert.equal((await api.server.request('/v1/orders', { method: 'POST', headers, body })).status, 202)
  }
})
