import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFile, readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileStorage } from '../../../sdk/js/src/file.ts'
import { Kontor, type KontorError, type TrackedEvent } from '../../../sdk/js/src/index.ts'
import { temporaryDirectory } from '../../cli/kontor.ts'
import { rowsOf } from '../../events/rows.ts'
import { eventually } from '../../eventually.ts'
import { sharedServer, type TestServer } from '../../server.ts'
import { notePauses, scriptedService } from './scripted.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const trackingKey = 'trk_x'
const view = (n: number): TrackedEvent => ({ event_type: 'page_view', data: { n } })
const views = (count: number) => Array.from({ length: count }, (_, n) => view(n))

/** A client that records its error reports. */
function open(url: string, options: Partial<ConstructorParameters<typeof Kontor>[0]> = {}) {
  const reported: KontorError[] = []
  const kontor = new Kontor({
    url,
    trackingKey,
    maxRetries: 0,
    onError: error => reported.push(error),
    ...options,
  })
  return { kontor, reported }
}

/** A rejection with the events that were not delivered. */
async function handedBack(promise: Promise<void>): Promise<TrackedEvent[]> {
  const error = await promise.then(
    () => assert.fail('everything was delivered'),
    (error: KontorError) => error,
  )
  return error.events as TrackedEvent[]
}

test('events are sent in order, up to 500 per request, one request at a time', async t => {
  const service = await scriptedService(t)
  const { kontor } = open(service.url)
  for (const event of views(1_200)) kontor.track(event)
  await kontor.flush()
  assert.deepEqual(
    service.asked.map(({ body }) => body.batch.length),
    [500, 500, 200],
  )
  const sent = service.asked.flatMap(({ body }) => body.batch)
  assert.deepEqual(
    sent.map(({ properties }) => properties.n),
    views(1_200).map((_, n) => n),
  )
  assert.equal(new Set(sent.map(({ messageId }) => messageId)).size, 1_200)
  assert.equal(service.asked[0]!.headers.authorization, `Bearer ${trackingKey}`)
})

test('events are sent automatically, together with those tracked in the meantime', async t => {
  const service = await scriptedService(t)
  const { kontor } = open(service.url, { flushIntervalMs: 1 })
  kontor.track(view(1))
  kontor.track(view(2))
  await eventually('the events to go out', () => service.asked.length > 0)
  assert.equal(service.asked[0]!.body.batch.length, 2)
  await kontor.close()
  assert.equal(service.asked.length, 1)
})

test('an event is copied when it is tracked', async t => {
  const service = await scriptedService(t)
  const { kontor } = open(service.url)
  const event = { event_type: 'page_view', data: { n: 1 } }
  kontor.track(event)
  event.data.n = 2
  await kontor.close()
  assert.equal(service.asked[0]!.body.batch[0].properties.n, 1)
})

test('a full queue rejects new events and reports them; queued events are delivered', async t => {
  let answer = () => {}
  const service = await scriptedService(t, { after: new Promise<void>(resolve => (answer = resolve)) })
  const { kontor, reported } = open(service.url, { maxQueued: 5 })
  assert.deepEqual(
    views(7).map(event => kontor.track(event)),
    [true, true, true, true, true, false, false],
  )
  assert.deepEqual(
    reported.map(({ code, events }) => [code, events]),
    [
      ['queue_full', [view(5)]],
      ['queue_full', [view(6)]],
    ],
  )
  const flushed = handedBack(kontor.flush())
  answer()
  assert.deepEqual(await flushed, [view(5), view(6)])
  assert.equal(service.asked[0]!.body.batch.length, 5)
  await kontor.close()
})

