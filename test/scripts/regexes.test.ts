import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../scripts/lint/regexes.ts', import.meta.url))

/** Runs the script on a repository with one file. Returns its messages. */
function lint(t: { after(clean: () => void): void }, lines: string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'kontor-regexes-'))
  t.after(() => rmSync(folder, { recursive: true }))
  execFileSync('git', ['init', '-q', folder])
  mkdirSync(join(folder, 'src'))
  writeFileSync(join(folder, 'src/a.ts'), lines.join('\n'))
  const { status, stderr } = spawnSync(process.execPath, [script], { cwd: folder, encoding: 'utf8' })
  const messages = stderr.split('\n').filter(line => line.startsWith('src/a.ts'))
  assert.equal(status, messages.length === 0 ? 0 : 1, stderr)
  return messages
}

test('lint rejects expressions that take more than linear time, wherever they are written', t => {
  const messages = lint(t, [
    "const WORD = '[a-z]+'",
    'const a = /[.:]+$/',
    `const b = new RegExp(\`$\{WORD}$\{WORD}!\`, 'i')`,
    "const c = { pattern: '^(a+)+$' }",
    'const d = RegExp(String.raw`\\s+$`)',
  ])
  assert.deepEqual(
    messages.map(message => message.slice(0, 'src/a.ts:2'.length)),
    ['src/a.ts:2', 'src/a.ts:3', 'src/a.ts:4', 'src/a.ts:5'],
  )
  assert.match(messages[0]!, /2nd degree polynomial/)
  assert.match(messages[2]!, /exponential/)
})

test('lint rejects expressions that it cannot check', t => {
  const [lookAround, dynamic] = lint(t, ['const a = /(?<!x)y+/', 'const b = (x: string) => new RegExp(x)']).sort()
  assert.match(lookAround!, /cannot be checked/)
  assert.match(dynamic!, /built at run time/)
})

test('lint accepts linear expressions', t => {
  assert.deepEqual(lint(t, ['const a = /^[a-z]+@[a-z]+$/', "const b = '/x+$/' // /x+$/", 'const c = 1 / 2 / 3']), [])
})
