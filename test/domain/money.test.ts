import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decimalText,
  divideHalfUp,
  knownCurrency,
  MAX_MINOR,
  majorText,
  minorDigits,
  multiplyDecimals,
  parseDecimal,
  sumDecimals,
  toMajor,
  toMinor,
} from '../../src/domain/money.ts'

test('a currency code is accepted in upper or lower case, and only while it is in use', () => {
  for (const code of ['eur', 'Usd', ' JPY ', 'KWD', 'CLF', 'XOF', 'HRK']) {
    assert.equal(knownCurrency(code), code.trim().toUpperCase())
  }
  for (const code of ['XXX', 'XTS', 'XAU', 'DEM', 'ZZZ', 'EU', 'EURO', '', null, undefined, 978, {}, 'constructor']) {
    assert.equal(knownCurrency(code), null)
  }
})

test('minor units are those of ISO 4217, also where CLDR differs', () => {
  const expected = {
    0: 'JPY KRW ISK UGX CLP VND XAF XOF XPF',
    2: 'EUR USD HUF TWD IDR COP LBP PKR MGA CZK',
    3: 'KWD BHD IQD JOD LYD OMR TND',
    4: 'CLF UYW',
  }
  for (const [digits, codes] of Object.entries(expected)) {
    for (const code of codes.split(' ')) assert.equal(minorDigits(code), Number(digits), code)
  }
})

const amounts: [unknown, string, number | null][] = [
  [49.9, 'EUR', 4990],
  ['49.90', 'EUR', 4990],
  [0.1 + 0.2, 'EUR', 30],
  [1.005, 'EUR', 101],
  ['1.005', 'EUR', 101],
  ['1.0049999999999999999', 'EUR', 100],
  [-1.005, 'EUR', -101],
  [' 12 ', 'JPY', 12],
  ['12.5', 'JPY', 13],
  [1.2345, 'KWD', 1235],
  ['.5', 'USD', 50],
  ['5.', 'USD', 500],
  ['+7', 'USD', 700],
  [1e-7, 'USD', 0],
  ['1.5e3', 'USD', 150_000],
  [0, 'USD', 0],
  [10n, 'USD', 1000],
  [MAX_MINOR / 100, 'USD', MAX_MINOR],
  [MAX_MINOR / 100 + 1, 'USD', null],
  [1e300, 'USD', null],
  ['1e999', 'USD', null],
  ['9'.repeat(50), 'USD', null],
]
for (const [amount, currency, minor] of amounts) {
  test(`${typeof amount} ${String(amount).slice(0, 30)} ${currency} is ${minor} minor units`, () => {
    assert.equal(toMinor(amount, currency), minor)
  })
}

test('an invalid amount is null, never a guess', () => {
  for (const garbage of [null, undefined, '', ' ', '.', '-', 'abc', '1,234.50', '12 EUR', '0x10', 'NaN', NaN]) {
    assert.equal(toMinor(garbage, 'EUR'), null, String(garbage))
  }
  for (const garbage of [Infinity, true, {}, [], [5], () => 5]) assert.equal(toMinor(garbage, 'EUR'), null)
})

test('minor units are converted to the shortest exact number', () => {
  assert.equal(JSON.stringify(toMajor(4990, 'EUR')), '49.9')
  assert.equal(JSON.stringify(toMajor(1, 'EUR')), '0.01')
  assert.equal(JSON.stringify(toMajor(1235, 'KWD')), '1.235')
  assert.equal(JSON.stringify(toMajor(500, 'JPY')), '500')
  assert.equal(JSON.stringify(toMajor(-5, 'USD')), '-0.05')
  assert.equal(majorText(4990, 'EUR'), '49.90')
  assert.equal(majorText(-5n, 'KWD'), '-0.005')
  assert.equal(majorText(7, 'JPY'), '7')
})

test('every amount survives conversion to major units and back', () => {
  const currency = fc.constantFrom('EUR', 'JPY', 'KWD', 'CLF')
  fc.assert(
    fc.property(fc.integer({ min: -MAX_MINOR, max: MAX_MINOR }), currency, (minor, code) => {
      assert.equal(toMinor(toMajor(minor, code), code), minor)
      assert.equal(toMinor(majorText(minor, code), code), minor)
    }),
  )
})

test('decimal text has no exponent and no unnecessary zeros', () => {
  const texts = {
    '49.90': '49.9',
    '1e3': '1000',
    '0.00': '0',
    '-0.0': '0',
    '1.5e-7': '0.00000015',
    '007': '7',
  }
  for (const [given, text] of Object.entries(texts)) assert.equal(decimalText(parseDecimal(given)!), text)
  assert.equal(decimalText(parseDecimal(1e21)!), `1${'0'.repeat(21)}`)
})

test('halves are rounded up', () => {
  assert.equal(divideHalfUp(1n, 2n), 1n)
  assert.equal(divideHalfUp(5n, 12n), 0n)
  assert.equal(divideHalfUp(7n, 12n), 1n)
  assert.equal(divideHalfUp(-1n, 2n), -1n)
})

test('sums and products of decimals are exact, also of more amounts than a call has arguments', () => {
  const decimals = (...values: unknown[]) => values.map(value => parseDecimal(value)!)
  assert.equal(decimalText(sumDecimals([])), '0')
  assert.equal(decimalText(sumDecimals(decimals('0.1', '0.2', '-1', 3))), '2.3')
  assert.equal(decimalText(sumDecimals(Array(500_000).fill(parseDecimal('0.01')))), '5000')
  const [a, b] = decimals('1.50', '-0.3') as [never, never]
  assert.equal(decimalText(multiplyDecimals(a, b)), '-0.45')
})