test('without onError, a full queue logs one line and a count, not a line per event', async t => {
  const service = await scriptedService(t)
  const lines: string[] = []
  t.mock.method(console, 'error', (line: string) => lines.push(line))
  const kontor = new Kontor({ url: service.url, trackingKey, maxQueued: 5 })
  for (const event of views(55)) kontor.track(event)
  assert.equal((await handedBack(kontor.flush())).length, 50)
  assert.deepEqual(lines, [
    'kontor: The queue is full: 5 events wait to be sent. Dropped so far: 1.',
    'kontor: The queue is full: 5 events wait to be sent. Dropped so far: 10.',
    'kontor: 50 events were dropped while the queue was full.',
  ])
  assert.equal(kontor.track(view(1)), true)
  await kontor.close()
  assert.equal(lines.length, 3)
})

test('while the server is unavailable, events stay queued: flush rejects with them, and the next flush delivers them', async t => {
  const service = await scriptedService(t, { status: 503 }, 'hang up')
  const { kontor, reported } = open(service.url)
  for (const event of views(3)) kontor.track(event)
  assert.deepEqual(await handedBack(kontor.flush()), views(3))
  kontor.track(view(3))
  assert.deepEqual(await handedBack(kontor.flush()), views(4))
  await kontor.flush()
  assert.deepEqual(
    service.asked.at(-1)!.body.batch.map((item: { properties: { n: number } }) => item.properties.n),
    [0, 1, 2, 3],
  )
  const ids = service.asked.map(({ body }) => body.batch[0].messageId)
  assert.equal(new Set(ids).size, 1)
  assert.deepEqual(reported, [])
  await kontor.close()
})

test('background requests are retried automatically after Retry-After', async t => {
  const pauses = notePauses(t)
  const service = await scriptedService(t, { status: 503, headers: { 'retry-after': '900' } }, { status: 500 })
  const { kontor, reported } = open(service.url)
  kontor.track(view(1))
  await eventually('the third attempt', () => service.asked.length === 3)
  await kontor.close()
  assert.deepEqual(
    reported.map(({ status, events }) => [status, events]),
    [
      [503, []],
      [500, []],
    ],
  )
  const [first, second, third] = pauses as [number, number, number]
  assert.deepEqual([first, second], [1_000, 900_000])
  assert.ok(third >= 5_000 && third <= 10_000, `${third} ms`)
})

test('close delivers everything, or rejects with the undelivered events', async t => {
  const service = await scriptedService(t, {}, { status: 503 })
  const { kontor, reported } = open(service.url)
  for (const event of views(700)) kontor.track(event)
  assert.deepEqual(await handedBack(kontor.close()), views(700).slice(500))
  await assert.rejects(kontor.close())
  assert.equal(kontor.track(view(1)), false)
  assert.equal(reported.at(-1)!.code, 'closed')
  assert.equal(service.asked.length, 2)
})

test('an invalid event is reported immediately and does not block others', async () => {
  const { trackingKey, privateKey } = await server.anotherTenant('faulty events')
  const { kontor, reported } = open(server.url, { trackingKey })
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  const faulty = [
    { event_type: 'cyclic', data: cyclic },
    { event_type: 'large', data: { text: 'x'.repeat(66_000) } },
    { event_type: '' },
    null,
    undefined,
    'view',
    [],
  ] as TrackedEvent[]
  assert.deepEqual(
    faulty.map(event => kontor.track(event)),
    faulty.map(() => false),
  )
  assert.deepEqual(
    reported.map(({ code }) => code),
    faulty.map(() => 'invalid_event'),
  )
  assert.deepEqual(
    reported.slice(3).map(({ message }) => message),
    Array(4).fill('The event must be an object.'),
  )
  // only the server can detect these
  const long = { event_type: 'n'.repeat(201) }
  kontor.track({ event_type: 'good 1' })
  kontor.track(long)
  kontor.track({ event_type: 'good 2' })
  assert.deepEqual(await handedBack(kontor.close()), [...faulty, long])
  const refused = reported[faulty.length]!
  assert.deepEqual([refused.code, refused.events], ['events_rejected', [long]])
  assert.match(refused.errors[0]!.message, /200 characters/)
  const rows = await rowsOf(server, 'events', { key: privateKey })
  assert.deepEqual(rows.map(row => row.event_type).sort(), ['good 1', 'good 2'])
})

