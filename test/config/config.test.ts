import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ConfigError, inspectConfig, readConfig } from '../../src/config/config.ts'

const KEY = 'a1'.repeat(32)

test('the defaults are a valid configuration', () => {
  const config = readConfig({})
  assert.equal(config.port, 8080)
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.databaseUrl, null)
  assert.equal(config.secretKeys, null)
  assert.equal(config.eventsRetentionMs, null)
  assert.equal(config.logRetentionMs, 7 * 86_400_000)
  assert.deepEqual(config.surfaces, ['data', 'events', 'inbound', 'console', 'worker'])
})

test('all errors are reported together, each with the variable and the expected value', () => {
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
      assert.equal(error.errors.length, Object.keys(env).length)
      for (const name of Object.keys(env)) assert.ok(error.errors.some(each => each.startsWith(name)))
      return true
    },
  )
})

test('a flag takes precedence over its variable, and its error names the flag', () => {
  assert.equal(readConfig({ KONTOR_PORT: '1000' }, { port: '2000' }).port, 2000)
  assert.match(inspectConfig({}, { port: 'x' }).errors[0]!, /^--port is "x"/)
})

test('an empty variable counts as unset', () => {
  assert.equal(readConfig({ KONTOR_PORT: '', DATABASE_URL: '  ' }).port, 8080)
  assert.equal(readConfig({ DATABASE_URL: '  ' }).databaseUrl, null)
})

test('secrets appear neither in the settings nor in error messages', () => {
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
  for (const shown of [JSON.stringify(good.effective), JSON.stringify(bad.effective), bad.errors.join()])
    for (const secret of secrets) assert.ok(!shown.includes(secret), shown)
})

