import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'

// The browser finds it in the import map.
registerHooks({
  resolve: (specifier, context, next) =>
    next(
      specifier === 'kontor-time-zone' ? new URL('../../src/domain/time-zone.ts', import.meta.url).href : specifier,
      context,
    ),
})
const { comparisonOf, countDays, levelTime, PRESETS, resolvePeriod, startOfStep, stepPeriod } = await import(
  '../../console/period.ts'
)
const { matchSteps, toSteps } = await import('../../console/series.ts')

const NOW = new Date('2026-11-17T10:30:00Z')
const BERLIN = 'Europe/Berlin'
const daysOf = (name: string | null) => {
  const { from, to } = resolvePeriod(name, NOW, BERLIN)
  return [from, to]
}

test('presets are days in the time zone of the tenant', () => {
  assert.deepEqual(daysOf('today'), ['2026-11-17', '2026-11-17'])
  assert.deepEqual(daysOf('7d'), ['2026-11-11', '2026-11-17'])
  assert.deepEqual(daysOf('month'), ['2026-11-01', '2026-11-17'])
  assert.deepEqual(daysOf('last_month'), ['2026-10-01', '2026-10-31'])
  assert.deepEqual(daysOf('quarter'), ['2026-10-01', '2026-11-17'])
  assert.deepEqual(daysOf('last_quarter'), ['2026-07-01', '2026-09-30'])
  assert.deepEqual(daysOf('12m'), ['2025-12-01', '2026-11-17'])
  const lateEvening = new Date('2026-11-17T23:30:00Z')
  assert.equal(resolvePeriod('today', lateEvening, BERLIN).to, '2026-11-18')
  assert.equal(resolvePeriod('2026-07-01..2026-07-31', NOW, BERLIN).since!.toISOString(), '2026-06-30T22:00:00.000Z')
  assert.equal(resolvePeriod('2026-07-01..2026-07-31', NOW, BERLIN).until.toISOString(), '2026-07-31T21:59:59.999Z')
})

test('a period with unknown or impossible days is the default; reversed days are put in order', () => {
  for (const name of [
    null,
    '',
    'nonsense',
    '2026-02-30..2026-03-01',
    '9999-99-99..2026-01-01',
    '0001-01-01..2026-01-01',
    '2100-01-01..2100-01-31',
  ])
    assert.deepEqual(daysOf(name), ['2026-10-19', '2026-11-17'], String(name))
  assert.deepEqual(daysOf('2026-03-05..2026-03-01'), ['2026-03-01', '2026-03-05'])
})

test('today is compared with the same hours of yesterday', () => {
  const other = comparisonOf(resolvePeriod('today', NOW, BERLIN), 'previous', BERLIN)!
  assert.deepEqual([other.from, other.to], ['2026-11-16', '2026-11-16'])
  assert.equal(other.until.toISOString(), '2026-11-16T10:30:00.000Z')
})

test('a month in progress is compared with as many days of the month before, a whole one with the whole', () => {
  const compared = (name: string, how: 'previous' | 'year' = 'previous') => {
    const other = comparisonOf(resolvePeriod(name, NOW, BERLIN), how, BERLIN)!
    return [other.from, other.to, other.until.toISOString()]
  }
  assert.deepEqual(compared('month'), ['2026-10-01', '2026-10-17', '2026-10-17T09:30:00.000Z'])
  assert.deepEqual(compared('last_month'), ['2026-09-01', '2026-09-30', '2026-09-30T21:59:59.999Z'])
  assert.deepEqual(compared('2026-02-01..2026-02-28'), ['2026-01-01', '2026-01-31', '2026-01-31T22:59:59.999Z'])
  assert.deepEqual(compared('2026-03-10..2026-03-12'), ['2026-03-07', '2026-03-09', '2026-03-09T22:59:59.999Z'])
  assert.deepEqual(compared('30d', 'year').slice(0, 2), ['2025-10-19', '2025-11-17'])
  assert.equal(comparisonOf(resolvePeriod('all', NOW, BERLIN), 'previous', BERLIN), null)
  assert.equal(comparisonOf(resolvePeriod('7d', NOW, BERLIN), 'none', BERLIN), null)
})

