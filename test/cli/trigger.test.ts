import assert from 'node:assert/strict'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { addUser } from '../../embedded-postgres/lock.ts'
import { processOutput } from '../../src/cli/output.ts'
import { reachServer } from '../../src/cli/running-server.ts'
import { writeServerFile } from '../../src/cli/server-file.ts'
import { readConfig } from '../../src/config/config.ts'
import { SAMPLES } from '../../src/domain/samples.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'
import { kontor, temporaryDirectory, useDatabase } from './kontor.ts'

const server = await startServer()
after(() => server.close())
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

const trigger = (...words: string[]) => kontor('trigger', ...words, '--url', server.url)
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
const parseLines = (out: string): any[] =>
  out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))

const webhook = await makeSource(server)
const cdp = await makeSource(server, { type: 'cdp' })
for (const preset of ['stripe', 'shopify', 'woocommerce', 'paddle'])
  await makeSource(server, { preset, signing_secret: 'generate' })
const tokens: Record<string, string> = { webhook: webhook.token, cdp: cdp.token }

test('every sample is accepted at the real endpoint, with new ids each time, and is processed', async () => {
  for (const { name } of SAMPLES) {
    const token = tokens[name.split('.')[0]!]
    const sent = await trigger(name, '--count', '2', ...(token ? ['--token', token] : []))
    assert.equal(sent.code, 0, `${name}: ${sent.err}${sent.out}`)
    for (const { answer } of parseLines(sent.out))
      if (answer.accepted !== undefined) assert.deepEqual([answer.accepted, answer.duplicates], [1, 0], name)
  }
  await server.settled()
  assert.deepEqual(await server.admin.deadLetters.list({ tenant: server.tenant.id, limit: 10 }), [])
  const list = (path: string) => server.request(path, { key: server.tenant.privateKey })
  const listed = [
    ...(await list('/v1/events?limit=100')).body.results,
    ...(await list('/v1/conversions?limit=100')).body.results,
  ]
  const types = new Set(listed.map(row => row.event_type ?? row.conversion_type))
  for (const name of ['page_view', 'products/create', 'invoice.paid', 'order.shipped', 'Order Completed'])
    assert.ok(types.has(name), `${name} of ${[...types]}`)
  const { body } = await list('/v1/subscriptions/overview?currency=EUR')
  assert.ok(body.mrr > 0)
})

test('a Stripe sample counts in no total, and with --set livemode=true it counts, as the help says', async () => {
  const key = server.tenant.privateKey
  const mrr = async () => {
    await server.settled()
    return (await server.request('/v1/subscriptions/overview?currency=EUR', { key })).body.mrr
  }
  const before = await mrr()
  await trigger('stripe.customer.subscription.created')
  assert.equal(await mrr(), before)
  await trigger('stripe.customer.subscription.created', '--set', 'livemode=true')
  assert.equal(await mrr(), Math.round(100 * (before + 29)) / 100)
})

test('a field can be set, and the whole body edited', async t => {
  const set = ['--set', 'data.amount=12.5', '--set', 'data.note=a=b', '--set', 'data.items.0.sku=X']
  const [{ sent }] = parseLines((await trigger('page_view', ...set)).out)
  assert.deepEqual([sent.data.amount, sent.data.note, sent.data.items], [12.5, 'a=b', { 0: { sku: 'X' } }])
  const editor = join(await temporaryDirectory(t), 'editor')
  await writeFile(editor, `#!/bin/sh\necho '{"event_type": "edited"}' > "$1"\n`)
  await chmod(editor, 0o700)
  process.env.VISUAL = `'${editor}'`
  t.after(() => delete process.env.VISUAL)
  assert.deepEqual(parseLines((await trigger('page_view', '--edit')).out)[0].sent, { event_type: 'edited' })
  await writeFile(editor, `#!/bin/sh\necho '[' > "$1"\n`)
  assert.equal((await trigger('page_view', '--edit')).code, 2)
})

