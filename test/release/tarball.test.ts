import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pack } from '../../scripts/pack.ts'
import { hears, startProgram, temporaryDirectory } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'
import { isLong } from '../long.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

// npm downloads 236 packages (360 MB) in 20 s of CPU time, so only CI does that. Otherwise the test uses the installed packages and
// the PostgreSQL of the test run.
const how = isLong ? 'as npm installs it, on its own PostgreSQL' : 'with the packages of this repository'

test(`the tarball works in an empty folder, ${how}: server, console, guides, script, command line`, async t => {
  const folder = await temporaryDirectory(t)
  const home = join(folder, 'node_modules/kontor')
  if (isLong) await install(pack(folder), folder)
  else await unpack(pack(folder), folder, home)

  const files = readdirSync(home, { recursive: true, encoding: 'utf8' })
  assert.deepEqual(
    files.filter(name =>
      /^(?:src\/(?!domain\/)|embedded-postgres\/).*\.ts$|^test|^bench|^torture|node_modules/.test(name),
    ),
    [],
  )
  const env = { KONTOR_PORT: '0', KONTOR_OPS_PORT: 'off', ...(isLong ? {} : await databaseSettings(t)) }
  const server = startProgram(t, join(folder, 'node_modules/.bin/kontor'), ['start'], env, { cwd: folder })
  const [, url] = await hears(server, /is running at (\S+)/)
  const [, keys] = await hears(server, /The keys are in the file (.+)\. Copy/)
  const [, key] = /^PRIVATE_KEY=(.+)$/m.exec(await readFile(keys!, 'utf8'))!
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

async function databaseSettings(t: TestContext): Promise<Record<string, string>> {
  const database = await testDatabase({ empty: true })
  t.after(() => database.drop())
  return { DATABASE_URL: database.url, KONTOR_SECRET_KEY: '22'.repeat(32) }
}

/** Like a user who has only the tarball and npm. */
async function install(tarball: string, folder: string): Promise<void> {
  // npm passes its settings in the environment. Those of the test run must not apply to that folder.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  await writeFile(join(folder, 'package.json'), '{}')
  const words = ['install', '--no-audit', '--no-fund', '--loglevel=error', tarball]
  execFileSync('npm', words, { cwd: folder, env, stdio: 'pipe' })
}

async function unpack(tarball: string, folder: string, home: string): Promise<void> {
  await mkdir(home, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', home, '--strip-components=1'])
  await linkDependencies(home, join(folder, 'node_modules'))
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true })
  await symlink('../kontor/bin/kontor.mjs', join(folder, 'node_modules/.bin/kontor'))
}

/** Links the packages that npm would install beside the package. */
async function linkDependencies(home: string, target: string): Promise<void> {
  const { dependencies, optionalDependencies } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const installed = join(root, 'node_modules', name)
    if (!existsSync(installed)) continue
    await mkdir(dirname(join(target, name)), { recursive: true })
    await symlink(installed, join(target, name))
  }
}
