import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { test } from 'node:test'
import { kindOfKey, SCOPES } from '../../src/domain/tenants/keys.ts'
import { findSource } from '../../src/store/inbound/sources.ts'
import { openedAdmin } from '../admin/opened.ts'
import { kontor, startKontor, temporaryDirectory, useDatabase } from './kontor.ts'

const { pool, admin, url } = await openedAdmin()
useDatabase(url, { KONTOR_SECRET_KEY: '01'.repeat(32) })
const tenant: { id: string; name: string } = (await kontor('tenant', 'create', 'acme')).json()

async function done(...words: string[]) {
  const answer = await kontor(...words)
  assert.equal(answer.code, 0, answer.err)
  assert.equal(answer.out.trimEnd().split('\n').length, 1, 'one JSON value on stdout')
  return JSON.parse(answer.out)
}

test('tenant create prints {id, name}', () => {
  assert.deepEqual(Object.keys(tenant), ['id', 'name'])
  assert.equal(tenant.name, 'acme')
})

test('a second tenant with the same name fails with exit code 1 and nothing on stdout', async () => {
  const { code, out, err } = await kontor('tenant', 'create', 'acme')
  assert.deepEqual({ code, out }, { code: 1, out: '' })
  assert.match(err, /tenant named "acme" already exists/)
})

test('tenants are listed as an array', async () => {
  const listed = await done('tenant', 'list')
  assert.deepEqual(
    listed.map(({ id, name }: typeof tenant) => ({ id, name })),
    [tenant],
  )
})

test('conversion types are shown, set and reset', async () => {
  assert.equal((await done('tenant', 'conversions', 'acme')).conversion_types, null)
  const set = await done('tenant', 'conversions', tenant.id, '--set', 'purchase, Order Completed')
  assert.deepEqual(set.conversion_types, ['purchase', 'Order Completed'])
  assert.deepEqual((await done('tenant', 'conversions', 'acme')).conversion_types, set.conversion_types)
  assert.equal((await done('tenant', 'conversions', 'acme', '--reset')).conversion_types, null)
})

test('the events floor is set, and reset to the default of the installation', async () => {
  assert.equal((await done('tenant', 'update', 'acme', '--events-floor', '365d')).events_floor, '365d')
  assert.equal((await done('tenant', 'update', tenant.id, '--events-floor', 'off')).events_floor, 'off')
  const refused = await kontor('tenant', 'update', 'acme', '--events-floor', 'soon')
  assert.deepEqual([refused.code, refused.out], [2, ''])
  assert.match(refused.err, /--events-floor must be 1d to 36500d, off or default/)
  assert.equal((await done('tenant', 'update', 'acme', '--events-floor', 'default')).events_floor, null)
})

test('key create prints {id, key, kind, scopes, tenant}, for an id and for a name', async () => {
  for (const given of [tenant.id, 'acme']) {
    const made = await done('key', 'create', '--tenant', given, '--kind', 'private')
    assert.deepEqual(Object.keys(made), ['id', 'key', 'kind', 'scopes', 'tenant'])
    assert.equal(kindOfKey(made.key), 'private')
    assert.equal(made.tenant, tenant.id)
    assert.deepEqual(made.scopes, SCOPES)
  }
})

test('scopes and expiry are read from the options', async () => {
  const made = await done(
    ...['key', 'create', '--tenant', 'acme', '--kind', 'private'],
    ...['--scopes', 'orders:read, orders:write', '--expires', '2999-01-31'],
  )
  assert.deepEqual(made.scopes, ['orders:read', 'orders:write'])
  const listed = await done('key', 'list', '--tenant', 'acme')
  const found = listed.find(({ id }: { id: string }) => id === made.id)
  assert.equal(found.expires_at, '2999-01-31T00:00:00.000Z')
  assert.ok(!JSON.stringify(listed).includes(made.key))
})

test('an admin key needs no tenant', async () => {
  const made = await done('key', 'create', '--kind', 'admin')
  assert.equal(made.tenant, null)
  assert.ok((await done('key', 'list', '--admin')).some(({ id }: { id: string }) => id === made.id))
})

test('all validation errors of a key are listed, with exit code 2', async () => {
  const asked = ['--kind', 'private', '--scopes', 'a:b,c:d', '--expires', 'soon']
  const { code, out, err } = await kontor('key', 'create', ...asked)
  assert.deepEqual({ code, out }, { code: 2, out: '' })
  for (const error of [/--scopes \(value 1\) "a:b" is/, /--scopes \(value 2\) "c:d" is/, /--expires must be/])
    assert.match(err, error)
})

