import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { settings } from '../../src/config/settings.ts'

test('docs/configuration.md lists every setting with its default and meaning, and no other', () => {
  const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
  const cellsOf = (line: string) => line.split('|').map(cell => cell.trim())
  const documented = text
    .split('\n')
    .filter(line => /^\| `[A-Z_]+` +\|/.test(line))
    .map(cellsOf)
  const expected = Object.values(settings).map(({ name, default: value, meaning }) =>
    cellsOf(`| \`${name}\` | ${value === null ? 'none' : `\`${value}\``} | ${meaning} |`),
  )
  assert.deepEqual(documented.toSorted(), expected.toSorted())
})
