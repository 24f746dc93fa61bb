import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ConfigError, inspectConfig, readConfig } from '../../src/config/config.ts'

const KEY = 'a1'.repeat(32)

test('nothing set gives a configuration that runs', () => {
  const config = readConfig({})
  assert.equal(config.port, 8080)
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.databaseUrl, null)
  assert.equal(config.secretKeys, null)
  assert.equal(config.eventsRetentionMs, null)
  assert.equal(config.logRetentionMs, 7 * 86_400_000)
  assert.deepEqual(config.surfaces, ['data', 'events', 'inbound', 'console', 'worker'])
})

test('every fault is reported at once, by name and with what is expected', () => {
  const env = {
    KONTOR_PORT: '80a',
    KONTOR_SURFACES: 'data,evnts',
    KONTOR_LOG_RETENTION: '7',
    KONTOR_SECRET_KEY: 'short',
    DATABASE_URL: 'mysql://db/kontor',
    NATS_URL: 'http://queue:4222',
  }
  assert.throws(
    () => readConfig(env),
    (error: unknown) => {
      assert.ok(error instanceof ConfigError)
      assert.equal(error.faults.length, Object.keys(env).length)
      for (const name of Object.keys(env)) assert.ok(error.faults.some(fault => fault.startsWith(name)))
      return true
    },
  )
})

test('a flag wins over its variable, and is named in its fault', () => {
  assert.equal(readConfig({ KONTOR_PORT: '1000' }, { port: '2000' }).port, 2000)
  assert.match(inspectConfig({}, { port: 'x' }).faults[0]!, /^--port is "x"/)
})

test('an empty variable counts as unset', () => {
  assert.equal(readConfig({ KONTOR_PORT: '', DATABASE_URL: '  ' }).port, 8080)
  assert.equal(readConfig({ DATABASE_URL: '  ' }).databaseUrl, null)
})

test('no secret is shown, neither in the settings nor in a fault', () => {
  const secrets = ['hunter2', KEY, 'nonsense-key', 'queue-password']
  const good = inspectConfig({
    DATABASE_URL: 'postgres://k:hunter2@db/kontor',
    KONTOR_SECRET_KEY: KEY,
    NATS_URL: 'nats://queue-password@queue,tls://u:queue-password@other:4333',
  })
  const bad = inspectConfig({
    DATABASE_URL: 'mysql://k:hunter2@db/kontor',
    KONTOR_SECRET_KEY: 'nonsense-key',
    NATS_URL: 'nats://u:queue-password@queue,http://other',
  })
  assert.notEqual(good.config, null)
  assert.equal(bad.config, null)
  for (const shown of [JSON.stringify(good.effective), JSON.stringify(bad.effective), bad.faults.join()])
    for (const secret of secrets) assert.ok(!shown.includes(secret), shown)
})

test('an address of PostgreSQL may name several hosts, and asks for one that can be written to', () => {
  const address = (hosts: string, attributes: string) =>
    `postgres://k:hunter2@${hosts}/kontor?target_session_attrs=${attributes}`
  const given = address('db-1:5433,[::1]:5434,db-3', 'read-write')
  const { config, effective } = inspectConfig({ DATABASE_URL: given })
  const hosts = ['db-1:5433', '[::1]:5434', 'db-3']
  assert.deepEqual(
    config?.databaseUrl,
    hosts.map(host => address(host, 'read-write')),
  )
  const shown = effective.find(({ name }) => name === 'DATABASE_URL')?.value
  assert.equal(shown, given.replace('hunter2', 'hidden'))
  for (const wrong of [
    address('db-1,db-2', 'standby'),
    address('db-1:5433:1,db-2', 'any'),
    address('db-1:x,db-2', 'any'),
  ])
    assert.equal(inspectConfig({ DATABASE_URL: wrong }).config, null, wrong)
})

test('master keys are read from hex and base64, and several in their order', () => {
  const other = Buffer.alloc(32, 7)
  const config = readConfig({ KONTOR_SECRET_KEY: `${KEY}, ${other.toString('base64')}` })
  assert.deepEqual(config.secretKeys, [Buffer.from(KEY, 'hex'), other])
  for (const wrong of [KEY.slice(2), Buffer.alloc(31).toString('base64'), `${KEY},`])
    assert.equal(inspectConfig({ KONTOR_SECRET_KEY: wrong }).config, null, wrong)
})

test('what was processed is remembered at least as long as its receipts and archive', () => {
  const { faults } = inspectConfig({ KONTOR_PROCESSED_RETENTION: '10d' })
  assert.equal(faults.length, 2)
  assert.notEqual(inspectConfig({ KONTOR_PROCESSED_RETENTION: '30d' }).config, null)
})

