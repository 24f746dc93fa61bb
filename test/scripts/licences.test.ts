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
  'BlueOak-1.0.0',
]

type Package = { dev?: boolean; link?: boolean; license?: string; integrity?: string; resolved?: string }
const { packages } = JSON.parse(
  readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
) as { packages: Record<string, Package> }
const installed = Object.entries(packages).filter(
  ([path, { link }]) => path.startsWith('node_modules/') && !link,
)

test('what the server uses may be used by everybody', () => {
  const others = installed.filter(([, { dev, license }]) => !dev && !isAllowed(license))
  assert.deepEqual(
    others.map(([path, { license }]) => `${path}: ${license}`),
    [],
  )
})

test('every package of the lock file is held against its hash, wherever it comes from', () => {
  assert.deepEqual(
    installed.filter(([, { integrity }]) => !integrity).map(([path]) => path),
    [],
  )
  assert.deepEqual(
    installed.filter(([, { resolved }]) => resolved).map(([path]) => path),
    [],
  )
})

/** Of alternatives, one suffices. */
function isAllowed(license = ''): boolean {
  return license
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some(name => ALLOWED.includes(name))
}
