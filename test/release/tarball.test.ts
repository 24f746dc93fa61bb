import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pack } from '../../scripts/pack.ts'
import { hears, startProgram, temporaryDirectory } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

test('the tarball runs in an empty folder: server, console, guides, script, command line', async t => {
  const folder = await temporaryDirectory(t)
  const home = join(folder, 'node_modules/kontor')
  await mkdir(home, { recursive: true })
  execFileSync('tar', ['-xzf', pack(folder), '-C', home, '--strip-components=1'])
  await linkDependencies(home, join(folder, 'node_modules'))
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true })
  await symlink('../kontor/bin/kontor.mjs', join(folder, 'node_modules/.bin/kontor'))

  const files = readdirSync(home, { recursive: true, encoding: 'utf8' })
  assert.deepEqual(
    files.filter(name =>
      /^(?:src\/(?!domain\/)|embedded-postgres\/).*\.ts$|^test|^bench|^torture|node_modules/.test(name),
    ),
    [],
  )
  const database = await testDatabase({ empty: true })
  t.after(() => database.drop())
  const env = {
    DATABASE_URL: database.url,
    KONTOR_PORT: '0',
    KONTOR_OPS_PORT: 'off',
    KONTOR_SECRET_KEY: '22'.repeat(32),
  }
  const server = startProgram(t, join(folder, 'node_modules/.bin/kontor'), ['start'], env, { cwd: folder })
  const [, url] = await hears(server, /is running at (\S+)/)
  const [, key] = await hears(server, /Private key\s+(\S+)/)
  for (const path of ['/openapi.json', '/docs', '/docs/guides/webhooks', '/console', '/k.js'])
    assert.equal((await fetch(url + path)).status, 200, path)
  const written = await fetch(`${url}/v1/products`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=10' },
    body: JSON.stringify({
      entityType: 'product',
      id: 'p-1',
      sourceUpdatedAt: '2026-01-31T09:30:00Z',
      data: { sku: 'MUG' },
    }),
  })
  assert.equal(((await written.json()) as { status: string }).status, 'applied')
  server.child.kill('SIGTERM')
  assert.equal(await server.ended, 0, server.err())
})

/** As an installation has them beside the package; that they are installed is npm's part. */
async function linkDependencies(home: string, target: string): Promise<void> {
  const { dependencies, optionalDependencies } = JSON.parse(
    await readFile(join(home, 'package.json'), 'utf8'),
  )
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const installed = join(root, 'node_modules', name)
    if (!existsSync(installed)) continue
    await mkdir(dirname(join(target, name)), { recursive: true })
    await symlink(installed, join(target, name))
  }
}
