import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelOf, parseChannelRules } from '../../src/domain/customers/channels.ts'

test('the default rules name the channel of a source and medium', () => {
  const cases: [source: string, medium: string | null, channel: string][] = [
    ['google', 'cpc', 'paid_search'],
    ['Google', 'PPC', 'paid_search'],
    ['adwords', 'paidsearch', 'paid_search'],
    ['google', 'organic', 'organic_search'],
    ['google.com', 'referral', 'organic_search'],
    ['google.co.uk', 'referral', 'organic_search'],
    ['duckduckgo.com', 'referral', 'organic_search'],
    ['de.search.yahoo.com', 'referral', 'organic_search'],
    ['mail.google.com', 'referral', 'email'],
    ['newsletter', null, 'email'],
    ['customer.io', 'email', 'email'],
    ['facebook', 'cpc', 'social'],
    ['m.facebook.com', 'referral', 'social'],
    ['t.co', 'referral', 'social'],
    ['x', null, 'social'],
    ['partner', 'paid_social', 'social'],
    ['news.example', 'referral', 'referral'],
    ['partnerize', 'affiliate', 'referral'],
    ['direct', null, 'direct'],
    ['podcast', 'audio', 'other'],
    ['notgoogle.example', 'referral', 'referral'],
  ]
  for (const [source, medium, channel] of cases)
    assert.equal(channelOf({ source, medium, campaign: null }), channel, `${source} / ${medium}`)
})

test('rules of a tenant come first, in their order, and all their conditions must match', () => {
  const rules = parseChannelRules(
    JSON.stringify([
      { channel: 'partners', source: ['*.partner.example', 'PARTNER'], medium: ['referral', ''] },
      { channel: 'brand', source: ['google'], medium: ['cpc'], campaign: ['brand*', '*-brand', '*trademark*'] },
    ]),
  )!
  const of = (source: string, medium: string | null, campaign: string | null = null) =>
    channelOf({ source, medium, campaign }, rules)
  assert.equal(of('shop.partner.example', 'referral'), 'partners')
  assert.equal(of('partner', null), 'partners')
  assert.equal(of('partner', 'email'), 'email')
  assert.equal(of('google', 'cpc', 'Brand 2026'), 'brand')
  assert.equal(of('google', 'cpc', 'my-brand'), 'brand')
  assert.equal(of('google', 'cpc', 'a trademark b'), 'brand')
  assert.equal(of('google', 'cpc', 'shoes'), 'paid_search')
  assert.equal(of('google', 'cpc'), 'paid_search')
})

test('anything else than a list of rules is rejected', () => {
  assert.deepEqual(parseChannelRules('[]'), [])
  assert.deepEqual(parseChannelRules([]), [])
  const rule = { channel: 'a', source: ['b'] }
  const invalid: unknown[] = [
    'nonsense',
    null,
    {},
    [{}],
    [{ channel: 'a' }],
    [{ channel: 'A b', source: ['x'] }],
    [{ channel: 'a', source: [] }],
    [{ channel: 'a', source: 'x' }],
    [{ channel: 'a', source: [1] }],
    [{ channel: 'a', source: ['x*y*z'] }],
    [{ channel: 'a', source: ['x'], term: ['y'] }],
    [{ channel: 'a', source: ['x'.repeat(101)] }],
    Array.from({ length: 51 }, () => rule),
    [{ channel: 'a', source: Array.from({ length: 51 }, () => 'x') }],
  ]
  for (const value of invalid) assert.equal(parseChannelRules(value), undefined, JSON.stringify(value))
})
