import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isPrivateAddress, validateDestinationUrl } from '../../src/domain/destinations/addresses.ts'
import { isWanted, retryAfterMs, retryDelayMs } from '../../src/domain/destinations/destinations.ts'
import { openSender } from '../../src/pipeline/deliveries/send.ts'
import { startReceiver } from './receiver.ts'

test('addresses of private networks, loopback and link-local are recognized in every notation', () => {
  const closed = [
    ...['127.0.0.1', '127.8.9.1', '0.0.0.0', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.64.0.1', '100.127.255.254', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
    ...['::1', '::', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd12:3456::1', 'ff02::1', 'fec0::1'],
    ...['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:10.0.0.1', '::127.0.0.1', '[::1]'],
    ...['64:ff9b::a00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2001:0:1::1', '::ffff:0:7f00:1'],
    ...['not an address', ''],
  ]
  for (const address of closed) assert.equal(isPrivateAddress(address), true, address)
  for (const address of ['8.8.8.8', '100.63.0.1', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'])
    assert.equal(isPrivateAddress(address), false, address)
})

test('a URL of a private network is rejected in every notation', () => {
  const refused = [
    ...['http://example.com/', 'https://127.0.0.1/', 'https://2130706433/', 'https://0x7f.1/', 'https://0177.0.0.1/'],
    ...['https://[::1]/', 'https://[::ffff:10.0.0.1]/', 'https://localhost/', 'https://a.localhost./'],
    ...['https://user:pass@example.com/', 'ftp://example.com/', 'example.com', 'javascript:alert(1)'],
    ...['https://example.com:0/', 'https://example.com:65536/'],
  ]
  for (const url of refused) assert.notEqual(validateDestinationUrl(url, { allowPrivate: false }), null, url)
  assert.equal(validateDestinationUrl('https://example.com/hooks?a=b', { allowPrivate: false }), null)
  assert.equal(validateDestinationUrl('http://10.0.0.1:8080/', { allowPrivate: true }), null)
  for (const url of ['file:///etc/passwd', 'http://10.0.0.1:0/'])
    assert.notEqual(validateDestinationUrl(url, { allowPrivate: true }), null)
})

test('a host name that resolves to a private network at the time of sending is not connected to', async () => {
  const receiver = await startReceiver()
  const sender = openSender({ allowPrivate: false, mail: null, consoleUrl: null, now: () => new Date() })
  after(async () => {
    sender.close()
    await receiver.close()
  })
  const { port } = new URL(receiver.url)
  for (const host of ['localhost', '127.0.0.1', '[::ffff:127.0.0.1]']) {
    const url = `https://${host}:${port}/`
    for (const type of ['webhook', 'slack'] as const) {
      const message = { id: 'msg_1', type: 'kontor.test', at: new Date(), data: '{"message": "x"}' }
      const sent = await sender.send({ type, url, keys: [], headers: {} }, message)
      assert.equal(sent.isDelivered, false)
      assert.match(sent.error!, /private network/)
    }
  }
  assert.equal(receiver.received.length, 0)
})

test('an e-mail destination has exactly one plain address', () => {
  const check = (address: string) => validateDestinationUrl(`mailto:${address}`, { allowPrivate: false })
  for (const address of ['ops@example.com', "o'neil+alerts@mail.example.co", 'a@b.c'])
    assert.equal(check(address), null)
  for (const address of [
    ...['', 'ops', 'ops@', '@example.com', 'ops@localhost', 'a@b.c,d@e.f', 'a@b.c?bcc=d@e.f', 'a%0d%0aBcc:x@b.c'],
    ...['a@b.c\r\nBcc: d@e.f', 'Ops <ops@example.com>', '"a b"@c.de', 'a..b@c.de', `${'a'.repeat(65)}@b.c`, 'ö@b.de'],
  ])
    assert.match(check(address) ?? 'valid', /^contain one e-mail address/, address)
})

test('event types are exact names or prefixes, and filter only events', () => {
  const wanted = { what: ['events', 'records'] as const, eventTypes: ['order.*', 'signup'], alertRules: [] }
  const wants = (what: 'events' | 'records' | 'movements', type: string) => isWanted(wanted, { what, type })
  assert.equal(wants('events', 'event.order.paid'), true)
  assert.equal(wants('events', 'event.order'), false)
  assert.equal(wants('events', 'event.signup'), true)
  assert.equal(wants('events', 'event.signup.late'), false)
  assert.equal(wants('records', 'product.updated'), true)
  assert.equal(wants('movements', 'movement.new'), false)
})

test('Retry-After is honored up to one day', () => {
  const day = 86_400_000
  for (const [value, expected] of [
    ['120', 120_000],
    ['604800', day],
    ['999999999999', day],
    ['Fri, 31 Dec 9999 23:59:59 GMT', day],
    ['soon', 5_000],
  ] as const) {
    const asked = retryAfterMs(value, Date.parse('2026-01-01T00:00:00Z'))
    assert.equal(retryDelayMs(1, { retryAfterMs: asked, random: 0 }), expected, value)
  }
})
