import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()

test('a tenant is found by its id and by its name', async () => {
  const { tenants } = opened.admin
  const created = await tenants.create({ name: '  acme ' })
  assert.match(created.id, /^ten_\d+$/)
  assert.equal(created.name, 'acme')
  assert.deepEqual(await tenants.show(created.id), created)
  assert.deepEqual(await tenants.show('acme'), created)
  assert.ok((await tenants.list()).some(({ id }) => id === created.id))
})

test('tenant names are unique', async () => {
  const { tenants } = opened.admin
  await tenants.create({ name: 'twice' })
  await assert.rejects(tenants.create({ name: 'twice' }), { kind: 'conflict', code: 'tenant_exists' })
})

test('a name that is empty, too long, unprintable or looks like an id is rejected', async () => {
  for (const name of ['', '  ', 'x'.repeat(101), 'a\u0000b', 'a\nb', '\ud800', 'ten_7'])
    await assert.rejects(opened.admin.tenants.create({ name }), { kind: 'invalid' }, JSON.stringify(name))
})

test('an unknown tenant is not found', async () => {
  await assert.rejects(opened.admin.tenants.show('unknown'), { kind: 'not_found', code: 'tenant_not_found' })
})

test('conversion types are set without duplicates, and reset to the default list', async () => {
  const { tenants } = opened.admin
  const { id } = await tenants.create({ name: 'converting' })
  const set = await tenants.update(id, { conversion_types: ['purchase', 'demo.booked', 'purchase'] })
  assert.deepEqual(set.conversion_types, ['purchase', 'demo.booked'])
  assert.deepEqual((await tenants.show(id)).conversion_types, ['purchase', 'demo.booked'])
  await tenants.update(id, { conversion_types: null })
  assert.equal((await tenants.show(id)).conversion_types, null)
  await assert.rejects(tenants.update(id, { conversion_types: ['good', '', 'x'.repeat(201)] }), (error: unknown) => {
    assert.deepEqual(
      (error as { errors: { pointer: string }[] }).errors.map(({ pointer }) => pointer),
      ['/conversion_types/1', '/conversion_types/2'],
    )
    return true
  })
})

test('the maximum age of events is set in days, and the other settings stay unchanged', async () => {
  const { tenants } = opened.admin
  const { id, events_floor } = await tenants.create({ name: 'with a floor' })
  assert.equal(events_floor, null)
  await tenants.update(id, { conversion_types: ['purchase'] })
  for (const floor of ['1d', '36500d', 'off', null])
    assert.equal((await tenants.update(id, { events_floor: floor })).events_floor, floor)
  assert.deepEqual((await tenants.show(id)).conversion_types, ['purchase'])
  for (const floor of ['', '0d', '-1d', '36501d', '99999d', '1.5d', '365', '365D', 'on', '\u0000', '1d\n'])
    await assert.rejects(tenants.update(id, { events_floor: floor }), { kind: 'invalid' }, floor)
})
