import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findViolations } from '../../scripts/check-imports.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

function tree(t: TestContext, files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'kontor-imports-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
  return directory
}

test('this repository keeps its own rules', () => {
  assert.deepEqual(findViolations(root), [])
})

const breaches: [what: string, file: string, content: string, rule: RegExp][] = [
  [
    'http imports pipeline',
    'src/http/a.ts',
    "import { x } from '../pipeline/x.ts'",
    /http may import .* not pipeline/,
  ],
  [
    'domain imports store',
    'src/domain/a/b.ts',
    "import type { X } from '../../store/x.ts'",
    /nothing else of ours, not store/,
  ],
  ['store imports a value of the log', 'src/store/a.ts', "import { x } from '../log/x.ts'", /not log/],
  ['store imports http', 'src/store/a.ts', "export * from '../http/x.ts'", /not http/],
  [
    'http imports the embedded database',
    'src/http/a.ts',
    "const x = await import('../../embedded-postgres/x.ts')",
    /not embedded-postgres/,
  ],
  ['intake imports admin', 'src/intake/a.ts', "import\n  x,\n  { y }\nfrom '../admin/x.ts'", /not admin/],
  ['a bare import counts', 'src/log/a.ts', "import '../intake/x.ts'", /not intake/],
  [
    'the server imports a test',
    'src/http/a.ts',
    "import { x } from '../../test/x.ts'",
    /not part of the server/,
  ],
  ['a file without a part', 'src/helpers/a.ts', '', /belongs to no part/],
  [
    'SQL in http',
    'src/http/a.ts',
    `const q = \`\n  select id\n  from events where x = $\{y}\``,
    /SQL is written only in/,
  ],
  [
    'SQL in admin',
    'src/admin/a.ts',
    "db.query('insert into tenants (name) values ($1)')",
    /SQL is written only in/,
  ],
  [
    'SQL after a template part',
    'src/jobs/a.ts',
    `q(\`$\{w} x\`, "update events set a = 1")`,
    /SQL is written only in/,
  ],
  [
    'the environment read in http',
    'src/http/a.ts',
    'const port = process.env.PORT',
    /only config reads process.env/,
  ],
]

for (const [what, file, content, rule] of breaches)
  test(`caught: ${what}`, t => {
    const violations = findViolations(tree(t, { [file]: content }))
    assert.equal(violations.length, 1)
    assert.match(violations[0]!.rule, rule)
  })

test('what only looks like a breach is let through', t => {
  const directory = tree(t, {
    'src/http/a.ts': [
      "// import { x } from '../pipeline/x.ts'",
      '/* process.env, select a from b */',
      "const words = 'Please select one of these. It comes from the list.'",
      'const pattern = /[\'"`]/ // process.env',
      "const told = 'process.env'",
      "import { y } from '../store/y.ts'",
    ].join('\n'),
    'src/store/a.ts': "import type { Entry } from '../domain/entry.ts'\nconst q = 'select a from b'",
    'src/runtime/a.ts': "import { x } from '../../embedded-postgres/x.ts'",
  })
  assert.deepEqual(findViolations(directory), [])
})

test('the script names the place and the rule, and fails', t => {
  const directory = tree(t, { 'src/http/a.ts': "\nimport { x } from '../pipeline/x.ts'" })
  const ran = spawnSync(process.execPath, [join(root, 'scripts/check-imports.ts'), directory], {
    encoding: 'utf8',
  })
  assert.equal(ran.status, 1)
  assert.match(ran.stderr, /src\/http\/a\.ts:2 imports src\/pipeline\/x\.ts/)
})
