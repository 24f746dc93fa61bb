import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashOfSecret } from '../../src/domain/tenants/keys.ts'
import { findSource } from '../../src/store/inbound/sources.ts'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()
const { id: tenant } = await opened.admin.tenants.create({ name: 'acme' })

const create = (settings: Record<string, unknown> = {}) =>
  opened.admin.sources.create({ tenant, type: 'webhook', ...settings })

async function invalidPointers(work: Promise<unknown>): Promise<string[]> {
  let errors: { pointer: string }[] = []
  await assert.rejects(work, (error: { kind?: string; errors?: { pointer: string }[] }) => {
    assert.equal(error.kind, 'invalid')
    errors = error.errors!
    return true
  })
  return errors.map(({ pointer }) => pointer)
}

test('a new source has a random token, no secret and the documented defaults', async () => {
  const created = await create()
  assert.match(created.id, /^src_[0-9A-Za-z]+$/)
  assert.match(created.token, /^tok_/)
  assert.equal(created.signing_secret, null)
  assert.equal(created.tenant, tenant)
  assert.equal(created.enabled, true)
  assert.deepEqual(created.rate_limit, { events: 6000, per_seconds: 60 })
  assert.equal(created.overflow, 'defer')
  assert.equal(created.max_body_bytes, 1_048_576)
  assert.equal(created.path, `/ingest/inbound/${created.id}`)
})

test('all given settings are stored', async () => {
  const settings = {
    name: 'shop',
    enabled: false,
    preset: 'stripe',
    event_type_override: { map: { a: 'b' } },
    event_id_path: 'payload.id',
    require_timestamped_signature: true,
    rate_limit: { events: 1, per_seconds: 2 },
    overflow: 'drop',
    max_body_bytes: 8_388_608,
  }
  const created = await create({ ...settings, headers: ['X-Shop-Id', 'x-shop-id'] })
  const { token: _, signing_secret: __, ...view } = created
  assert.deepEqual(await opened.admin.sources.show(created.id), view)
  assert.deepEqual({ ...view, ...settings, headers: ['x-shop-id'] }, view)
})

test('the token is stored as a hash and the secret encrypted, and neither is shown again', async () => {
  const created = await create({ token: 'my-own-long-token', signing_secret: 'my-own-long-secret' })
  assert.equal(created.token, 'my-own-long-token')
  assert.equal(created.signing_secret, 'my-own-long-secret')
  const kept = (await findSource(opened.pool, created.id))!
  assert.equal(kept.tokens[0]!.hash, hashOfSecret('my-own-long-token').toString('hex'))
  assert.equal(opened.secrets.open(kept.signingSecrets[0]!.sealed), 'my-own-long-secret')
  const shown = JSON.stringify([
    kept,
    await opened.admin.sources.show(created.id),
    await opened.admin.sources.list(tenant),
    await opened.admin.sources.update(created.id, { name: 'renamed' }),
  ])
  for (const secret of ['my-own-long-token', 'my-own-long-secret', 'oken"', 'cret"'])
    assert.ok(!shown.includes(secret), secret)
})

test('a secret can be generated', async () => {
  const created = await create({ signing_secret: 'generate' })
  assert.match(created.signing_secret!, /^whsec_/)
})

test('all validation errors are reported together', async () => {
  const bad = {
    type: 'ftp',
    tenant: '',
    name: '',
    enabled: 'yes',
    preset: 'paypal',
    event_type_override: { set: 'a', prefix: 'b' },
    event_id_path: '.id',
    require_timestamped_signature: 1,
    rate_limit: { events: 0, per_seconds: 60 },
    overflow: 'explode',
    max_body_bytes: 8_388_609,
    headers: ['Authorization'],
    token: 'short',
    signing_secret: 'with blanks in it',
    color: 'green',
  }
  const errors = await invalidPointers(opened.admin.sources.create(bad))
  assert.deepEqual(
    errors.toSorted(),
    Object.keys(bad)
      .map(name => `/${name}`)
      .toSorted(),
  )
})

test('values that the database cannot store are rejected', async () => {
  assert.deepEqual(await invalidPointers(create({ name: 'a\u0000b' })), ['/name'])
  assert.deepEqual(await invalidPointers(create({ event_type_override: { map: { '\ud800': 'x' } } })), [
    '/event_type_override',
  ])
})

test('credentials and signatures cannot be kept headers', async () => {
  for (const name of ['Cookie', 'x-api-key', 'Stripe-Signature', 'x-shopify-hmac-sha256', 'x-auth-token'])
    assert.deepEqual(await invalidPointers(create({ headers: [name] })), ['/headers'], name)
})

test('an update changes only the given settings', async () => {
  const { token: _, signing_secret: __, ...before } = await create({ name: 'one', event_type_override: { set: 'x' } })
  const after = await opened.admin.sources.update(before.id, { overflow: 'drop', event_type_override: null })
  assert.deepEqual(
    { ...after, updated_at: before.updated_at },
    {
      ...before,
      overflow: 'drop',
      event_type_override: null,
    },
  )
})

test('an update cannot change the type or a secret', async () => {
  const { id } = await create()
  const errors = await invalidPointers(
    opened.admin.sources.update(id, { type: 'cdp', token: 'another-token', signing_secret: 'x', color: 1 }),
  )
  assert.deepEqual(errors.toSorted(), ['/color', '/signing_secret', '/token', '/type'])
})

