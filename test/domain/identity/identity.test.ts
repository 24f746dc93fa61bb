import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NormalizedEvent } from '../../../src/domain/events/types.ts'
import {
  contactIdentifiers,
  eventIdentifiers,
  orderIdentifiers,
  parseEmail,
  parseId,
} from '../../../src/domain/identity/identifiers.ts'
import { cdpEvent, inboundEvent, trackEvent } from '../events/received.ts'

const names = (event: NormalizedEvent) => eventIdentifiers(event).map(({ kind, value }) => `${kind} ${value}`)

test('visitor, user, e-mail and contact of one event are linked', () => {
  assert.deepEqual(
    names(
      trackEvent({
        event_type: 'x',
        visitor: 'v1',
        user_id: 7,
        data: { email: ' Ada@X.org ', contact_id: 'c1' },
      }),
    ),
    ['visitor v1', 'user 7', 'email ada@x.org', 'contact c1'],
  )
  assert.deepEqual(names(trackEvent({ event_type: 'x' })), [])
})

test('an identify call identifies the person by its traits, wherever an SDK puts them', () => {
  const person = ['visitor a1', 'user u1', 'email ada@x.org']
  const base = { type: 'identify', anonymousId: 'a1', userId: 'u1' }
  assert.deepEqual(names(cdpEvent({ ...base, traits: { email: 'ada@x.org' } })), person)
  assert.deepEqual(names(cdpEvent({ ...base, context: { traits: { email: 'ada@x.org' } } })), person)
  assert.deepEqual(names(cdpEvent({ ...base, type: 'track', event: 'x', properties: { email: 'ada@x.org' } })), person)
})

test('traits of a group are not those of the person', () => {
  const group = {
    type: 'group',
    userId: 'u1',
    groupId: 'g',
    traits: { email: 'info@firm.org', contact_id: 'c9' },
  }
  assert.deepEqual(names(cdpEvent(group)), ['user u1'])
})

test('an alias links the previous id as a visitor id; with a server key also as a user id', () => {
  const alias = cdpEvent({ type: 'alias', userId: 'u2', previousId: 'old' })
  assert.deepEqual(names(alias), ['user u2', 'visitor old'])
  assert.deepEqual(names({ ...alias, trusted: true }), ['user u2', 'visitor old', 'user old'])
})

test('a user id that is an e-mail address is treated as an e-mail address', () => {
  assert.deepEqual(names(trackEvent({ event_type: 'x', user_id: 'Ada@X.org' })), ['user Ada@X.org', 'email ada@x.org'])
})

test('billing events identify their customer', () => {
  const object = { id: 'in_1', object: 'invoice', customer: 'cus_1', customer_email: 'ada@x.org', created: 1 }
  const stripe = { id: 'evt_1', object: 'event', type: 'invoice.paid', data: { object } }
  assert.deepEqual(names(inboundEvent(stripe)), ['contact cus_1', 'email ada@x.org'])
  const expanded = { ...object, customer: { id: 'cus_2', email: 'b@x.org' }, customer_email: null }
  assert.deepEqual(names(inboundEvent({ ...stripe, data: { object: expanded } })), ['contact cus_2', 'email b@x.org'])
  const canonical = {
    event_type: 'subscription.created',
    payload: { id: 's1', customer: 'c1', customer_email: 'a@b.c' },
  }
  assert.deepEqual(names(inboundEvent(canonical)), ['contact c1', 'email a@b.c'])
  const other = { event_type: 'ticket.opened', payload: { customer: 'c1', customer_email: 'a@b.c' } }
  assert.deepEqual(names(inboundEvent(other)), [])
})

test('placeholders never merge unrelated people', () => {
  for (const value of [
    ...['', '  ', '0', 'null', 'NULL', 'undefined', 'None', 'NaN', 'anonymous', 'Guest', 'unknown', 'true', 'n/a'],
    ...['[object Object]', '00000000-0000-0000-0000-000000000000', '(not set)', 'x'.repeat(256)],
    ...[0, null, undefined, {}, [], true],
  ]) {
    assert.equal(parseId(value), null, String(value))
  }
  for (const value of ['1', 'u1', 'nullable', 5, 'ada@x.org']) assert.equal(parseId(value), String(value))
  assert.deepEqual(names(trackEvent({ event_type: 'x', visitor: 'undefined', user_id: 'null' })), [])
})

test('an e-mail address has something on both sides of its @', () => {
  const bad = [
    '',
    '@',
    'a@',
    '@b',
    'a b@c',
    'null',
    'undefined',
    5,
    null,
    'A <a b@c>',
    'a@b,c@d',
    'null@null',
    '<@>',
    'mailto:',
    'mailto:%',
    `${'a'.repeat(2_000)}@b.c`,
  ]
  for (const value of bad) assert.equal(parseEmail(value), null, String(value))
})

test('e-mail addresses are normalized', () => {
  const forms = [
    ...[' ADA@Example.ORG ', 'ada@example.org.', 'ada@example.org ;', '"ada@example.org"', "'ada@example.org'"],
    ...['Ada <Ada@example.org>', '"Lovelace, Ada" <ada@example.org>', '<ada@example.org>', 'ada@example.org (Ada)'],
    ...['mailto:ada@example.org', 'MAILTO:Ada%40example.org?subject=x', 'Ada <mailto:ada@example.org>'],
    ...[
      'ada＠example.org',
      'ａｄａ@ｅｘａｍｐｌｅ.org',
      'ada\u200b@exam\u00adple.org',
      'ada@example。org',
      'ada@example.org\u00a0',
    ],
  ]
  for (const form of forms) assert.equal(parseEmail(form), 'ada@example.org', form)
  for (const form of ['ada@xn--mller-kva.example', 'ADA@MÜLLER.example', 'ada@mu\u0308ller.example.'])
    assert.equal(parseEmail(form), 'ada@müller.example', form)
  // different addresses, or not known to be the same
  for (const kept of ['ada+shop@example.org', 'a.da@example.org', 'ada@sub.example.org', 'ada@123', 'ada@localhost'])
    assert.equal(parseEmail(kept), kept)
})

test('contacts and orders identify their person', () => {
  assert.deepEqual(contactIdentifiers('c1', { email: 'Ada@x.org', user_id: 'u1' }), [
    { kind: 'contact', value: 'c1' },
    { kind: 'email', value: 'ada@x.org' },
    { kind: 'user', value: 'u1' },
  ])
  assert.deepEqual(orderIdentifiers({ customer_id: 'c1', email: 'ada@x.org', anonymousId: 'v1' }), [
    { kind: 'contact', value: 'c1' },
    { kind: 'email', value: 'ada@x.org' },
    { kind: 'visitor', value: 'v1' },
  ])
  assert.deepEqual(orderIdentifiers({ customer_id: 0 }), [])
})
