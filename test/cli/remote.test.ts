import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { formatTable } from '../../src/cli/output.ts'
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
  assert.ok((await json('audit', 'list', '--limit', '3')).length === 3)
  assert.match((await json('user', 'invite', 'ada@example.com')).link!, new RegExp(`^${server.url}/console#`))
  const missing = await kontor('source', 'show', 'src_4fTzQ9aXw2LmN8pB')
  assert.deepEqual([missing.code, missing.out], [1, ''])
  // The admin API has no backups.
  const backup = await kontor('backup', '--to', join(folder, 'file'))
  assert.deepEqual([backup.code, /Run it on the server/.test(backup.err)], [2, true], backup.err)
  assert.deepEqual(await readdir(folder), [])
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
    { id: 'src_22', name: null, config: {}, empty: null, at: '2027', long: 'x'.repeat(60) },
  ]
  const long = `${'x'.repeat(39)}…`
  assert.equal(
    formatTable(rows),
    `id      name      at    long\nsrc_1   shop [2J  2026\nsrc_22            2027  ${long}`,
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