test('DATABASE_URL accepts several hosts and only writable session attributes', () => {
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

test('secret keys are read from hex and base64, and several keep their order', () => {
  const other = Buffer.alloc(32, 7)
  const config = readConfig({ KONTOR_SECRET_KEY: `${KEY}, ${other.toString('base64')}` })
  assert.deepEqual(config.secretKeys, [Buffer.from(KEY, 'hex'), other])
  for (const wrong of [KEY.slice(2), Buffer.alloc(31).toString('base64'), `${KEY},`])
    assert.equal(inspectConfig({ KONTOR_SECRET_KEY: wrong }).config, null, wrong)
})

test('the processed retention must be at least as long as that of receipts and archive', () => {
  const { errors } = inspectConfig({ KONTOR_PROCESSED_RETENTION: '10d' })
  assert.equal(errors.length, 2)
  assert.notEqual(inspectConfig({ KONTOR_PROCESSED_RETENTION: '30d' }).config, null)
})

test('the two ports must differ', () => {
  assert.match(inspectConfig({ KONTOR_PORT: '9464' }).errors.join(), /KONTOR_OPS_PORT and KONTOR_PORT/)
  assert.equal(readConfig({ KONTOR_PORT: '9464', KONTOR_OPS_PORT: 'off' }).opsPort, null)
})

test('the configuration says whether the operations port was set explicitly', () => {
  assert.equal(readConfig({}).opsPortIsGiven, false)
  assert.equal(readConfig({ KONTOR_OPS_PORT: '9464' }).opsPortIsGiven, true)
})

test('sign-in requires all of its settings and https', () => {
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
    const { errors } = inspectConfig({ ...whole, [name]: undefined })
    assert.ok(errors.length > 0 && errors.every(each => each.includes('KONTOR_OIDC_ISSUER')), name)
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

test('the credentials of the system user of NATS require its URL', () => {
  const nats = { NATS_URL: 'nats://nats-1:4222', KONTOR_NATS_SYSTEM_CREDS: '/etc/kontor/system.creds' }
  assert.match(inspectConfig(nats).errors.join(), /KONTOR_NATS_SYSTEM_CREDS is set, but KONTOR_NATS_SYSTEM_URL is not/)
  assert.deepEqual(inspectConfig({ ...nats, KONTOR_NATS_SYSTEM_URL: 'nats://sys:pw@nats-1:4222' }).errors, [])
})

test('an unknown variable causes a warning with a suggestion', () => {
  const ofCommands = {
    KONTOR_URL: 'https://kontor.example.com',
    KONTOR_KEY: 'k',
    KONTOR_TENANT: 't',
    KONTOR_PROFILE: 'p',
  }
  const { config, warnings } = inspectConfig({ KONTOR_SURFACE: 'data', KONTOR_TEST_ANYTHING: '1', ...ofCommands })
  assert.notEqual(config, null)
  assert.deepEqual(warnings, ['KONTOR_SURFACE is not a setting and is ignored. Did you mean KONTOR_SURFACES?'])
  const { warnings: ofMoreWords } = inspectConfig({ KONTOR_HTTP_PORT: '80' })
  assert.deepEqual(ofMoreWords, ['KONTOR_HTTP_PORT is not a setting and is ignored. Did you mean KONTOR_PORT?'])
})

test('the error for a port variable set by Kubernetes explains it', () => {
  assert.match(inspectConfig({ KONTOR_PORT: 'tcp://10.0.0.1:8080' }).errors[0]!, /enableServiceLinks/)
})

test('trusted proxies are none, all, a number of hops, or addresses', () => {
  const read = (text: string) => inspectConfig({ KONTOR_TRUST_PROXY: text }).config?.trustProxy
  assert.equal(read('off'), false)
  assert.equal(read('all'), true)
  assert.equal(read('2'), 2)
  assert.deepEqual(read('10.0.0.0/8, loopback,::1'), ['10.0.0.0/8', 'loopback', '::1'])
  for (const wrong of ['10.0.0.0/33', 'proxy.internal', '10.0.0.0/8/8']) assert.equal(read(wrong), undefined)
})

test('any environment is either accepted or rejected with errors, without an exception', () => {
  const names = inspectConfig({}).effective.map(({ name }) => name)
  const environment = fc.dictionary(fc.constantFrom(...names), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(environment, env => {
      const { config, errors } = inspectConfig(env)
      assert.equal(config === null, errors.length > 0)
    }),
  )
})

test('NATS_URL accepts one or more servers, with a user, a token or neither', () => {
  const address = (text: string) => inspectConfig({ NATS_URL: text }).config?.natsUrl
  assert.deepEqual(address('nats://k:p%40ss@one, tls://two:4333'), {
    ...{ servers: ['one:4222', 'two:4333'], tls: true, user: 'k', password: 'p@ss', token: null },
  })
  assert.equal(address('nats://a-token@one')?.token, 'a-token')
  assert.deepEqual(address('one,two:1')?.servers, ['one:4222', 'two:1'])
  for (const wrong of ['ws://one', 'nats://one/path', 'nats://', 'nats://one,,'])
    assert.equal(address(wrong), undefined)
})

test('KONTOR_SMTP_URL requires encryption unless it is turned off, and hides the password', () => {
  const read = (url: string) => inspectConfig({ KONTOR_SMTP_URL: url, KONTOR_SMTP_FROM: 'kontor@example.com' })
  const server = (url: string) => read(url).config?.smtpUrl
  const login = { user: 'us er', password: 'p@ss' }
  assert.deepEqual(server('smtp://us%20er:p%40ss@mail.example.com'), {
    ...{ host: 'mail.example.com', port: 587, tls: 'starttls', ...login },
  })
  assert.deepEqual(server('smtps://us%20er:p%40ss@mail.example.com'), {
    ...{ host: 'mail.example.com', port: 465, tls: 'always', ...login },
  })
  const none = { user: null, password: null }
  assert.deepEqual(server('smtp://mailpit:1025?tls=off'), { host: 'mailpit', port: 1025, tls: 'off', ...none })
  assert.equal(server('smtp://u:p@[::1]:25?tls=off')?.host, '::1')
  for (const url of [
    ...['mail.example.com', 'http://mail.example.com', 'smtp://', 'smtp://u@host', 'smtp://host/path', 'smtp://host:0'],
    ...['smtp://u:p@mail.example.com?tls=off', 'smtps://host?tls=off', 'smtp://host?tls=no', 'smtp://u:%zz@host'],
  ])
    assert.equal(read(url).config, null, url)
  const { effective } = read('smtp://u:secret-word@host')
  assert.equal(effective.find(({ name }) => name === 'KONTOR_SMTP_URL')?.value, 'smtp://u:hidden@host')
  assert.doesNotMatch(read('smtp://u:secret-word@host/path').errors.join(), /secret-word/)
  assert.match(inspectConfig({ KONTOR_SMTP_URL: 'smtp://host' }).errors.join(), /KONTOR_SMTP_FROM is not/)
  const from = (address: string) => inspectConfig({ KONTOR_SMTP_URL: 'smtp://host', KONTOR_SMTP_FROM: address }).config
  assert.equal(from('Kontor <kontor@example.com>'), null)
})