test('the two ports cannot be one', () => {
  assert.match(inspectConfig({ KONTOR_PORT: '9464' }).faults.join(), /KONTOR_OPS_PORT and KONTOR_PORT/)
  assert.equal(readConfig({ KONTOR_PORT: '9464', KONTOR_OPS_PORT: 'off' }).opsPort, null)
})

test('whether the operations port was given by hand can be told', () => {
  assert.equal(readConfig({}).opsPortIsGiven, false)
  assert.equal(readConfig({ KONTOR_OPS_PORT: '9464' }).opsPortIsGiven, true)
})

test('people sign in with a whole configuration or not at all, and over https', () => {
  const whole = {
    KONTOR_OIDC_ISSUER: 'https://login.example.com/',
    KONTOR_OIDC_CLIENT_ID: 'kontor',
    KONTOR_OIDC_CLIENT_SECRET: 'sixteen-characters',
    KONTOR_OIDC_ROLES: 'cn=a@b=admin, /team=operator@ten_2',
    KONTOR_PUBLIC_URL: 'https://data.example.com',
  }
  const { oidcIssuer, oidcRoles } = readConfig(whole)
  assert.equal(oidcIssuer, 'https://login.example.com/')
  assert.deepEqual(oidcRoles, [
    { value: 'cn=a@b', role: 'admin', tenant: null },
    { value: '/team', role: 'operator', tenant: 'ten_2' },
  ])
  for (const name of Object.keys(whole)) {
    const { faults } = inspectConfig({ ...whole, [name]: undefined })
    assert.ok(faults.length > 0 && faults.every(fault => fault.includes('KONTOR_OIDC_ISSUER')), name)
  }
  for (const wrong of [
    { KONTOR_OIDC_ISSUER: 'http://login.example.com' },
    { KONTOR_PUBLIC_URL: 'http://data.example.com' },
    { KONTOR_OIDC_ROLES: 'admins=root' },
    { KONTOR_OIDC_ROLES: 'admins=admin,' },
    { KONTOR_OIDC_CLIENT_SECRET: 'short' },
  ])
    assert.equal(inspectConfig({ ...whole, ...wrong }).config, null, JSON.stringify(wrong))
  const local = { KONTOR_OIDC_ISSUER: 'http://127.0.0.1:9000', KONTOR_PUBLIC_URL: 'http://localhost:8080' }
  assert.notEqual(inspectConfig({ ...whole, ...local }).config, null)
})

test('a variable that is not a setting is a warning that knows what was meant', () => {
  const { config, warnings } = inspectConfig({ KONTOR_SURFACE: 'data', KONTOR_TEST_ANYTHING: '1' })
  assert.notEqual(config, null)
  assert.deepEqual(warnings, [
    'KONTOR_SURFACE is not a setting and is ignored. Did you mean KONTOR_SURFACES?',
  ])
})

test('the port variable that Kubernetes makes up is explained', () => {
  assert.match(inspectConfig({ KONTOR_PORT: 'tcp://10.0.0.1:8080' }).faults[0]!, /enableServiceLinks/)
})

test('proxies are nobody, everybody, hops, or addresses', () => {
  const read = (text: string) => inspectConfig({ KONTOR_TRUST_PROXY: text }).config?.trustProxy
  assert.equal(read('off'), false)
  assert.equal(read('all'), true)
  assert.equal(read('2'), 2)
  assert.deepEqual(read('10.0.0.0/8, loopback,::1'), ['10.0.0.0/8', 'loopback', '::1'])
  for (const wrong of ['10.0.0.0/33', 'proxy.internal', '10.0.0.0/8/8']) assert.equal(read(wrong), undefined)
})

test('whatever the environment holds, it is read or refused in words, never thrown over', () => {
  const names = inspectConfig({}).effective.map(({ name }) => name)
  const environment = fc.dictionary(fc.constantFrom(...names), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(environment, env => {
      const { config, faults } = inspectConfig(env)
      assert.equal(config === null, faults.length > 0)
    }),
  )
})

test('the address of NATS names one or several servers, with a user, a token or neither', () => {
  const address = (text: string) => inspectConfig({ NATS_URL: text }).config?.natsUrl
  assert.deepEqual(address('nats://k:p%40ss@one, tls://two:4333'), {
    ...{ servers: ['one:4222', 'two:4333'], tls: true, user: 'k', password: 'p@ss', token: null },
  })
  assert.equal(address('nats://a-token@one')?.token, 'a-token')
  assert.deepEqual(address('one,two:1')?.servers, ['one:4222', 'two:1'])
  for (const wrong of ['ws://one', 'nats://one/path', 'nats://', 'nats://one,,'])
    assert.equal(address(wrong), undefined)
})
