import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { occurredAt, parseTimestamp, timestampText } from '../../src/domain/time.ts'

test('ISO 8601 date-times are parsed, without a zone as UTC, a date as midnight UTC', () => {
  const cases: [string, string][] = [
    ['2024-05-06T07:08:09Z', '2024-05-06T07:08:09.000Z'],
    ['2024-05-06T07:08:09', '2024-05-06T07:08:09.000Z'],
    ['2024-05-06t07:08:09z', '2024-05-06T07:08:09.000Z'],
    ['2024-05-06T07:08', '2024-05-06T07:08:00.000Z'],
    ['2024-05-06T07:08+02:00', '2024-05-06T05:08:00.000Z'],
    ['2024-05-06', '2024-05-06T00:00:00.000Z'],
    ['2024-05-06T07:08:09.1Z', '2024-05-06T07:08:09.100Z'],
    ['2024-05-06T07:08:09,123456789Z', '2024-05-06T07:08:09.123Z'],
    ['2024-05-06T07:08:09.123+0530', '2024-05-06T01:38:09.123Z'],
    ['2024-05-06T07:08:09-08', '2024-05-06T15:08:09.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0099-12-31T00:00:00Z', '0099-12-31T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999Z'],
  ]
  for (const [text, expected] of cases) assert.equal(parseTimestamp(text)?.toISOString(), expected, text)
})

test('other values are no timestamps', () => {
  const cases = [
    ...['', 'now', '2024', '2024-05', '2024-5-6', '2024-02-30', '2023-02-29', '1900-02-29', '2024-13-01', '2024-00-10'],
    ...['2024-05-00', '2024-05-06T24:00:00Z', '2024-05-06T23:60:00Z', '2024-05-06T23:59:60Z', '2024-05-06 07:08:09'],
    ...['2024-05-06T07:08:09.1234567890Z', '2024-05-06T07:08:09+24:00', '2024-05-06T07:08:09+01:60', '2024-05-06Z'],
    ...['2024-05-06T07', '20240506T070809Z', '2024-W01-1', '0000-01-01', '0001-01-01T00:00:00+01:00', '10000-01-01'],
    ...['9999-12-31T23:59:59-01:00', '+002024-05-06T00:00:00Z', ' 2024-05-06', '2024-05-06\n', 'Mon, 06 May 2024'],
    ...[1714979289, 1714979289000, null, undefined, true, {}, [], new Date(0)],
  ]
  for (const value of cases) assert.equal(parseTimestamp(value), null, String(value))
})

test('every instant survives formatting and parsing', () => {
  const range = {
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  }
  fc.assert(
    fc.property(fc.date(range), date => {
      assert.equal(parseTimestamp(date.toISOString())?.getTime(), date.getTime())
      assert.equal(timestampText(date.toISOString()), date.toISOString().replace('Z', '000Z'))
    }),
  )
})

test('microseconds are kept as text', () => {
  assert.equal(timestampText('2024-05-06T07:08:09.123456789+02:00'), '2024-05-06T05:08:09.123456Z')
  assert.equal(timestampText('2024-05-06'), '2024-05-06T00:00:00.000000Z')
  assert.equal(timestampText('2024-02-30'), null)
})

test('an event has its own time, unless that is more than five minutes ahead', () => {
  const received = new Date('2024-05-06T12:00:00Z')
  const at = (text: string | null, sent: string | null = null) => {
    const { at, replaced } = occurredAt(text ? new Date(text) : null, sent ? new Date(sent) : null, received)
    return `${at.toISOString().slice(0, 19)}${replaced ? ' replaced' : ''}`
  }
  assert.equal(at(null), '2024-05-06T12:00:00')
  assert.equal(at('2020-01-01T00:00:00Z'), '2020-01-01T00:00:00')
  assert.equal(at('2024-05-06T12:05:00Z'), '2024-05-06T12:05:00')
  assert.equal(at('2024-05-06T12:05:00.001Z'), '2024-05-06T12:00:00 replaced')
  // a queue sent an hour later by a correct clock: its times are correct
  assert.equal(at('2024-05-06T11:00:00Z', '2024-05-06T11:59:59Z'), '2024-05-06T11:00:00')
  assert.equal(at('2024-05-06T11:00:00Z', '2024-05-06T11:55:00Z'), '2024-05-06T11:00:00')
  // a clock two hours ahead, and one a day behind
  assert.equal(at('2024-05-06T13:59:00Z', '2024-05-06T14:00:00Z'), '2024-05-06T11:59:00')
  assert.equal(at('2024-05-05T11:59:00Z', '2024-05-05T12:00:00Z'), '2024-05-06T11:59:00')
  // corrected and still ahead
  assert.equal(at('2024-05-06T15:00:00Z', '2024-05-06T14:00:00Z'), '2024-05-06T12:00:00 replaced')
  // corrected to a time before year 1
  assert.equal(at('0001-01-02T00:00:00Z', '2024-05-09T12:00:00Z'), '2024-05-06T12:00:00 replaced')
})
