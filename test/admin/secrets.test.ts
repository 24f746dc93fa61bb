import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { loadSecretKeys, openSecrets } from '../../src/admin/secrets.ts'

const OLD = Buffer.alloc(32, 1)
const NEW = Buffer.alloc(32, 2)

async function directory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'kontor-secrets-'))
  t.after(() => rm(path, { recursive: true }))
  return path
}

test('a sealed secret opens again, and every seal is different', () => {
  const secrets = openSecrets([OLD])
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), text => {
      const sealed = secrets.seal(text)
      assert.match(sealed, /^v1\.[\w-]+\.[\w-]+\.[\w-]*$/)
      assert.equal(secrets.open(sealed), text)
      assert.notEqual(secrets.seal(text), sealed)
    }),
  )
})

test('a changed seal, or one of another key, does not open', () => {
  const secrets = openSecrets([OLD])
  const sealed = secrets.seal('whsec_abc')
  const [format, iv, tag, data] = sealed.split('.')
  const flipped = (part: string | undefined) => (part!.startsWith('A') ? `B${part!.slice(1)}` : `A${part!.slice(1)}`)
  for (const changed of [
    [format, flipped(iv), tag, data],
    [format, iv, flipped(tag), data],
    [format, iv, tag, flipped(data)],
    [format, iv, tag!.slice(0, 6), data],
    ['v2', iv, tag, data],
  ])
    assert.throws(() => secrets.open(changed.join('.')), changed.join('.'))
  assert.throws(() => openSecrets([NEW]).open(sealed), /different secret key/)
})

test('a secret key is replaced by putting the new one first', () => {
  const sealed = openSecrets([OLD]).seal('whsec_abc')
  const both = openSecrets([NEW, OLD])
  assert.equal(both.open(sealed), 'whsec_abc')
  assert.equal(openSecrets([NEW]).open(both.seal('whsec_abc')), 'whsec_abc')
})

test('without a secret key nothing is sealed, and the message says how to create one', () => {
  assert.throws(() => openSecrets(null).seal('x'), {
    code: 'secret_key_missing',
    message: /KONTOR_SECRET_KEY/,
  })
  assert.throws(() => openSecrets(null).open('v1.a.b.c'), /KONTOR_SECRET_KEY/)
})

test('the embedded mode creates a key once, readable by its owner only', async t => {
  const dataDir = await directory(t)
  const load = () => loadSecretKeys({ secretKeys: null, dataDir, isEmbedded: true })
  // Several processes at once must get the same key.
  const loaded = await Promise.all(Array.from({ length: 8 }, load))
  assert.deepEqual(loaded, Array(8).fill(loaded[0]))
  assert.equal(loaded[0]!.length, 1)
  assert.equal((await stat(join(dataDir, 'secret.key'))).mode & 0o777, 0o600)
  assert.deepEqual(await load(), loaded[0])
})

test('a configured key comes first, and the one in the data directory still decrypts', async t => {
  const dataDir = await directory(t)
  const [created] = (await loadSecretKeys({ secretKeys: null, dataDir, isEmbedded: true }))!
  assert.deepEqual(await loadSecretKeys({ secretKeys: [NEW], dataDir, isEmbedded: true }), [NEW, created])
})

test('with an external database no key is created', async t => {
  const dataDir = await directory(t)
  assert.equal(await loadSecretKeys({ secretKeys: null, dataDir, isEmbedded: false }), null)
  await assert.rejects(readFile(join(dataDir, 'secret.key')), { code: 'ENOENT' })
})

test('a damaged key file is an error, not a new key', async t => {
  const dataDir = await directory(t)
  await writeFile(join(dataDir, 'secret.key'), 'deadbeef\n')
  await assert.rejects(loadSecretKeys({ secretKeys: null, dataDir, isEmbedded: true }), /backup/)
})
