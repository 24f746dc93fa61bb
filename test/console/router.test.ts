import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { link, linkForAnyTenant, linkWith, parseRoute } from '../../console/router.ts'

test('an address is parsed to its route, or to null', () => {
  const parseRouteName = (hash: string) => parseRoute(hash)?.name ?? null
  assert.equal(parseRouteName(''), 'overview')
  assert.equal(parseRouteName('#/'), 'overview')
  assert.equal(parseRouteName('#/events'), 'events')
  assert.equal(parseRouteName('#/events/lookup?id=1'), 'eventLookup')
  assert.equal(parseRouteName('#/sources/new'), 'newSource')
  assert.equal(parseRouteName('#/sources/src_1'), 'source')
  assert.equal(parseRouteName('#/events/1/2'), null)
  assert.equal(parseRouteName('#/nothing'), null)
  assert.deepEqual(parseRoute('#/records')?.params, { type: 'products' })
  assert.deepEqual(parseRoute('#/connect')?.params, { sender: 'curl' })
  assert.equal(parseRouteName('#/events/%E0%A4%A'), 'event', 'what cannot be decoded is taken as it is')
})

test('a link with any id is parsed back to that id', () => {
  const any = fc.string({ unit: 'grapheme', minLength: 1 })
  fc.assert(
    fc.property(any, any, (id, filter) => {
      const route = parseRoute(link('record', { type: 'orders', id }, { filter, none: null, empty: '' }))
      assert.deepEqual({ ...route?.params }, { type: 'orders', id })
      assert.deepEqual([...route!.query], [['filter', filter]])
    }),
  )
})

test('changing filters keeps the rest of the address', () => {
  const route = parseRoute('#/sources/src_1?outcome=dropped&page=2')!
  assert.equal(linkWith(route, { page: 3 }), '#/sources/src_1?outcome=dropped&page=3')
  assert.equal(linkWith(route, { outcome: null }), '#/sources/src_1?page=2')
  assert.equal(linkWith(parseRoute('#/events')!, { since: 'x' }), '#/events?since=x')
})

test('for another tenant an object becomes its list, and a list loses its filters', () => {
  const forAnother = (hash: string) => linkForAnyTenant(parseRoute(hash)!)
  assert.equal(forAnother('#/events/0190?x=1'), '#/events')
  assert.equal(forAnother('#/records/orders/o-1'), '#/records/orders')
  assert.equal(forAnother('#/subscriptions/account?customer=c-1'), '#/subscriptions')
  assert.equal(forAnother('#/subscriptions/movements?month=2026-01&page=3'), '#/subscriptions/movements')
  assert.equal(forAnother('#/connect/stripe'), '#/connect/stripe')
  assert.equal(forAnother('#/sources/new'), '#/sources/new')
})
