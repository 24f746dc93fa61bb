import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { signingSecret, verifySignature } from '../../../src/domain/inbound/signatures.ts'
import { runs } from '../../long.ts'

const now = new Date('2025-01-01T12:00:00Z')
const nowS = now.getTime() / 1000
const body = Buffer.from('{"inbound_event_id":"a","event_type":"order.paid","payload":{"n":1.50}}')
const secret = 'whsec_c2VjcmV0'

const mac = (key: string, content: string | Buffer, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', key).update(content).digest(encoding)
const timed = (t: number | string, key = secret) => `t=${t},v1=${mac(key, `${t}.${body}`)}`

type Options = Partial<Omit<Parameters<typeof verifySignature>[0], 'secrets'> & { secrets: string[] }>

function verify(header: string | undefined, { secrets = [secret], ...options }: Options = {}) {
  const prepared = secrets.map(text => signingSecret(text))
  const result = verifySignature({ header, body, secrets: prepared, now, requireTimestamped: false, ...options })
  return result.ok ? result.format : result.code
}

test('every accepted format is verified over the raw bytes with the complete secret as key', () => {
  assert.equal(verify(timed(nowS)), 't,v1')
  assert.equal(verify(`sha256=${mac(secret, body)}`), 'sha256')
  assert.equal(verify(mac(secret, body)), 'hex')
  assert.equal(verify(mac(secret, body).toUpperCase()), 'hex')
  assert.equal(verify(mac(secret, body, 'base64')), 'base64')
  assert.equal(verify(`  ${mac(secret, body, 'base64')} `), 'base64')
})

test('one valid v1 among several, in any order, is enough', () => {
  const good = mac(secret, `${nowS}.${body}`)
  assert.equal(verify(`t=${nowS},v1=${'0'.repeat(64)},v1=${good}`), 't,v1')
  assert.equal(verify(`v1=${good}, t=${nowS}`), 't,v1')
  assert.equal(verify(`t=${nowS},v0=${good}`), 'signature_invalid')
  assert.equal(verify(`t=${nowS},v1=xyz,v1=${good}`), 't,v1')
})

test('during a rotation both secrets are valid', () => {
  for (const key of [secret, 'old']) assert.equal(verify(timed(nowS, key), { secrets: ['old', secret] }), 't,v1')
  assert.equal(verify(timed(nowS, 'third'), { secrets: ['old', secret] }), 'signature_invalid')
})

test('a timestamp is valid within the tolerance, before and after', () => {
  assert.equal(verify(timed(nowS - 300)), 't,v1')
  assert.equal(verify(timed(nowS + 300)), 't,v1')
  assert.equal(verify(timed(nowS - 301)), 'signature_expired')
  assert.equal(verify(timed(nowS + 301)), 'signature_expired')
  assert.equal(verify(timed(nowS - 9999, 'wrong')), 'signature_invalid')
})

test('if a timestamp is required, formats without one are rejected', () => {
  const options = { requireTimestamped: true }
  assert.equal(verify(timed(nowS), options), 't,v1')
  assert.equal(verify(`sha256=${mac(secret, body)}`, options), 'signature_invalid')
  assert.equal(verify(mac(secret, body), options), 'signature_invalid')
  assert.equal(verify(mac(secret, body, 'base64'), options), 'signature_invalid')
})

test('no header is a missing signature, any other header is an invalid one', () => {
  for (const header of [undefined, '', '   ']) assert.equal(verify(header), 'signature_missing')
  const good = mac(secret, `${nowS}.${body}`)
  for (const header of [
    ...['t=', 'v1=', 't=1', `v1=${good}`, `t=${nowS}`, `t=${nowS},v1=`, `t=${nowS},t=${nowS},v1=${good}`],
    ...[`t=${nowS}.0,v1=${mac(secret, `${nowS}.0.${body}`)}`, `t=-1,v1=${mac(secret, `-1.${body}`)}`],
    ...['sha256=', `sha1=${mac(secret, body)}`, `sha256=${mac(secret, body)}0`, 'x', '=', ','],
    ...[mac(secret, ''), mac('', body), mac('whsec_', body), mac(secret.slice(6), body)],
  ]) {
    assert.equal(verify(header), 'signature_invalid', header)
  }
})

test('without a valid secret every request is rejected', () => {
  assert.equal(verify(mac('', body), { secrets: [''] }), 'signature_invalid')
  assert.equal(verify(timed(nowS, ''), { secrets: [''] }), 'signature_invalid')
  assert.equal(verify(timed(nowS), { secrets: [] }), 'signature_invalid')
})

test('no header throws, and only signatures with the secret are accepted', () => {
  const piece = fc.oneof(
    fc.constantFrom('t=', 'v1=', 'sha256=', ',', '=', `${nowS}`, mac('other', body), mac('other', body, 'base64')),
    fc.string({ unit: 'binary' }),
  )
  const header = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(header, fc.boolean(), (text, requireTimestamped) => {
      assert.match(verify(text, { requireTimestamped }), /^signature_/)
    }),
  )
})

test('a changed byte of the body, the header or the secret is never accepted', () => {
  const headers = [timed(nowS), `sha256=${mac(secret, body)}`, mac(secret, body), mac(secret, body, 'base64')]
  fc.assert(
    fc.property(fc.constantFrom(...headers), fc.nat(), fc.integer({ min: 1, max: 255 }), (header, at, change) => {
      const bytes = Buffer.from(body)
      bytes[at % bytes.length]! ^= change
      assert.equal(verify(header, { body: bytes }), 'signature_invalid')
      const other = Buffer.from(secret)
      other[at % other.length]! ^= change
      assert.equal(verify(header, { secrets: [other.toString('latin1')] }), 'signature_invalid')

      const index = at % header.length
      const mutated =
        header.slice(0, index) + String.fromCharCode(header.charCodeAt(index) ^ change) + header.slice(index + 1)
      // upper-case hex digits and spaces around the header do not change the signature
      if (mutated.trim().toLowerCase() === header.toLowerCase() && !header.endsWith('=')) return
      assert.match(verify(mutated), /^signature_/)
    }),
    { numRuns: runs(2000) },
  )
})
