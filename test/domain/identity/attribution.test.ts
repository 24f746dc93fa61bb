import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isEarlierTouch, readTouch } from '../../../src/domain/identity/attribution.ts'
import { cdpEvent, trackEvent } from '../events/received.ts'

const view = (data: object) => readTouch(trackEvent({ event_type: 'page_view', data }))
const page = (context: object, properties: object = {}) => readTouch(cdpEvent({ type: 'page', context, properties }))
const campaign = { source: 'news', medium: 'email', campaign: 'spring sale', direct: false }
const direct = { source: 'direct', medium: null, campaign: null, direct: true }
const url = 'https://shop.example/p?utm_source=news&utm_medium=email&utm_campaign=spring%20sale#top'

test('UTM parameters are found in the page address, the fields and the context', () => {
  assert.deepEqual(view({ page: url }), campaign)
  assert.deepEqual(view({ url }), campaign)
  assert.deepEqual(view({ utm_source: 'news', utm_medium: 'email', utm_campaign: 'spring sale' }), campaign)
  assert.deepEqual(page({ page: { url } }), campaign)
  assert.deepEqual(page({ page: { url: 'https://shop.example/p' } }, { url }), campaign)
  assert.deepEqual(page({ page: { search: '?utm_source=news&utm_medium=email&utm_campaign=spring+sale' } }), campaign)
  assert.deepEqual(page({ campaign: { source: 'news', medium: 'email', name: 'spring sale' } }), campaign)
  assert.deepEqual(view({ page: '/p?utm_source=news' }), {
    source: 'news',
    medium: null,
    campaign: null,
    direct: false,
  })
})

test('UTM parameters take precedence over an external referrer', () => {
  assert.deepEqual(view({ page: url, referrer: 'https://google.com/' }), campaign)
  const referral = { source: 'google.com', medium: 'referral', campaign: null, direct: false }
  assert.deepEqual(view({ page: 'https://shop.example/', referrer: 'https://www.Google.com:443/search?q=x' }), referral)
  assert.deepEqual(page({ page: { url: 'https://shop.example/', referrer: 'https://google.com' } }), referral)
})

test('a page view without a source is direct: own pages and invalid addresses are no referrers', () => {
  for (const referrer of ['https://shop.example/a', 'http://www.shop.example', '', 'android-app://x', 'x', 5, null]) {
    assert.deepEqual(view({ page: 'https://shop.example/b', referrer }), direct, String(referrer))
  }
  assert.deepEqual(view({}), direct)
  assert.deepEqual(view({ page: 'https://shop.example/?utm_source=' }), direct)
  assert.deepEqual(view({ page: {}, url: 5 }), direct)
  assert.deepEqual(page({}), direct)
  assert.deepEqual(readTouch(cdpEvent({ type: 'screen', name: 'Home' })), direct)
})

test('an event other than a page view is a touch only if it has a source', () => {
  assert.equal(readTouch(trackEvent({ event_type: 'signup', data: { page: 'https://shop.example/' } })), null)
  assert.equal(readTouch(cdpEvent({ type: 'identify', userId: 'u' })), null)
  assert.deepEqual(readTouch(trackEvent({ event_type: 'signup', data: { page: url } })), campaign)
})

test('the first touch: one with a source before a direct one, then the earlier, then the smaller id', () => {
  const at = (second: number, isDirect: boolean, eventId = 'b') => ({
    ...(isDirect ? direct : campaign),
    ...{ kind: 'verified' as const, occurredAt: new Date(second * 1000), receivedAt: new Date(0) },
    eventId,
  })
  assert.ok(isEarlierTouch(at(9, false), at(1, true)))
  assert.ok(!isEarlierTouch(at(1, true), at(9, false)))
  assert.ok(isEarlierTouch(at(1, true), at(2, true)))
  assert.ok(isEarlierTouch(at(1, false), at(2, false)))
  assert.ok(isEarlierTouch(at(1, false, 'a'), at(1, false, 'b')))
  assert.ok(!isEarlierTouch(at(1, false, 'b'), at(1, false, 'b')))
})