test('a sample that cannot be sent is explained', async () => {
  const wrong = await trigger('stripe.invoice.payed')
  assert.deepEqual([wrong.code, /stripe\.invoice\.paid/.test(wrong.err)], [2, true])
  assert.match((await trigger('webhook.order.shipped')).err, /requires its token\. Specify it with --token tok_…/)
  const refused = await trigger('webhook.order.shipped', '--token', 'tok_not_this_one_at_all')
  assert.deepEqual([refused.code, parseLines(refused.out)[0].status], [1, 401])
  await server.anotherTenant('second')
  assert.match((await trigger('page_view')).err, /several tenants/)
  assert.match((await trigger('stripe.invoice.paid', '--tenant', 'second')).err, /kontor source create --tenant second/)
  const elsewhere = await trigger(
    'webhook.order.shipped',
    '--tenant',
    'second',
    '--source',
    webhook.id,
    '--token',
    webhook.token,
  )
  assert.deepEqual([elsewhere.code, elsewhere.out], [2, ''])
  assert.match(elsewhere.err, /does not belong to tenant second/)
  const own = ['--tenant', server.tenant.id, '--source', webhook.id, '--token', webhook.token]
  assert.equal((await trigger('webhook.order.shipped', ...own)).code, 0)
  const ignored = await trigger('page_view', '--tenant', 'second', '--source', webhook.id)
  assert.deepEqual([ignored.code, ignored.out], [2, ''])
  assert.match(ignored.err, /page_view is sent to the event API, not to a source/)
  const shopify = await makeSource(server, { preset: 'shopify', signing_secret: 'generate' })
  assert.match((await trigger('stripe.invoice.paid', '--source', shopify.id)).err, /accepts webhooks of shopify/)
  for (const words of [
    ['--set', '=1'],
    ['--set', '__proto__.x=1'],
    ['--count', '0'],
    ['--count', '2', '--edit'],
  ])
    assert.equal((await trigger('page_view', '--tenant', 'second', ...words)).code, 2, words.join(' '))
  assert.match((await kontor('trigger', '--list')).out, /shopify\.orders\/create\n/)
  const listed = (await kontor('trigger', '--list', '--json')).json() as object[]
  assert.deepEqual(listed[0], { name: 'page_view', target: 'events' })
  assert.equal(listed.length, SAMPLES.length)
})

test('an unreachable server, or another program at its address, is reported in one sentence', async () => {
  const send = (url: string) => kontor('trigger', 'page_view', '--tenant', 'second', '--count', '3', '--url', url)
  const unreachable = await send('http://localhost:1/')
  assert.deepEqual([unreachable.code, unreachable.out], [1, ''])
  assert.match(unreachable.err, /^http:\/\/localhost:1 did not respond: .+\n$/)
  for (const url of ['notaurl', 'ftp://localhost', 'http://']) {
    const { code, err } = await send(url)
    assert.equal(code, 2, err)
    assert.match(err, /for --url <url>\. Expected a URL/)
  }
})

test('the command waits for a server that is still starting, and uses the address in its server file', async t => {
  const dataDir = await temporaryDirectory(t)
  const usage = join(dataDir, 'usage')
  await mkdir(usage)
  const starting = await addUser(usage, 'server')
  await writeServerFile(dataDir, announcement('http://127.0.0.1:1', 1)) // of a server that was killed earlier
  const said: string[] = []
  const say = (words: string) => {
    said.push(words)
    void writeServerFile(dataDir, announcement(server.url, starting.pid))
  }
  const config = { ...readConfig({}), databaseUrl: null, dataDir }
  const reached = await reachServer({ config, url: undefined, out: { ...processOutput(), say } })
  assert.deepEqual([reached.url, reached.readUrl, reached.lasts], [server.url, server.url, true])
  assert.deepEqual(said, [`Waiting for the server of this data directory (process ${starting.pid}) to start.`])
})

function announcement(url: string, pid: number) {
  return { pid, version: '0', url, ops_url: null, processes: 1, started_at: new Date().toISOString() }
}
