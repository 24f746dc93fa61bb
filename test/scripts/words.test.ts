import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../scripts/lint/words.ts', import.meta.url))

test('lint rejects words of the list in comments, identifiers and docs, and names file, line and replacement', t => {
  const folder = mkdtempSync(join(tmpdir(), 'kontor-words-'))
  t.after(() => rmSync(folder, { recursive: true }))
  execFileSync('git', ['init', '-q'], { cwd: folder })
  writeFileSync(join(folder, 'a.ts'), 'const notifyAll = 1\nconst t\u{65}llAll = notifyAll // as who\u{65}ver asked\n')
  writeFileSync(
    join(folder, 'b.md'),
    'The metric `kontor_nats_passed_over_messages` is allowed. The epoch starts an\u{65}w.\n',
  )
  const { status, stderr } = spawnSync(process.execPath, [script], { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 1)
  assert.deepEqual(
    stderr
      .split('\n')
      .slice(0, 3)
      .map(line => line.replace(/" ?\..*|".*/, '')),
    ['a.ts:2: do not write ', 'a.ts:2: do not write ', 'b.md:1: do not write '],
  )
  assert.match(stderr, /a\.ts:2: do not write "t\u0065ll"\. Write: send/)
  assert.match(stderr, /^3 words to replace/m)
})
