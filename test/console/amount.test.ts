import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Amount,
  absolute,
  ExactNumber,
  isNegative,
  isZero,
  negate,
  parseAmount,
  parseJson,
  sumAmounts,
  toAmount,
  toNumber,
} from '../../console/amount.ts'
import { money, number, percent, plural, signedMoney, text } from '../../console/format.ts'

const LONG = '12345678901234567890'

/** The digits are the same in every locale. */
const readDigits = (shown: string) => shown.replace(/[^\d]/g, '')

test('a parsed number keeps all its digits', () => {
  const body = parseJson(`{"a": 0.6629213483146067, "b": ${LONG}, "c": 49.90, "d": 1e3, "e": -0.10000000000000000001}`)
  const { a, b, c, d, e } = body as Record<string, Amount>
  assert.equal(a, 0.6629213483146067, 'what a double holds is a double, however long it is')
  assert.deepEqual([c, d], [49.9, 1000])
  assert.ok(b instanceof ExactNumber)
  assert.ok(e instanceof ExactNumber)
  assert.equal(
    JSON.stringify(body),
    `{"a":0.6629213483146067,"b":${LONG},"c":49.9,"d":1000,"e":-0.10000000000000000001}`,
  )
})

test('a double from the server stays a double', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), double => {
      assert.equal(parseJson(JSON.stringify(double)), double === 0 ? 0 : double)
    }),
  )
})

test('money has the decimals of its currency and all digits before them', () => {
  const digits = (amount: Amount, currency: string) => readDigits(money(amount, currency))
  assert.equal(digits(1234, 'JPY'), '1234')
  assert.equal(digits(1.5, 'KWD'), '1500')
  assert.equal(digits(49.9, 'EUR'), '4990')
  const long = toAmount(LONG)
  assert.equal(digits(long, 'JPY'), LONG)
  assert.equal(digits(long, 'KWD'), `${LONG}000`)
  assert.equal(digits(toAmount(`${LONG}.25`), 'EUR'), `${LONG}25`)
  assert.equal(readDigits(number(long)), LONG)
  assert.match(money(long, 'no currency'), /no currency$/)
  assert.equal(money(null, 'EUR'), '–')
  assert.equal(text(long), LONG)
})

test('a sign precedes the amount, except for zero', () => {
  for (const currency of ['EUR', 'JPY', 'KWD']) {
    assert.match(signedMoney(toAmount(LONG), currency), /^\+/)
    assert.match(signedMoney(toAmount(`-${LONG}`), currency), /^−[^-]*$/)
    assert.equal(readDigits(signedMoney(toAmount(`-${LONG}`), 'JPY')), LONG)
    assert.equal(signedMoney(0, currency), money(0, currency))
  }
})

test('numbers of any length can be formatted as shares and counts, and plotted', () => {
  for (const written of ['0.5', '0.66292134831460671234', LONG, `-${LONG}`, '1e400', '0.00000000000000000001']) {
    const amount = toAmount(written)
    for (const show of [percent, number]) assert.doesNotMatch(show(amount), /NaN|undefined|object/)
    assert.equal(typeof toNumber(amount), 'number')
    assert.match(plural(amount, 'row'), /rows$/)
  }
  assert.equal(readDigits(percent(toAmount('0.66292134831460671234'))), '663')
})

test('amounts received as strings are numbers; other strings are not', () => {
  assert.equal(parseAmount('49.90'), 49.9)
  assert.equal(parseAmount(12), 12)
  assert.equal(String(parseAmount(LONG)), LONG)
  for (const none of ['', 'twelve', '1,5', null, undefined, {}, [], true, '0x10', 'Infinity'])
    assert.equal(parseAmount(none), null, String(none))
})

test('sums are exact to the last digit', () => {
  assert.equal(sumAmounts([0.1, 0.2]), 0.3)
  assert.equal(sumAmounts([]), 0)
  assert.equal(String(sumAmounts([toAmount(LONG), 1, 0.01])), '12345678901234567891.01')
  assert.equal(sumAmounts([toAmount(LONG), toAmount(`-${LONG}`)]), 0)
  assert.equal(sumAmounts([1e300, -1e300, 5]), 5)
  assert.equal(sumAmounts([toAmount('1e999999999'), 1]), Number.POSITIVE_INFINITY)
})

test('an amount and its negative cancel out', () => {
  const decimal = fc.tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.integer({ min: 0, max: 20 }))
  fc.assert(
    fc.property(decimal, ([units, places]) => {
      const amount = toAmount(`${units}e-${places}`)
      assert.ok(isZero(sumAmounts([amount, negate(amount)])))
      assert.equal(isNegative(absolute(amount)), false)
      assert.equal(isNegative(amount), units < 0n)
    }),
  )
})
