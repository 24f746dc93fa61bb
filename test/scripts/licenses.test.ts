import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const ALLOWED = [
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'Unlicense',
  'CC0-1.0',
  'PostgreSQL',
  'MIT-0',
  'OFL-1.1', // fonts
  'BlueOak-1.0.0',
]

type Package = { dev?: boolean; link?: boolean; license?: string; integrity?: string; resolved?: string }
const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, Package>
}
const installed = Object.entries(packages).filter(([path, { link }]) => path.startsWith('node_modules/') && !link)

test('all packages of the server have a permissive license', () => {
  const others = installed.filter(([, { dev, license }]) => !dev && !isAllowed(license))
  assert.deepEqual(
    others.map(([path, { license }]) => `${path}: ${license}`),
    [],
  )
})

test('every package in the lock file has an integrity hash', () => {
  assert.deepEqual(
    installed.filter(([, { integrity }]) => !integrity).map(([path]) => path),
    [],
  )
  assert.deepEqual(
    installed.filter(([, { resolved }]) => resolved).map(([path]) => path),
    [],
  )
})

/** One allowed alternative is enough. */
function isAllowed(license = ''): boolean {
  return license
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some(name => ALLOWED.includes(name))
}