test('MRR is compared with the moment before the period, or with the same moment of another month', () => {
  const compared = (name: string, how: 'previous' | 'year' = 'previous') => {
    const period = resolvePeriod(name, NOW, BERLIN)
    return levelTime(period, comparisonOf(period, how, BERLIN)!).toISOString()
  }
  assert.equal(compared('today'), '2026-11-16T22:59:59.999Z')
  assert.equal(compared('30d'), '2026-10-18T21:59:59.999Z')
  assert.equal(compared('last_month'), '2026-09-30T21:59:59.999Z')
  assert.equal(compared('month'), '2026-10-17T09:30:00.000Z')
  assert.equal(compared('30d', 'year'), '2025-11-17T10:30:00.000Z')
})

test('stepping back and forward returns to the same day, and never starts in the future', () => {
  const day = fc.date({ min: new Date('2000-01-01'), max: new Date('2026-11-17'), noInvalidDate: true })
  fc.assert(
    fc.property(day, fc.integer({ min: 0, max: 400 }), (start, length) => {
      const from = start.toISOString().slice(0, 10)
      const to = new Date(start.getTime() + length * 86_400_000).toISOString().slice(0, 10)
      const period = resolvePeriod(`${from}..${to}`, NOW, 'UTC')
      const before = stepPeriod(period, -1, '2026-11-17')!
      const again = stepPeriod(resolvePeriod(before, NOW, 'UTC'), 1, '2026-11-17')
      // A span of days before it can happen to be whole months, which are as long as other months.
      assert.equal(again!.split('..')[0], from)
    }),
  )
  assert.equal(stepPeriod(resolvePeriod('today', NOW, BERLIN), 1, '2026-11-17'), null)
})

test('every preset has a comparison of the same length, give or take the lengths of months', () => {
  for (const { name } of PRESETS.filter(preset => preset.name !== 'all')) {
    const period = resolvePeriod(name, NOW, BERLIN)
    const other = comparisonOf(period, 'previous', BERLIN)!
    const difference = countDays(period.from!, period.to) - countDays(other.from!, other.to)
    assert.ok(Math.abs(difference) <= 3, `${name}: ${difference}`)
    assert.ok(other.until.getTime() < period.since!.getTime(), name)
  }
})

test('the steps of a plot start on the first day of their month or on Monday, in the time zone of the tenant', () => {
  assert.equal(startOfStep('2026-11-17', 'month'), '2026-11-01')
  assert.equal(startOfStep('2026-11-17', 'week'), '2026-11-16')
  // Midnight of 1 November in Berlin is 31 October in UTC.
  const rows = [
    { at: '2026-10-30T23:00:00.000Z', count: 1 },
    { at: '2026-10-31T23:00:00.000Z', count: 2 },
    { at: '2026-11-01T23:00:00.000Z', count: 3 },
  ]
  const steps = toSteps(rows, { step: 'month', zone: BERLIN, amountIn: ({ count }) => count })
  assert.deepEqual(steps.days, ['2026-10-01', '2026-11-01'])
  assert.deepEqual(steps.values, [1, 5])
  assert.equal(steps.moments[1]!.toISOString(), '2026-10-31T23:00:00.000Z')
})

test('hours are compared with the same time of day, also on the days on which the clock changes', () => {
  const hoursOf = (from: string, until: string) => {
    const [start, end] = [Date.parse(from), Date.parse(until)]
    const rows = Array.from({ length: (end - start) / 3_600_000 }, (_, hour) => ({
      at: new Date(start + hour * 3_600_000).toISOString(),
    }))
    return toSteps(rows, { step: 'hour', zone: BERLIN, amountIn: () => 1 })
  }
  const saturday = hoursOf('2026-10-23T22:00:00Z', '2026-10-24T22:00:00Z')
  const repeated = hoursOf('2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z')
  const monday = hoursOf('2026-10-25T23:00:00Z', '2026-10-26T23:00:00Z')
  const missing = hoursOf('2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z')
  const hours = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)
  assert.deepEqual(matchSteps(repeated, saturday, 'hour', BERLIN), [...hours(0, 2), ...hours(2, 23)])
  assert.deepEqual(matchSteps(monday, repeated, 'hour', BERLIN), [...hours(0, 2), ...hours(4, 24)])
  assert.deepEqual(matchSteps(missing, saturday, 'hour', BERLIN), [0, 1, ...hours(3, 23)])
  assert.deepEqual(matchSteps(saturday, missing, 'hour', BERLIN), [0, 1, -1, ...hours(2, 22)])
  assert.deepEqual(matchSteps(monday, repeated, 'day', BERLIN), hours(0, 23))
})
