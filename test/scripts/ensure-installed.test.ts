import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../scripts/ensure-installed.mjs', import.meta.url))

type Package = { version: string; dev?: true; optional?: true; os?: readonly string[]; cpu?: string }

const server = { version: '1.0.0' }
const linter = { version: '1.0.0', dev: true } as const
const own = { version: '1.0.0', optional: true, os: [process.platform], cpu: process.arch } as const
const foreign = { version: '1.0.0', optional: true, os: ['plan9'] } as const
const locked = { server, linter, own, foreign }

/** Runs the script with these packages installed. Returns the arguments for npm, or null if npm was not called. */
function npmCalled(
  t: TestContext,
  mode: 'production' | 'development',
  installed: Record<string, Package>,
  removed: string[] = [],
): string[] | null {
  const root = mkdtempSync(join(tmpdir(), 'kontor-install-'))
  t.after(() => rmSync(root, { recursive: true }))
  for (const directory of ['scripts', 'path', 'node_modules/.bin'])
    mkdirSync(join(root, directory), { recursive: true })
  cpSync(script, join(root, 'scripts/ensure-installed.mjs'))
  const write = (path: string, packages: Record<string, Package>) => {
    const entries = Object.entries(packages).map(([name, about]) => [`node_modules/${name}`, about])
    writeFileSync(join(root, path), JSON.stringify({ packages: { '': {}, ...Object.fromEntries(entries) } }))
  }
  for (const name of Object.keys(installed)) {
    mkdirSync(join(root, 'node_modules', name))
    writeFileSync(join(root, 'node_modules', name, 'package.json'), '{}')
  }
  for (const name of removed) rmSync(join(root, 'node_modules', name), { recursive: true })
  write('package-lock.json', locked)
  if (Object.keys(installed).length > 0) write('node_modules/.package-lock.json', installed)
  writeFileSync(join(root, 'path/npm'), `#!/bin/sh\necho "$@" > '${root}/called'\n`, { mode: 0o755 })
  const ran = spawnSync(process.execPath, [join(root, 'scripts/ensure-installed.mjs'), mode], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(root, 'path')}${delimiter}${process.env.PATH}` },
  })
  assert.equal(ran.status, 0, ran.stderr)
  const called = join(root, 'called')
  return existsSync(called) ? readFileSync(called, 'utf8').trim().split(' ') : null
}

test('in a fresh clone, a start installs the packages of the server, and a test run installs everything', t => {
  const production = npmCalled(t, 'production', {})
  assert.equal(production?.[0], 'install')
  assert.ok(production.includes('--omit=dev'))
  const development = npmCalled(t, 'development', {})
  assert.equal(development?.[0], 'install')
  assert.ok(!development.includes('--omit=dev'))
})

test('after a manual npm install, nothing is installed or removed', t => {
  for (const mode of ['production', 'development'] as const)
    assert.equal(npmCalled(t, mode, { server, linter, own }), null)
})

test('the packages of the server are enough for a start, and are completed for a test run', t => {
  assert.equal(npmCalled(t, 'production', { server, own }), null)
  assert.ok(!npmCalled(t, 'development', { server, own })?.includes('--omit=dev'))
})

test('a changed lock file updates a development install, also at a start', t => {
  const called = npmCalled(t, 'production', { server: { version: '0.9.0' }, linter, own })
  assert.equal(called?.[0], 'install')
  assert.ok(!called.includes('--omit=dev'))
})

test('packages for this platform are required, those for other platforms are not', t => {
  assert.equal(npmCalled(t, 'production', { server, foreign })?.[0], 'install')
})

test('a package with a missing folder is installed again', t => {
  assert.equal(npmCalled(t, 'production', { server, linter, own }, ['server'])?.[0], 'install')
})