test('a rate limit of zero, or above the maximum, is rejected for keys and sources; off means no limit', async () => {
  const { id } = await done('key', 'create', '--tenant', 'acme', '--kind', 'tracking', '--rate-limit', '1/1')
  for (const [hint, words] of [
    ['For no limit, use off.', ['key', 'create', '--tenant', 'acme', '--kind', 'tracking']],
    ['For no limit, use off.', ['key', 'update', id]],
    ['100 events per minute.', ['source', 'create', '--tenant', 'acme', '--type', 'webhook']],
  ] as const)
    for (const limit of ['0/0', '0/1', '1/0', '1/86401', '100000001/60']) {
      const { code, out, err } = await kontor(...words, '--rate-limit', limit)
      assert.deepEqual({ code, out }, { code: 2, out: '' }, err)
      assert.match(
        err,
        new RegExp(
          `Invalid value "${limit}" for --rate-limit .*both at least 1, at most 100,000,000 events and 86,400 seconds.*${hint}`,
        ),
      )
    }
  assert.equal((await done('key', 'update', id, '--rate-limit', 'off')).rate_limit, null)
})

test('a key is revoked', async () => {
  const { id } = await done('key', 'create', '--tenant', 'acme', '--kind', 'tracking')
  assert.notEqual((await done('key', 'revoke', id)).revoked_at, null)
  const unknown = await kontor('key', 'revoke', 'key_nothing')
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /No such key: "key_nothing"\. Use the id \(key_…\) that `kontor key list` shows\./)
})

const createSource = (...words: string[]) => done('source', 'create', '--tenant', 'acme', '--type', 'webhook', ...words)

test('source create prints {id, token, signing_secret, type, tenant}', async () => {
  const made = await createSource()
  assert.deepEqual(Object.keys(made), ['id', 'token', 'signing_secret', 'type', 'tenant'])
  assert.match(made.token, /^tok_/)
  assert.equal(made.signing_secret, null)
  assert.equal(made.type, 'webhook')
  assert.equal(made.tenant, tenant.id)
})

test('source settings come from options and --config, and options take precedence', async () => {
  const config = { event_id_path: 'payload.id', overflow: 'defer', headers: ['x-shop'], enabled: false }
  const made = await createSource(
    ...['--name', 'shop', '--token', 'given-token-of-16', '--signing-secret', 'given-secret-of-16'],
    ...['--event-type', 'order.paid', '--rate-limit', '100/60', '--overflow', 'drop', '--preset', 'github'],
    ...['--config', JSON.stringify(config)],
  )
  assert.equal(made.token, 'given-token-of-16')
  assert.equal(made.signing_secret, 'given-secret-of-16')
  const shown = await done('source', 'show', made.id)
  const expected = {
    ...config,
    name: 'shop',
    event_type_override: { set: 'order.paid' },
    rate_limit: { events: 100, per_seconds: 60 },
    overflow: 'drop',
    preset: 'github',
  }
  assert.deepEqual({ ...shown, ...expected }, shown)
  assert.ok(!JSON.stringify(shown).includes('given-'))
})

test('a value that starts with a dash is accepted', async () => {
  assert.equal((await createSource('--token', '-a-long-dash-token-')).token, '-a-long-dash-token-')
  assert.equal((await createSource('--token=--a-long-dash-token')).token, '--a-long-dash-token')
})

test('tokens and secrets can be read from standard input and from files', async t => {
  const directory = await temporaryDirectory(t)
  await writeFile(`${directory}/token`, 'a-token-from-a-file\n')
  const words = ['source', 'create', '--tenant', 'acme', '--type', 'webhook']
  const env = { DATABASE_URL: url, KONTOR_SECRET_KEY: '01'.repeat(32) }
  const piped = startKontor(
    t,
    [...words, '--token-file', `${directory}/token`, '--signing-secret', '-'],
    env,
    'a-secret-from-a-pipe\n',
  )
  assert.equal(await piped.ended, 0, piped.err())
  const made = JSON.parse(piped.out())
  assert.deepEqual([made.token, made.signing_secret], ['a-token-from-a-file', 'a-secret-from-a-pipe'])
  const rotated = await done('source', 'rotate', made.id, '--token', '--value-file', `${directory}/token`)
  assert.equal(rotated.token, 'a-token-from-a-file')
  for (const [flags, reason] of [
    [['--token', '-', '--signing-secret', '-'], /Only one secret/],
    [['--token', 'a-token-of-16-chars', '--token-file', `${directory}/token`], /not both/],
    [['--token-file', `${directory}/nothing`], /cannot be read: no such file or directory\./],
  ] as const) {
    const refused = await kontor(...words, ...flags)
    assert.equal(refused.code, 2)
    assert.match(refused.err, reason)
  }
})

test('all validation errors of a source are listed', async () => {
  const { code, err } = await kontor(
    ...['source', 'create', '--tenant', 'acme', '--type', 'ftp', '--token', 'short', '--overflow', 'x'],
    ...['--config', '{"color": 1, "max_body_bytes": 0}'],
  )
  assert.equal(code, 2)
  for (const name of ['--type', '--token', '--overflow', 'color', 'max_body_bytes'])
    assert.ok(err.includes(`- ${name} `), err)
})

