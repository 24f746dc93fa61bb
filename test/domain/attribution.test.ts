import assert from 'node:assert/strict'
import { test } from 'node:test'
import { touchOf } from '../../src/domain/attribution.ts'
import { cdpEvent, trackEvent } from './received.ts'

const view = (data: object) => touchOf(trackEvent({ event_type: 'page_view', data }))
const page = (context: object, properties: object = {}) =>
  touchOf(cdpEvent({ type: 'page', context, properties }))
const campaign = { source: 'news', medium: 'email', campaign: 'spring sale' }
const url = 'https://shop.example/p?utm_source=news&utm_medium=email&utm_campaign=spring%20sale#top'

test('UTM parameters are found in the page address, the fields and the context', () => {
  assert.deepEqual(view({ page: url }), campaign)
  assert.deepEqual(view({ url }), campaign)
  assert.deepEqual(view({ utm_source: 'news', utm_medium: 'email', utm_campaign: 'spring sale' }), campaign)
  assert.deepEqual(page({ page: { url } }), campaign)
  assert.deepEqual(page({ page: { url: 'https://shop.example/p' } }, { url }), campaign)
  assert.deepEqual(
    page({ page: { search: '?utm_source=news&utm_medium=email&utm_campaign=spring+sale' } }),
    campaign,
  )
  assert.deepEqual(page({ campaign: { source: 'news', medium: 'email', name: 'spring sale' } }), campaign)
  assert.deepEqual(view({ page: '/p?utm_source=news' }), { source: 'news', medium: null, campaign: null })
})

test('a foreign referrer comes after UTM parameters', () => {
  assert.deepEqual(view({ page: url, referrer: 'https://google.com/' }), campaign)
  const referral = { source: 'google.com', medium: 'referral', campaign: null }
  assert.deepEqual(
    view({ page: 'https://shop.example/', referrer: 'https://www.Google.com:443/search?q=x' }),
    referral,
  )
  assert.deepEqual(page({ page: { url: 'https://shop.example/', referrer: 'https://google.com' } }), referral)
})

test('own pages, and what is no address, refer nobody', () => {
  for (const referrer of [
    'https://shop.example/a',
    'http://www.shop.example',
    '',
    'android-app://x',
    'x',
    5,
    null,
  ]) {
    assert.equal(view({ page: 'https://shop.example/b', referrer }), null, String(referrer))
  }
  assert.equal(view({}), null)
  assert.equal(view({ page: 'https://shop.example/?utm_source=' }), null)
  assert.equal(view({ page: {}, url: 5 }), null)
})
