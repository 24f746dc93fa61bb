import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import type { Command } from '@commander-js/extra-typings'
import { formatTable, processOutput } from '../../src/cli/output.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { type OwnServer, startServer } from '../server.ts'
import { kontor, temporaryDirectory } from './kontor.ts'

let server: OwnServer
let adminKey: string
before(async () => {
  server = await startServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

/** An empty folder as the working directory and as the home of the settings. */
async function onLaptop(t: TestContext, environment: Record<string, string> = {}): Promise<string> {
  const folder = await temporaryDirectory(t)
  const [before, own] = [process.cwd(), { XDG_CONFIG_HOME: join(folder, 'config'), ...environment }]
  process.chdir(folder)
  Object.assign(process.env, own)
  t.after(() => {
    process.chdir(before)
    for (const name of Object.keys(own)) delete process.env[name]
  })
  return folder
}

test('with KONTOR_URL and KONTOR_KEY, tenants, keys, sources and destinations are managed over the admin API', async t => {
  const folder = await onLaptop(t, { KONTOR_URL: `${server.url}/`, KONTOR_KEY: adminKey })
  const json = async (...words: string[]) => {
    const answer = await kontor(...words)
    assert.equal(answer.code, 0, `${words.join(' ')}: ${answer.err}`)
    return answer.json() as never as Record<string, string> & Record<string, string>[]
  }
  await json('tenant', 'create', 'laptop')
  assert.ok((await json('tenant', 'list')).some(({ name }) => name === 'laptop'))
  const key = await json('key', 'create', '--tenant', 'laptop', '--kind', 'private')
  assert.match(key.key!, /^private-/)
  assert.equal((await json('key', 'list', '--tenant', 'laptop')).length, 1)
  assert.equal((await json('key', 'revoke', key.id!)).id, key.id)
  const created = await kontor('source', 'create', '--tenant', 'laptop', '--type', 'webhook', '--name', 'shop')
  const { id } = created.json() as { id: string }
  assert.ok(created.err.includes(`${server.url}/ingest/inbound/${id}`), created.err)
  assert.equal((await json('source', 'update', id, '--config', '{"overflow": "drop"}')).overflow, 'drop')
  assert.match((await json('source', 'rotate', id, '--token')).token!, /^tok_/)
  await json('source', 'disable', id)
  assert.equal((await json('source', 'show', id)).enabled as unknown, false)
  await json('source', 'delete', id)
  assert.deepEqual(await json('source', 'list', '--tenant', 'laptop'), [])
  assert.deepEqual(await json('account', 'list', '--tenant', 'laptop'), [])
  for (const args of [
    ['merge', 'cus_43', 'cus_42'],
    ['unmerge', 'cus_43'],
  ])
    assert.match((await kontor('account', ...args, '--tenant', 'laptop')).err, /cus_43/)
  assert.equal((await json('books', 'close', '--tenant', 'laptop', '2025-03')).month, '2025-03')
  const status = await json('books', 'status', '--tenant', 'laptop', '2025-03')
  assert.deepEqual([(status.months as never as object[]).length, status.count as unknown], [1, 0])
  assert.equal((await json('books', 'reopen', '--tenant', 'laptop', '2025-03')).month, '2025-03')
  assert.match((await kontor('books', 'status', '--tenant', 'laptop', '2025-03')).err, /^2025-03 is not closed\.$/m)
  assert.ok((await json('audit', 'list', '--limit', '3')).length === 3)
  assert.match((await json('user', 'invite', 'ada@example.com')).link!, new RegExp(`^${server.url}/console#`))
  const missing = await kontor('source', 'show', 'src_4fTzQ9aXw2LmN8pB')
  assert.deepEqual([missing.code, missing.out], [1, ''])
  // The admin API has no backups.
  const backup = await kontor('backup', '--to', join(folder, 'file'))
  assert.deepEqual([backup.code, /Run it on the server/.test(backup.err)], [2, true], backup.err)
  assert.deepEqual(await readdir(folder), [])
})

test('dead letters, erasures, exports, alert rules and source tests work over the admin API', async t => {
  const folder = await onLaptop(t, { KONTOR_URL: server.url, KONTOR_KEY: adminKey })
  const { id: tenant, trackingKey, privateKey } = await server.anotherTenant('remote data')
  const run = async (...words: string[]) => {
    const answer = await kontor(...words)
    assert.equal(answer.code, 0, `${words.join(' ')}: ${answer.err}`)
    return answer
  }
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  const json = async (...words: string[]) => (await run(...words)).json() as any
  const of = ['--tenant', tenant]
  const send = (path: string, key: string, body: object) =>
    server.request(path, { method: 'POST', key, body: JSON.stringify(body) })

  const { id: source, token } = await json('source', 'create', ...of, '--type', 'cdp')
  const call = { type: 'track', event: 'Viewed', userId: 'ada' }
  await send(`/ingest/inbound/${source}`, token, { batch: [{ ...call, messageId: 'm-1' }, { type: 'track' }] })
  await send('/v1/contacts', privateKey, {
    ...{ entityType: 'contact', id: 'c-1', sourceUpdatedAt: '2026-01-01T00:00:00Z' },
    data: { email: 'ada@example.com' },
  })
  await send('/v1/track', trackingKey, { event_type: 'page_view', event_id: 'e-1', visitor: 'v-1' })
  await server.settled()

  const [letter] = await json('dead-letters', 'list', ...of)
  assert.equal((await json('dead-letters', 'show', letter.id)).reason, 'rejected')
  const replayed = await json('dead-letters', 'replay', ...of, '--all')
  assert.deepEqual([replayed.replayed, replayed.failed_again, replayed.remaining], [1, 1, 0])

  const tested = await json('source', 'test', source, '--wait', '15')
  assert.equal(tested.ok, true)
  assert.equal((await kontor('source', 'test', source, '--body', '{')).code, 2)

  const exported = async (...words: string[]) => {
    await run('export', 'events', ...of, '--out', join(folder, 'events.ndjson'), ...words)
    const lines = (await readFile(join(folder, 'events.ndjson'), 'utf8')).split('\n').filter(line => line !== '')
    return lines.map(line => JSON.parse(line).event_type)
  }
  assert.ok((await exported()).includes('page_view'))
  assert.deepEqual(await exported('--until', '2020-01-01'), [])
  const file = join(folder, 'contacts.csv')
  const written = await json('export', 'contacts', ...of, '--format', 'csv', '--out', file)
  assert.deepEqual([written.rows, written.bytes], [null, statSync(file).size])
  const person = (await run('person', 'export', ...of, 'ada@example.com', '--format', 'json')).out
  assert.ok((JSON.parse(person) as { type: string }[]).some(({ type }) => type === 'contact'))
  assert.deepEqual(await json('export', 'person', ...of, '--email', 'ada@example.com'), JSON.parse(person))

  assert.equal((await json('erase', ...of, '--email', 'ada@example.com', '--dry-run')).would_erase.contacts, 1)
  const receipt = await json('erase', ...of, '--email', 'ada@example.com')
  assert.deepEqual([receipt.status, receipt.erased.contacts], ['completed', 1])

  const before = await json('alert', 'rules', tenant)
  const changed = await json('alert', 'rules', tenant, '--set', 'lag=off')
  assert.deepEqual(changed, { ...before, lag: null })
  assert.deepEqual(await json('alert', 'rules', tenant), changed)

  const actions = (await json('audit', 'list', ...of)).map(({ action }: { action: string }) => action)
  for (const action of ['dead_letter.replay', 'tenant.export', 'person.export', 'person.erase', 'source.test'])
    assert.ok(actions.includes(action), `${action} in ${actions.join(', ')}`)

  const { key: operator } = await server.admin.keys.create({ kind: 'admin', role: 'operator' })
  process.env.KONTOR_KEY = operator
  const refused = await kontor('export', 'events', ...of)
  assert.deepEqual([refused.code, /requires the role admin/.test(refused.err)], [1, true], refused.err)
  assert.deepEqual((await readdir(folder)).sort(), ['contacts.csv', 'events.ndjson'])
})

test('validation errors of the admin API name the options of the command', async t => {
  await onLaptop(t, { KONTOR_URL: server.url, KONTOR_KEY: adminKey })
  const asked = ['--tenant', server.tenant.id, '--kind', 'private', '--expires', 'soon']
  const { code, err } = await kontor('key', 'create', ...asked)
  assert.equal(code, 2)
  assert.match(err, /^Invalid value:\n {2}- --expires must be/)
  assert.ok(!err.includes('expires_at'), err)
})

test('a wrong key, a key of the wrong kind and an unreachable server are explained, and no database is created', async t => {
  const folder = await onLaptop(t, { KONTOR_URL: server.url, KONTOR_KEY: `adm_${'x'.repeat(40)}` })
  assert.match((await kontor('tenant', 'list')).err, /Unknown key/)
  process.env.KONTOR_KEY = server.tenant.privateKey
  assert.match((await kontor('tenant', 'create', 'x')).err, /admin key/)
  delete process.env.KONTOR_KEY
  assert.match((await kontor('tenant', 'create', 'x')).err, /KONTOR_KEY/)
  Object.assign(process.env, { KONTOR_KEY: adminKey, KONTOR_URL: 'http://127.0.0.1:1' })
  assert.match((await kontor('source', 'list', '--tenant', 'x')).err, /unreachable/)
  assert.deepEqual(await readdir(folder), [])
})

test('a read in an empty folder is an error and initializes nothing', async t => {
  const folder = await onLaptop(t)
  for (const words of [
    ['source', 'list', '--tenant', 'x'],
    ['source', 'list'],
    ['key', 'list', '--admin'],
    ['audit', 'list'],
    ['dead-letters', 'list'],
    ['export', 'events', '--tenant', 'x'],
  ]) {
    const { code, err } = await kontor(...words)
    assert.deepEqual([code, /There is no database/.test(err)], [1, true], `${words.join(' ')}: ${err}`)
  }
  assert.deepEqual(await readdir(folder), [])
})

test('kontor login stores the key for its user only, and other commands use the profile', async t => {
  const folder = await onLaptop(t)
  await writeFile(join(folder, 'key'), `${adminKey}\n`)
  const wrong = await kontor('login', server.url, '--key', `adm_${'x'.repeat(40)}`)
  assert.deepEqual([wrong.code === 0, existsSync(join(folder, 'config'))], [false, false])
  for (const words of [[], ['--profile', 'prod']]) {
    const { code, err } = await kontor('login', server.url, '--key-file', join(folder, 'key'), ...words)
    assert.equal(code, 0, err)
  }
  assert.equal(statSync(join(folder, 'config/kontor/profiles.json')).mode & 0o777, 0o600)
  for (const words of [[], ['--profile', 'prod']]) {
    const tenants = (await kontor('tenant', 'list', ...words)).json() as object[]
    assert.ok(tenants.length > 0)
  }
  assert.equal((await kontor('--profile', 'prod', 'open')).out, `${server.url}/console\n`)
  const unknown = await kontor('tenant', 'list', '--profile', 'staging')
  assert.deepEqual([unknown.code, /no profile "staging"/.test(unknown.err)], [2, true])
})

/** Commands that need the database, with arguments that are otherwise valid. */
const LOCAL: string[][] = [
  ...[['status'], ['doctor'], ['migrate'], ['demo'], ['snapshot'], ['backup', '--to', 'file']],
  ...['status', 'enable', 'disable'].map(verb => ['archive', verb]),
  ...[['tail'], ['trigger', 'page_view'], ['listen', 'src_4fTzQ9aXw2LmN8pB'], ['logs', 'm-1']],
  ...['products', 'contacts', 'orders', 'events'].map(what => ['import', what, 'rows.csv']),
  ...[
    ['import', 'stripe', 'rows.csv'],
    ['reconcile', 'stripe', 'rows.csv'],
    ['sql-access', 'create'],
    ['sql-access', 'list'],
    ['sql-access', 'revoke', 'kontor_bi_3f0c9a1be2d45678'],
  ],
]

/** The words of every command. A group is one too if it has options, such as kontor backup --to FILE. */
function listCommands(command: Command, words: string[] = []): string[] {
  const below = command.commands.flatMap(child => listCommands(child as Command, [...words, child.name()]))
  const isCommand = below.length === 0 || (words.length > 0 && command.options.some(({ required }) => required))
  return [...(isCommand ? [words.join(' ')] : []), ...below]
}

/** Commands that use neither a server nor its database, and those that start one. */
const OTHER = [
  'start',
  'restore',
  'check-config',
  'backup verify',
  'data list',
  'data remove',
  'login',
  'completion',
  'mcp',
]

test('after kontor login, every command works on the server or says in one sentence that it needs its database', async t => {
  const folder = await onLaptop(t)
  const { id: tenant, trackingKey } = await server.anotherTenant('every command')
  assert.equal((await kontor('login', server.url, '--key', adminKey)).code, 0)
  process.env.KONTOR_TENANT = tenant
  t.after(() => delete process.env.KONTOR_TENANT)
  await writeFile(join(folder, 'rows.csv'), 'Date,USD\n2026-03-30,1.08\n2026-03-31,1.09\n')
  const ran = new Set<string>(OTHER)
  const paths = listCommands(await buildProgram(processOutput()))
  const run = async (...words: string[]) => {
    ran.add(paths.findLast(path => `${words.join(' ')} `.startsWith(`${path} `))!)
    return kontor(...words)
  }
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  const works = async (...words: string[]): Promise<any> => {
    const { code, err, out } = await run(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${err}`)
    return out === '' ? null : JSON.parse(out)
  }
  /** Fails for a reason that only the server knows. */
  const fails = async (why: RegExp, ...words: string[]) => {
    const { code, err, out } = await run(...words)
    assert.deepEqual([code, why.test(err + out)], [1, true], `${words.join(' ')}: ${err}${out}`)
  }

  for (const words of LOCAL) {
    const { code, err, out } = await run(...words)
    assert.deepEqual([code, out], [2, ''], `${words.join(' ')}: ${err}`)
    assert.match(
      err,
      /^This command is not available through the admin API of \S+\. Run it on the server, or set --data .*\.\n/,
    )
  }

  await works('tenant', 'create', 'one more')
  await works('tenant', 'list')
  await works('tenant', 'update', tenant, '--ip-addresses', 'truncate')
  await works('tenant', 'conversions', tenant)
  await works('policy', 'show')
  await works('policy', 'set', 'time_zone=Europe/Berlin')
  await works('account', 'list')
  await fails(/cus_43/, 'account', 'merge', 'cus_43', 'cus_42')
  await fails(/cus_43/, 'account', 'unmerge', 'cus_43')
  await works('books', 'close', '2025-03')
  await works('books', 'status')
  await works('books', 'reopen', '2025-03')
  assert.deepEqual(await works('rates', 'import', 'rows.csv'), {
    ...{ tenant, days: 2, currencies: 1, rates: 2 },
    ...{ first: '2026-03-30', last: '2026-03-31' },
  })
  const { id: key } = await works('key', 'create', '--kind', 'tracking')
  await works('key', 'list', '--tenant', tenant)
  await works('key', 'update', key, '--origins', 'https://example.com')
  await works('key', 'rotate', key)
  await works('key', 'revoke', key)
  await works('events', 'purge', '--key', key, '--since', '2026-01-01', '--dry-run')
  await works('user', 'invite', 'grace@example.com')
  for (const verb of ['disable', 'enable', 'reset']) await works('user', verb, 'grace@example.com')
  await works('user', 'list')
  await works('session', 'list')
  await fails(/ses_1/, 'session', 'end', 'ses_1')
  const { id: source } = await works('source', 'create', '--type', 'cdp')
  for (const verb of ['show', 'test', 'disable', 'enable']) await works('source', verb, source)
  await works('source', 'update', source, '--config', '{"overflow": "drop"}')
  await works('source', 'rotate', source, '--token')
  await works('source', 'list')
  await works('source', 'delete', source)
  const { id: destination } = await works('destination', 'create', '--url', 'https://kontor.invalid/hook')
  for (const verb of ['show', 'disable', 'enable', 'rotate', 'deliveries'])
    await works('destination', verb, destination)
  await works('destination', 'update', destination, '--name', 'hook')
  await works('destination', 'replay', destination, '--since', '2026-01-01')
  await works('destination', 'list')
  await fails(/"ok":false/, 'destination', 'test', destination)
  await works('destination', 'delete', destination)
  await works('alert', 'list')
  await works('alert', 'rules', tenant)
  await works('alert', 'values', tenant)
  await fails(/No destination receives/, 'alert', 'test', tenant, 'mrr_drop')
  await works('digest', 'show', tenant)
  await works('digest', 'set', tenant, '--weekday', 'friday')
  assert.equal((await run('digest', 'preview', tenant)).code, 0)
  assert.equal((await run('open')).out, `${server.url}/console\n`)
  await works('audit', 'list')

  for (const who of ['v-1', 'v-2']) {
    const event = { event_type: 'page_view', visitor: who, user_id: `user of ${who}` }
    const { status } = await server.request('/v1/track', {
      ...{ method: 'POST', key: trackingKey },
      body: JSON.stringify(event),
    })
    assert.equal(status, 200)
  }
  await server.settled()
  await works('person', 'show', 'visitor:v-1')
  await works('person', 'verify', 'visitor:v-1', '--name', 'user:user of v-1')
  await works('person', 'merge', 'visitor:v-1', 'visitor:v-2')
  await works('person', 'split', 'visitor:v-1', '--name', 'visitor:v-2')
  assert.equal((await run('person', 'export', 'visitor:v-1')).code, 0)
  assert.equal((await run('export', 'events', '--out', 'events.ndjson')).code, 0)
  await fails(/No matching person/, 'erase', '--email', 'ada@example.com', '--dry-run')
  await works('suppress', 'list')
  await fails(/No matching suppression/, 'suppress', 'remove', 'ada@example.com')
  await works('dead-letters', 'list')
  await works('dead-letters', 'replay', '--all')
  await fails(/1/, 'dead-letters', 'show', '1')

  assert.deepEqual(
    paths.filter(path => !ran.has(path)),
    [],
    'every command is classified',
  )
  assert.deepEqual((await readdir(folder)).sort(), ['config', 'events.ndjson', 'rows.csv'])
})

test('without --tenant, a command uses KONTOR_TENANT or the only tenant', async t => {
  const own = await startServer()
  t.after(() => own.close())
  await onLaptop(t, { DATABASE_URL: own.databaseUrl })
  assert.deepEqual((await kontor('source', 'list')).json(), await own.admin.sources.list(own.tenant.id))
  await own.anotherTenant('second')
  const several = await kontor('source', 'list')
  assert.deepEqual([several.code, /several tenants.*--tenant or KONTOR_TENANT/.test(several.err)], [2, true])
  process.env.KONTOR_TENANT = 'second'
  t.after(() => delete process.env.KONTOR_TENANT)
  assert.deepEqual((await kontor('source', 'list')).json(), [])
})

test('a list is a table for people: without nested values, and control characters cannot reach the terminal', () => {
  const rows = [
    { id: 'src_1', name: 'shop\u001b[2J', config: { a: 1 }, empty: null, at: '2026' },
    { id: 'src_22', name: null, config: {}, empty: null, at: '2027', long: 'x'.repeat(60), last: 'y'.repeat(60) },
  ]
  const long = `${'x'.repeat(39)}…`
  assert.equal(
    formatTable(rows),
    `id      name      at    ${'long'.padEnd(40)}  last\nsrc_1   shop [2J  2026\nsrc_22            2027  ${long}  ${'y'.repeat(60)}`,
  )
  assert.equal(formatTable([]), '(none)')
})

test('the help groups the commands', async () => {
  const { out } = await kontor('--help')
  for (const heading of [
    'Tenants, keys and data:',
    'Events and people:',
    'Subscriptions:',
    'Operations:',
    'Development:',
  ])
    assert.ok(out.includes(`\n${heading}\n`), heading)
  assert.doesNotMatch(out, /^Commands:$/m)
})