test('with an invalid key, events are dropped and reported', async () => {
  const { kontor, reported } = open(server.url)
  kontor.track(view(1))
  assert.deepEqual(await handedBack(kontor.close()), [view(1)])
  assert.deepEqual(
    reported.map(({ status, events }) => [status, events]),
    [[401, [view(1)]]],
  )
})

test('identify, group, alias and page are sent with events, in order', async t => {
  const service = await scriptedService(t)
  const { kontor, reported } = open(service.url)
  kontor.page({ visitor: 'v', name: 'Home', data: { url: 'https://shop.example/' } })
  kontor.identify({ visitor: 'v', user_id: 'u', traits: { email: 'ada@example.com' } })
  kontor.group({ user_id: 'u', group_id: 'g', traits: { name: 'Acme' } })
  kontor.alias({ previous_id: 'v', user_id: 'u', event_id: 'mine' })
  assert.equal(kontor.identify({ traits: {} }), false)
  await assert.rejects(kontor.close())
  const sent = service.asked[0]!.body.batch.map(({ messageId, timestamp: _, ...call }: Record<string, unknown>) => ({
    ...call,
    ...(messageId === 'mine' && { messageId }),
  }))
  assert.deepEqual(sent, [
    { type: 'page', anonymousId: 'v', name: 'Home', properties: { url: 'https://shop.example/' } },
    { type: 'identify', anonymousId: 'v', userId: 'u', traits: { email: 'ada@example.com' } },
    { type: 'group', userId: 'u', groupId: 'g', traits: { name: 'Acme' } },
    { type: 'alias', userId: 'u', previousId: 'v', messageId: 'mine' },
  ])
  assert.deepEqual(
    reported.map(({ code }) => code),
    ['invalid_event'],
  )
})

test('with a file as storage, the next program sends what the previous one could not', async t => {
  const folder = await temporaryDirectory(t)
  const storage = () => fileStorage(join(folder, 'queue.ndjson'))
  const service = await scriptedService(t, {}, { status: 503 })
  const first = open(service.url, { storage: storage(), maxRetries: 0 })
  first.kontor.track({ event_type: 'delivered', event_id: 'd' })
  await first.kontor.flush()
  first.kontor.track({ event_type: 'left', event_id: 'l' })
  await assert.rejects(first.kontor.close())
  await appendFile(join(folder, 'queue.ndjson'), '{"messageId":"cut off by a cr')
  const second = open(service.url, { storage: storage() })
  second.kontor.track({ event_type: 'next', event_id: 'n' })
  await second.kontor.close()
  assert.deepEqual(
    service.asked
      .at(-1)!
      .body.batch.map(({ messageId }: { messageId: string }) => messageId)
      .sort(),
    ['l', 'n'],
  )
  assert.equal(await readFile(join(folder, 'queue.ndjson'), 'utf8'), '')
})

test('a storage that fails is reported, and the events are sent from memory', async t => {
  const service = await scriptedService(t)
  const { kontor, reported } = open(service.url, { storage: fileStorage('/nonexistent/queue.ndjson') })
  kontor.track(view(1))
  await kontor.close()
  assert.equal(service.asked[0]!.body.batch.length, 1)
  assert.deepEqual([...new Set(reported.map(({ code }) => code))], ['storage_failed'])
})

test('a URL that is not of a web server is refused, and a refused connection is named', async () => {
  assert.throws(() => new Kontor({ url: 'file:///etc/passwd' }), /http:\/\//)
  const closed = createServer()
  await once(closed.listen(0, '127.0.0.1'), 'listening')
  const { port } = closed.address() as AddressInfo
  await once(closed.close(), 'close')
  const { kontor } = open(`http://127.0.0.1:${port}`, { privateKey: 'private-x' })
  await assert.rejects(kontor.products.get('p'), /ECONNREFUSED/)
})
