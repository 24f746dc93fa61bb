import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { freePort } from '../../embedded-postgres/socket.ts'
import { lastDue, nextDue } from '../../src/domain/alerts/digest.ts'
import { evaluateAlerts } from '../../src/jobs/alerts.ts'
import { queueDigests } from '../../src/jobs/digests.ts'
import { openSender } from '../../src/pipeline/deliveries/send.ts'
import { kontor, startKontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { headerOf, type ReceivedMail, startMailServer } from '../mail-server.ts'
import { type OwnServer, startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'
import { startReceiver } from './receiver.ts'

const PASSWORD = 'p@ss/word'
const port = await freePort()
const SMTP = {
  KONTOR_SMTP_URL: `smtp://kontor:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}?tls=off`,
  KONTOR_SMTP_FROM: 'kontor@example.com',
}
let server: OwnServer
let adminKey: string
before(async () => {
  server = await startServer({
    ...{ ...SMTP, KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true', KONTOR_PUBLIC_URL: 'https://data.example.com' },
  })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const startMail = (t: TestContext) => startMailServer(t, { port, password: PASSWORD })
const evaluate = () => evaluateAlerts({ pool: server.pool, log: server.log, everyS: 0 })
const ask = (method: string, path: string, body?: object) =>
  server.request(path, { method, key: adminKey, ...(body && { body: JSON.stringify(body) }) })

/** One item of the batch is valid, the other becomes a dead letter. */
async function sendDeadLetter(tenant: TestTenant): Promise<void> {
  const batch = [
    { type: 'track', event: 'Good', anonymousId: 'v' },
    { type: 'track', anonymousId: 'v' },
  ]
  await server.request('/v1/batch', { method: 'POST', key: tenant.trackingKey, body: JSON.stringify({ batch }) })
  await server.settled()
}

/** Two evaluations later, the tenant has an alert on its dead letter. */
async function raiseAlert(tenant: TestTenant): Promise<void> {
  await sendDeadLetter(tenant)
  for (let i = 0; i < 2; i++) await evaluate()
}

// All mail servers of this file have the same port, so a delivery that is retried later reaches the mail server of another test.
// Each test therefore has addresses of its own.
const sentTo = (mails: ReceivedMail[], address: string) => mails.filter(({ to }) => to.includes(address))

test('an alert reaches e-mail addresses and a chat, once each, and names cannot add headers or markup', async t => {
  const mail = await startMail(t)
  if (!mail) return
  const chat = await startReceiver()
  t.after(() => chat.close())
  const tenant = await server.anotherTenant('alerted')
  const evil = 'Shop\r\nBcc: evil@example.com\r\n\r\n<script>x</script> <!channel>'
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', name: evil })
  const create = (settings: object) => ask('POST', '/admin/v1/destinations', { tenant: tenant.id, ...settings })
  const made = await create({ url: 'mailto:ops@example.com' })
  assert.deepEqual([made.status, made.body.type, made.body.what], [201, 'email', ['alerts']])
  const other = await create({ url: 'mailto:cfo@example.com', alert_rules: ['mrr_drop'] })
  await create({ type: 'slack', url: `${chat.url}/chat`, alert_rules: ['source_silent'] })

  await server.request(source.path, { method: 'POST', key: source.token, body: '{"event_type": "x", "payload": {}}' })
  await server.settled()
  await evaluate()
  const longest = JSON.stringify({ '2026-01-01': 60, '2026-01-02': 60 })
  await server.pool.query('update source_silences set longest = $2, quiet_s = 1900 where source_id = $1', [
    ...[source.id, longest],
  ])
  for (let i = 0; i < 3; i++) await evaluate()
  await eventually('the e-mail and the chat message', () => mail.received.length > 0 && chat.received.length > 0)

  const [got, ...more] = mail.received
  assert.deepEqual([got!.from, got!.to, more], ['kontor@example.com', ['ops@example.com'], []])
  assert.match(headerOf(got!, 'subject')!, /^\[alerted\] Source Shop Bcc: evil@example\.com <script>/)
  assert.equal(headerOf(got!, 'bcc'), undefined)
  assert.equal(headerOf(got!, 'auto-submitted'), 'auto-generated')
  assert.match(headerOf(got!, 'message-id')!, /^<msg_[0-9a-f-]{36}@example\.com>$/)
  assert.match(got!.text, /Source Shop Bcc: .*<script>x<\/script>/)
  assert.match(got!.text, /https:\/\/data\.example\.com\/console#\/alerts\?tenant=ten_\d+/)
  assert.doesNotMatch(got!.html, /<script>/)
  assert.match(got!.html, /&lt;script&gt;x&lt;\/script&gt;/)
  const [message, ...others] = chat.received
  assert.deepEqual([Object.keys(message!.body), others], [['text'], []])
  assert.match(message!.body.text, /^\[alerted\] Source Shop .* &lt;!channel&gt;/)
  assert.equal(message!.headers['webhook-signature'], undefined)
  const replayed = (id: string) => server.admin.destinations.replay(id, day(1))
  assert.deepEqual([(await replayed(other.body.id)).queued, (await replayed(made.body.id)).queued], [0, 1])
  await eventually('the replayed e-mail', () => sentTo(mail.received, 'ops@example.com').length === 2)
})

test('an alert waits while the mail server is unreachable, over a restart, and the failure is shown', async t => {
  const tenant = await server.anotherTenant('patient')
  const { id } = await server.admin.destinations.create({ tenant: tenant.id, url: 'mailto:patient@example.com' })
  await raiseAlert(tenant)
  const health = async () => (await ask('GET', `/admin/v1/destinations/${id}`)).body.health
  await eventually('a failed attempt', async () => (await health()).status === 'failing')
  assert.match((await health()).last_error, /ECONNREFUSED/)
  assert.equal((await health()).pending, 1)
  const issues = await ask('GET', `/admin/v1/tenants/${tenant.id}/issues`)
  const failing = issues.body.results.find(({ kind }: { kind: string }) => kind === 'failing_destination')
  assert.equal(failing.destination_id, id)
  await server.restart()
  const mail = await startMail(t)
  if (!mail) return
  await server.pool.query(
    'update delivery_queue set next_attempt_at = now() where destination_id = $1 and next_attempt_at > now()',
    [id],
  )
  await eventually('the e-mail', () => sentTo(mail.received, 'patient@example.com').length === 1)
  await eventually('the recovery', async () => (await health()).status === 'ok' && (await health()).pending === 0)
  assert.equal(sentTo(mail.received, 'patient@example.com').length, 1)
})

test('a refused login, recipient or encryption is reported and nothing is sent without encryption', async t => {
  const plain = await startMailServer(t)
  const guarded = await startMail(t)
  if (!plain || !guarded) return
  const directory = await mkdtemp(join(tmpdir(), 'kontor-mail-'))
  t.after(() => rm(directory, { recursive: true }))
  const [certificate, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', [...made, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const encrypted = (await startMailServer(t, { certificate, key, password: PASSWORD }))!

  const target = { type: 'email', url: 'mailto:refused@example.com', keys: [], headers: {} } as const
  const send = async (settings: object, url: string = target.url) => {
    const mailServer = { host: 'localhost', user: null, password: null, ...settings } as never
    const mail = { server: mailServer, from: 'kontor@example.com' }
    const sender = openSender({ allowPrivate: false, mail, consoleUrl: null, now: () => new Date() })
    const message = { id: 'x', type: 'kontor.test', at: new Date(), data: '{"message": "Hello"}' }
    const { isDelivered, status, error } = await sender.send({ ...target, url }, message)
    sender.close()
    assert.equal(isDelivered, false)
    return `${status} ${error}`
  }
  const login = { user: 'kontor', password: PASSWORD }
  assert.match(await send({ port, tls: 'off', ...login, password: 'wrong' }), /^535 /)
  assert.match(await send({ port, tls: 'off' }), /^530 /, 'no login')
  assert.match(await send({ port: plain.port, tls: 'off' }, 'mailto:unknown@example.com'), /^550 .*No such user/)
  assert.match(await send({ port: plain.port, tls: 'starttls' }), /STARTTLS/)
  assert.match(await send({ port: plain.port, tls: 'always' }), /SSL|TLS|wrong version/i)
  assert.match(await send({ port: encrypted.port, tls: 'starttls', ...login }), /self-signed/)
  const reports = await send({ port, tls: 'off', ...login, password: 'wrong' })
  assert.doesNotMatch(reports, /wrong$|p@ss/, 'no password in the error')
  assert.deepEqual([plain.received, sentTo(guarded.received, 'refused@example.com'), encrypted.received], [[], [], []])

  const tenant = await server.anotherTenant('encrypted')
  const { id } = await server.admin.destinations.create({ tenant: tenant.id, url: 'mailto:safe@example.com' })
  const { ended, out } = startKontor(t, ['destination', 'test', id], {
    ...{ DATABASE_URL: server.databaseUrl, KONTOR_SECRET_KEY: TEST_SECRET_KEY, NODE_EXTRA_CA_CERTS: certificate },
    KONTOR_SMTP_URL: `smtp://kontor:${encodeURIComponent(PASSWORD)}@localhost:${encrypted.port}`,
    KONTOR_SMTP_FROM: 'kontor@example.com',
  })
  assert.equal(await ended, 0, out())
  await eventually('the e-mail', () => encrypted.received.length === 1)
  assert.deepEqual([encrypted.received[0]!.to, encrypted.received[0]!.encrypted], [['safe@example.com'], true])
})

test('a test message of a rule goes to those who receive the rule, from the API and the command line', async t => {
  const mail = await startMail(t)
  if (!mail) return
  const tenant = await server.anotherTenant('tested')
  const path = `/admin/v1/tenants/${tenant.id}/alert-test`
  assert.deepEqual((await ask('POST', path, { rule: 'lag' })).body.results, [])
  await server.admin.destinations.create({ tenant: tenant.id, url: 'mailto:all@example.com' })
  await server.admin.destinations.create({
    ...{ tenant: tenant.id, url: 'mailto:lag@example.com', alert_rules: ['lag'] },
  })
  const { body } = await ask('POST', path, { rule: 'lag' })
  assert.deepEqual(body.results.map(({ ok, url }: { ok: boolean; url: string }) => [ok, url]).sort(), [
    [true, 'mailto:all@example.com'],
    [true, 'mailto:lag@example.com'],
  ])
  useDatabase(server.databaseUrl, { ...SMTP, KONTOR_SECRET_KEY: TEST_SECRET_KEY })
  const { code, json } = await kontor('alert', 'test', tenant.name, 'mrr_drop')
  assert.deepEqual([code, (json() as { url: string }[]).map(({ url }) => url)], [0, ['mailto:all@example.com']])
  const sent = (address: string) => sentTo(mail.received, address)
  await eventually('three e-mails', () => sent('all@example.com').length === 2 && sent('lag@example.com').length === 1)
  assert.match(sent('lag@example.com')[0]!.text, /test of the alert rule lag/)
  assert.equal((await ask('POST', path, { rule: 'no_rule' })).status, 400)
  const bound = await server.admin.keys.create({ kind: 'admin', tenant: server.tenant.id })
  const strange = await server.request(path, { method: 'POST', key: bound.key, body: '{"rule": "lag"}' })
  assert.equal(strange.status, 404)
})

test('an e-mail or chat destination receives only alerts and digests, has no secret, and its type is fixed', async () => {
  const tenant = await server.anotherTenant('typed')
  const create = (settings: object) => ask('POST', '/admin/v1/destinations', { tenant: tenant.id, ...settings })
  const pointers = ({ body }: { body: { errors: { pointer: string }[] } }) => body.errors.map(error => error.pointer)
  assert.deepEqual(pointers(await create({ url: 'mailto:a@b.c', what: ['events'] })), ['/what'])
  assert.deepEqual(pointers(await create({ url: 'mailto:a@b.c', type: 'slack' })), ['/url'])
  assert.deepEqual(pointers(await create({ url: 'https://example.com/', type: 'email' })), ['/url'])
  assert.deepEqual(pointers(await create({ url: 'https://example.com/', type: 'pigeon' })), ['/type'])
  assert.deepEqual(pointers(await create({ url: 'mailto:a@b.c', alert_rules: ['rain'] })), ['/alert_rules'])
  const { body } = await create({ url: 'mailto:a@b.c', what: ['alerts', 'digests'] })
  assert.deepEqual([body.secret, body.secrets], [null, []])
  const rotation = await ask('POST', `/admin/v1/destinations/${body.id}/rotate`, {})
  assert.deepEqual([rotation.status, rotation.body.code], [409, 'destination_without_secret'])
  const change = (settings: object) => ask('PATCH', `/admin/v1/destinations/${body.id}`, settings)
  assert.deepEqual(pointers(await change({ type: 'webhook' })), ['/type'])
  assert.deepEqual(pointers(await change({ url: 'https://example.com/' })), ['/url'])
  assert.deepEqual(pointers(await change({ what: ['records'] })), ['/what'])
  assert.equal((await change({ url: 'mailto:d@e.f', alert_rules: ['lag'] })).body.url, 'mailto:d@e.f')

  useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY, KONTOR_SMTP_URL: '', KONTOR_SMTP_FROM: '' })
  const refused = await kontor('destination', 'create', '--tenant', tenant.name, '--url', 'mailto:a@b.c')
  assert.match(refused.err, /KONTOR_SMTP_URL is not set/)
})

const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString()

test('the weekly digest is sent once, by one of several nodes, with figures and what needs attention', async t => {
  const mail = await startMail(t)
  if (!mail) return
  const tenant = await server.anotherTenant('weekly')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', name: 'billing' })
  const quiet = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', name: 'old <shop>' })
  await server.pool.query(`update sources set created_at = now() - interval '90 days' where id = $1`, [quiet.id])
  const hook = (event_type: string, customer: string, times: { started_at: string; ended_at?: string }) => {
    const items = [{ id: 'i', quantity: 1, unit_amount: 50, interval: 'month', interval_count: 1 }]
    const { started_at, ended_at } = times
    const status = ended_at ? 'canceled' : 'active'
    const at = ended_at ?? started_at
    const payload = {
      ...{ id: `sub ${customer}`, customer, status, currency: 'EUR', started_at, updated_at: at, items },
      ...(ended_at
        ? { ended_at, canceled_at: ended_at }
        : { customer_email: `${customer.replace(/<.?b>/g, '')}@example.com` }),
    }
    const body = JSON.stringify({ event_type, occurred_at: at, payload })
    return server.request(source.path, { method: 'POST', key: source.token, body })
  }
  await hook('subscription.created', 'stays', { started_at: day(60) })
  await hook('subscription.created', 'leaves', { started_at: day(60) })
  await hook('subscription.deleted', 'leaves', { started_at: day(60), ended_at: day(3) })
  await hook('subscription.created', '<b>comes</b>', { started_at: day(2) })
  await sendDeadLetter(tenant)
  await server.admin.destinations.create({ tenant: tenant.id, url: 'mailto:ceo@example.com', what: ['digests'] })
  // Due at the start of today.
  const weekday = new Date().toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' }).toLowerCase()
  const path = `/admin/v1/tenants/${tenant.id}/digest`
  const set = await ask('PATCH', path, { weekday, hour: 0 })
  assert.deepEqual([set.status, set.body.weekday, set.body.hour, set.body.recipients.length], [200, weekday, 0, 1])
  assert.equal((await ask('PATCH', path, { hour: 24 })).status, 400)
  const run = () => queueDigests({ pool: server.pool, now: () => new Date() })
  const queued = async () => {
    const own = [Number(tenant.id.slice(4))]
    const sql = `select count(*)::int as n from outbox where what = 'digests' and tenant_id = $1`
    const { rows } = await server.pool.query(sql, own)
    return rows[0].n as number
  }
  await run()
  assert.equal(await queued(), 0, 'a change of the schedule sends nothing')
  await server.pool.query(`update digests set due_at = due_at - interval '7 days' where tenant_id = $1`, [
    Number(tenant.id.slice(4)),
  ])
  await Promise.all([run(), run(), run()])
  await run()
  assert.equal(await queued(), 1)

  await eventually('the digest', () => sentTo(mail.received, 'ceo@example.com').length > 0)
  const [got, ...more] = sentTo(mail.received, 'ceo@example.com')
  assert.deepEqual([got!.to, more], [['ceo@example.com'], []])
  assert.match(headerOf(got!, 'subject')!, /^\[weekly\] Week ending .*: MRR EUR 100\.00 \(EUR 0\.00\)$/)
  for (const line of [
    ...['MRR one week earlier: EUR 100.00', 'New: +EUR 50.00', 'Churn: -EUR 50.00'],
    ...['Account gained: <b>comes</b>: EUR 50.00', 'Account lost: leaves: EUR 50.00', 'Dead letters: 1'],
    ...['No events from old <shop>: none received yet', 'Days are in the time zone UTC.'],
  ])
    assert.ok(got!.text.includes(line), `${line}\n${got!.text}`)
  assert.doesNotMatch(got!.html, /<b>|<shop>/)
  assert.match(got!.html, /&lt;b&gt;comes&lt;\/b&gt;/)

  const preview = await ask('GET', `${path}/preview`)
  assert.equal(preview.body.text, got!.text.replaceAll('\r\n', '\n'))
  useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })
  const printed = await kontor('digest', 'preview', tenant.name)
  assert.match(printed.out, /^\[weekly\] Week ending [\s\S]*Dead letters: 1/)
  // In the reporting currency too, once it has a rate.
  await server.admin.policies.set(tenant.id, { reporting_currency: 'USD' })
  await eventually('the policy', async () => (await server.admin.policies.show(tenant.id)).applied)
  const text = async () => (await ask('GET', `${path}/preview`)).body.text as string
  assert.doesNotMatch(await text(), /All currencies/)
  await server.admin.rates.import(tenant.id, `Date,USD\n${day(90).slice(0, 10)},2\n`)
  assert.match(await text(), /All currencies in USD\n {2}MRR: USD 200\.00/)

  await server.admin.erasures.erase({ tenant: tenant.id, email: 'comes@example.com' })
  assert.equal(await queued(), 0, 'the stored digest names an erased person')

  const shown = await kontor('digest', 'set', tenant.name, '--weekday', 'friday', '--hour', '17')
  assert.deepEqual([shown.code, (shown.json() as { hour: number }).hour], [0, 17])
})

test('a digest is due at an hour of the local clock, also when clocks change', () => {
  const schedule = { weekday: 'sunday', hour: 2 } as const
  const due = (now: string) => lastDue(schedule, 'Europe/Berlin', new Date(now)).toISOString()
  assert.equal(due('2026-01-11T00:59:59Z'), '2026-01-04T01:00:00.000Z')
  assert.equal(due('2026-01-11T01:00:00Z'), '2026-01-11T01:00:00.000Z')
  // On 29 March there is no 02:00; on 25 October there are two.
  assert.equal(due('2026-03-29T12:00:00Z'), '2026-03-29T01:00:00.000Z')
  assert.equal(due('2026-10-25T12:00:00Z'), '2026-10-25T00:00:00.000Z')
  const next = nextDue(schedule, 'Europe/Berlin', new Date('2026-10-18T12:00:00Z'))
  assert.equal(next.toISOString(), '2026-10-25T00:00:00.000Z')
})