test('a source is updated, disabled, enabled, listed and deleted', async () => {
  const { id } = await createSource()
  const updated = await done('source', 'update', id, '--config', '{"rate_limit": {"events": 5, "per_seconds": 1}}')
  assert.deepEqual(updated.rate_limit, { events: 5, per_seconds: 1 })
  assert.equal((await done('source', 'disable', id)).enabled, false)
  assert.equal((await done('source', 'enable', id)).enabled, true)
  const ids = async () =>
    (await done('source', 'list', '--tenant', 'acme')).map((listedSource: { id: string }) => listedSource.id)
  assert.ok((await ids()).includes(id))
  assert.deepEqual(await done('source', 'delete', id), { id, deleted: true })
  assert.ok(!(await ids()).includes(id))
  assert.equal((await kontor('source', 'show', id)).code, 1)
})

test('rotate prints the new value and the expiry of the previous one', async () => {
  const made = await createSource('--signing-secret', 'generate')
  const token = await done('source', 'rotate', made.id, '--token', '--overlap-hours', '0')
  assert.deepEqual(Object.keys(token), ['id', 'token', 'previous_expires_at'])
  assert.notEqual(token.token, made.token)
  assert.equal(token.previous_expires_at, null)
  const secret = await done('source', 'rotate', made.id, '--signing-secret', '--value', 'from-the-provider')
  assert.equal(secret.signing_secret, 'from-the-provider')
  const hours = (Date.parse(secret.previous_expires_at) - Date.now()) / 3_600_000
  assert.ok(hours > 23 && hours <= 24)
  const kept = await findSource(pool, made.id)
  assert.deepEqual([kept!.tokens.length, kept!.signingSecrets.length], [1, 2])
})

test('without a secret key, a signing secret is rejected and nothing is created', async t => {
  const key = process.env.KONTOR_SECRET_KEY!
  delete process.env.KONTOR_SECRET_KEY
  t.after(() => {
    process.env.KONTOR_SECRET_KEY = key
  })
  const before = await admin.sources.list('acme')
  const asked = ['--tenant', 'acme', '--type', 'webhook', '--signing-secret', 'generate']
  const { code, err } = await kontor('source', 'create', ...asked)
  assert.equal(code, 2)
  assert.match(err, /KONTOR_SECRET_KEY.*openssl rand/s)
  assert.deepEqual(await admin.sources.list('acme'), before)
})

test('the audit log shows the user of the command line, newest first', async () => {
  await done('tenant', 'create', 'audited')
  const key = await done('key', 'create', '--tenant', 'audited', '--kind', 'tracking')
  await done('key', 'revoke', key.id)
  const [newest, ...older] = await done('audit', 'list', '--tenant', 'audited')
  assert.equal(newest.action, 'key.revoke')
  assert.equal(newest.target, key.id)
  assert.equal(newest.actor, `cli:${userInfo().username}`)
  assert.deepEqual(
    older.map(({ action }: { action: string }) => action),
    ['key.create', 'tenant.create'],
  )
  assert.equal((await done('audit', 'list', '--tenant', 'audited', '--limit', '2')).length, 2)
  const refused = await kontor('audit', 'list', '--since', 'yesterday')
  assert.equal(refused.code, 2)
  assert.match(refused.err, /ISO 8601/)
})

test('migrate applies nothing to a database of this version', async () => {
  assert.deepEqual(await done('migrate'), { applied: [] })
})

test('an unreachable database is reported with exit code 1', async t => {
  process.env.DATABASE_URL = 'postgres://kontor:hunter2@127.0.0.1:1/kontor'
  t.after(() => {
    process.env.DATABASE_URL = url
  })
  const { code, out, err } = await kontor('tenant', 'list')
  assert.deepEqual({ code, out }, { code: 1, out: '' })
  assert.match(err, /PostgreSQL is unreachable/)
  assert.ok(!err.includes('hunter2'))
})

test('an invalid configuration stops every command and lists all errors', async t => {
  Object.assign(process.env, { KONTOR_PORT: 'x', KONTOR_WORKERS: 'many' })
  t.after(() => {
    delete process.env.KONTOR_PORT
    delete process.env.KONTOR_WORKERS
  })
  const { code, err } = await kontor('tenant', 'list')
  assert.equal(code, 1)
  assert.match(err, /KONTOR_PORT.*KONTOR_WORKERS/s)
  const checked = await kontor('check-config')
  assert.equal(checked.code, 1)
  const { ok, faults: errors } = JSON.parse(checked.out)
  assert.deepEqual({ ok, errors: errors.length }, { ok: false, errors: 2 })
})

test('check-config shows the effective settings without secrets', async () => {
  const { code, out } = await kontor('check-config', '--port', '9000')
  assert.equal(code, 0)
  const { ok, settings } = JSON.parse(out)
  assert.equal(ok, true)
  const port = settings.find(({ name }: { name: string }) => name === 'KONTOR_PORT')
  assert.deepEqual(port, { name: 'KONTOR_PORT', value: '9000', from: 'command line' })
  assert.ok(!out.includes('01'.repeat(32)))
  assert.ok(!out.includes(new URL(url).password))
})