test('the previous token stays valid during the overlap of a rotation', async () => {
  const { sources } = opened.admin
  const created = await create()
  const rotated = await sources.rotate(created.id, { what: 'token', overlapHours: 2 })
  assert.match(rotated.token!, /^tok_/)
  const [now, before, ...rest] = (await findSource(opened.pool, created.id))!.tokens
  assert.deepEqual(rest, [])
  assert.equal(now!.hash, hashOfSecret(rotated.token!).toString('hex'))
  assert.equal(now!.expires_at, null)
  assert.equal(before!.hash, hashOfSecret(created.token).toString('hex'))
  const hours = (Date.parse(before!.expires_at!) - Date.now()) / 3_600_000
  assert.ok(hours > 1.9 && hours <= 2)
})

test('a second rotation does not extend an expiring token', async () => {
  const { sources } = opened.admin
  const created = await create()
  const first = await sources.rotate(created.id, { what: 'token', overlapHours: 1 })
  const second = await sources.rotate(created.id, { what: 'token', overlapHours: 48 })
  assert.equal(second.tokens.length, 3)
  assert.equal(second.tokens[2]!.expires_at, first.tokens[1]!.expires_at)
})

test('without an overlap the previous token expires immediately', async () => {
  const created = await create()
  const rotated = await opened.admin.sources.rotate(created.id, { what: 'token', overlapHours: 0 })
  assert.equal(rotated.tokens.length, 1)
})

test('only the two newest signing secrets are valid', async () => {
  const { sources } = opened.admin
  const created = await create({ signing_secret: 'the-first-long-secret' })
  await sources.rotate(created.id, { what: 'signing_secret', value: 'the-second-long-secret' })
  const third = await sources.rotate(created.id, { what: 'signing_secret' })
  assert.match(third.signing_secret!, /^whsec_/)
  const kept = (await findSource(opened.pool, created.id))!.signingSecrets
  assert.deepEqual(
    kept.map(({ sealed }) => opened.secrets.open(sealed)),
    [third.signing_secret, 'the-second-long-secret'],
  )
})

test('concurrent rotations all take effect', async () => {
  const { sources } = opened.admin
  const created = await create()
  const rotated = await Promise.all(
    Array.from({ length: 5 }, () => sources.rotate(created.id, { what: 'token', overlapHours: 1 })),
  )
  const hashes = (await findSource(opened.pool, created.id))!.tokens.map(({ hash }) => hash)
  for (const token of [created.token, ...rotated.map(rotation => rotation.token!)])
    assert.ok(hashes.includes(hashOfSecret(token).toString('hex')))
})

test('an invalid overlap is rejected', async () => {
  const { id } = await create()
  for (const overlapHours of [-1, 721, Number.NaN])
    assert.deepEqual(await invalidPointers(opened.admin.sources.rotate(id, { what: 'token', overlapHours })), [
      '/overlap_hours',
    ])
})

test('a source can be disabled, enabled and deleted', async () => {
  const { sources } = opened.admin
  const { id } = await create()
  assert.equal((await sources.setEnabled(id, false)).enabled, false)
  assert.equal((await sources.setEnabled(id, true)).enabled, true)
  await sources.delete(id)
  const gone = { kind: 'not_found', code: 'source_not_found' }
  await assert.rejects(sources.show(id), gone)
  await assert.rejects(sources.update(id, { name: 'x' }), gone)
  await assert.rejects(sources.rotate(id, { what: 'token' }), gone)
  await assert.rejects(sources.setEnabled(id, true), gone)
  await assert.rejects(sources.delete(id), gone)
  assert.ok(!(await sources.list(tenant)).some(source => source.id === id))
})

test('a tenant sees only its own sources', async () => {
  const other = await opened.admin.tenants.create({ name: 'other' })
  await create()
  assert.deepEqual(await opened.admin.sources.list(other.id), [])
})

test('"generate" creates a token and a secret, also in a rotation', async () => {
  const created = await create({ token: 'generate', signing_secret: 'generate' })
  assert.match(created.token, /^tok_/)
  const rotated = await opened.admin.sources.rotate(created.id, { what: 'token', value: 'generate' })
  assert.match(rotated.token!, /^tok_/)
})

test('a given token or secret must be long enough, and decodable if the preset decodes it', async () => {
  const { sources } = opened.admin
  for (const value of ['fifteen-letters', 'x'.repeat(501), 'with blanks in between'])
    for (const name of ['token', 'signing_secret'])
      assert.deepEqual(await invalidPointers(create({ [name]: value })), [`/${name}`], value)
  const preset = 'standard-webhooks'
  for (const bad of ['whsec_not base64!!!!', 'whsec_c2hvcnQ=', 'not-base64-at-all', `whsec_${btoa('15 bytes of key')}`])
    assert.deepEqual(await invalidPointers(create({ preset, signing_secret: bad })), ['/signing_secret'], bad)
  const good = `whsec_${btoa('a key of 16 byte')}`
  const { id } = await create({ preset, signing_secret: good })
  const rotation = { what: 'signing_secret', value: 'a-long-enough-secret' } as const
  assert.deepEqual(await invalidPointers(sources.rotate(id, rotation)), ['/signing_secret'])
  assert.equal((await sources.rotate(id, { what: 'signing_secret' })).signing_secrets.length, 2)

  const plain = await create({ signing_secret: 'a-long-enough-secret' })
  assert.deepEqual(await invalidPointers(sources.update(plain.id, { preset })), ['/preset'])
  assert.equal((await sources.update(plain.id, { preset: 'github' })).preset, 'github')
})
