import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createAccount, createOperator, createUser, type KeyPair } from '@nats-io/nkeys'
import { hears, startKontor, temporaryDirectory } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'
import { testNats, withoutNats } from '../nats.ts'
import { TEST_SECRET_KEY } from '../server.ts'

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** In the format that `nsc` creates. */
function jwt(issuer: KeyPair, subject: KeyPair, type: string, facts: object = {}): string {
  const iat = Math.floor(Date.now() / 1000)
  const iss = issuer.getPublicKey()
  const sub = subject.getPublicKey()
  const claims = { jti: `${type}-1`, iat, iss, sub, name: type, nats: { type, version: 2, ...facts } }
  const text = `${base64({ typ: 'JWT', alg: 'ed25519-nkey' })}.${base64(claims)}`
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`
}

const ANY = -1
const LIMITS = {
  ...{
    subs: ANY,
    data: ANY,
    payload: ANY,
    imports: ANY,
    exports: ANY,
    wildcards: true,
    conn: ANY,
    leaf: ANY,
  },
  ...{ mem_storage: ANY, disk_storage: ANY, streams: ANY, consumer: ANY },
}

function credentials() {
  const [operator, account, user] = [createOperator(), createAccount(), createUser()]
  const system = createAccount()
  const accounts = [account, system].map(
    (own, i) => `${own.getPublicKey()}: ${jwt(operator, own, 'account', i === 0 ? { limits: LIMITS } : {})}`,
  )
  const userLimits = { subs: ANY, data: ANY, payload: ANY, pub: {}, sub: {} }
  return {
    server: `operator: ${jwt(operator, operator, 'operator')}
resolver: MEMORY
system_account: ${system.getPublicKey()}
resolver_preload: { ${accounts.join(', ')} }`,
    file: `-----BEGIN NATS USER JWT-----
${jwt(account, user, 'user', userLimits)}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${Buffer.from(user.getSeed()).toString()}
------END USER NKEY SEED------
`,
  }
}

/** A self-signed certificate. */
function makeCertificate(directory: string): { certificate: string; key: string } {
  const [certificate, key] = [join(directory, 'server.pem'), join(directory, 'server.key')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', certificate], {
    stdio: 'ignore',
  })
  return { certificate, key }
}

test('several processes reach a NATS server over TLS with a credentials file, and each event takes effect once', {
  skip: withoutNats,
}, async t => {
  const directory = await temporaryDirectory(t)
  const { certificate, key } = makeCertificate(directory)
  const { server, file } = credentials()
  const NATS_CREDS = join(directory, 'kontor.creds')
  await writeFile(NATS_CREDS, file)
  const nats = await testNats({
    settings: `tls { cert_file: "${certificate}", key_file: "${key}" }\n${server}`,
  })
  t.after(() => nats.end())
  const database = await testDatabase()
  t.after(() => database.drop())

  const kontor = startKontor(t, ['start', '--port', '0'], {
    ...{
      DATABASE_URL: database.url,
      KONTOR_DATA_DIR: directory,
      KONTOR_SECRET_KEY: TEST_SECRET_KEY,
      KONTOR_LOG_FORMAT: 'json',
    },
    ...{ NATS_URL: `tls://localhost:${nats.port}`, NATS_CREDS, NODE_EXTRA_CA_CERTS: certificate },
    ...{ KONTOR_PROCESSES: '2', KONTOR_OPS_PORT: '0' },
  })
  await hears(kontor, /Stop +Ctrl-C/)
  const [, url] = /is running at (\S+)/.exec(kontor.err())!
  const keys = await readFile(join(directory, 'keys'), 'utf8')
  const [trackingKey] = /trk_\w+/.exec(keys)!
  const [privateKey] = /private-\w+/.exec(keys)!
  const track = (n: number) =>
    fetch(`${url}/v1/track`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${trackingKey}`,
        'content-type': 'application/json',
        connection: 'close',
      },
      body: JSON.stringify({ event_type: 'secured', event_id: `e-${n % 20}` }),
    })
  // Each event is sent twice, to any of the processes.
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => track(i)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  const listed = async () => {
    const headers = { authorization: `Bearer ${privateKey}` }
    const answer = await fetch(`${url}/v1/events?event_type=secured&limit=100`, { headers })
    return ((await answer.json()) as { results: unknown[] }).results.length
  }
  await eventually('all events', async () => (await listed()) === 20, { state: listed })
  kontor.child.kill('SIGTERM')
  assert.equal(await kontor.ended, 0)
})
