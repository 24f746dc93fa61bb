import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'kontor-lint-'))
after(() => rmSync(root, { recursive: true }))

const oneWay = (from: string, to: string) => new RegExp(`${from} may not import ${to}`)
const onlyThere = /SQL is written only in/

const breaches: [what: string, file: string, content: string, rule: RegExp][] = [
  ['http imports pipeline', 'src/http/a.ts', "import { x } from '../pipeline/x.ts'", oneWay('http', 'pipeline')],
  [
    'domain imports a type of store',
    'src/domain/a/b.ts',
    "import type { X } from '../../store/x.ts'",
    oneWay('domain', 'store'),
  ],
  ['store imports the log', 'src/store/a/b.ts', "import { x } from '../../log/x.ts'", oneWay('store', 'log')],
  ['store imports reports', 'src/store/a/c.ts', "import { x } from '../../reports/x.ts'", oneWay('store', 'reports')],
  ['store passes http on', 'src/store/a/d.ts', "export * from '../../http/x.ts'", oneWay('store', 'http')],
  [
    'a provider imports intake',
    'src/domain/a/b/c.ts',
    "import { x } from '../../../intake/x.ts'",
    oneWay('domain', 'intake'),
  ],
  [
    'http loads the embedded database',
    'src/http/b.ts',
    "const x = await import('../../embedded-postgres/x.ts')",
    oneWay('http', 'embedded-postgres'),
  ],
  ['intake imports admin', 'src/intake/a.ts', "import\n  x,\n  { y }\nfrom '../admin/x.ts'", oneWay('intake', 'admin')],
  ['a bare import counts', 'src/log/a.ts', "import '../intake/x.ts'", oneWay('log', 'intake')],
  ['the server imports a test', 'src/http/c.ts', "import { x } from '../../test/x.ts'", oneWay('http', 'test')],
  ['a folder without a place', 'src/helpers/a.ts', "import { x } from '../store/x.ts'", oneWay('helpers', 'store')],
  ['the demo imports the store', 'demo/a.ts', "import { x } from '../src/store/x.ts'", /demo may import domain/],
  [
    'the embedded database imports config',
    'embedded-postgres/a.ts',
    "import { x } from '../src/config/x.ts'",
    /knows nothing of the rest/,
  ],
  ['two files import each other', 'src/http/d.ts', "import { e } from './e.ts'\nexport const d = e", /part of a cycle/],
  [
    'two files import types of each other',
    'bench/f.ts',
    "import type { G } from './g.ts'\nexport type F = G",
    /part of a cycle/,
  ],
  ['SQL in http', 'src/http/h.ts', `const q = \`\n  select id\n  from events where x = $\{y}\``, onlyThere],
  ['SQL in admin', 'src/admin/a.ts', "db.query('insert into tenants (name) values ($1)')", onlyThere],
  ['SQL after a template', 'src/jobs/a.ts', `q(\`$\{w} x\`, "update events set a = 1")`, onlyThere],
  ['SQL in the middle', 'src/jobs/b.ts', "q('begin; delete from events')", onlyThere],
  ['the environment read in http', 'src/http/i.ts', 'const port = process.env.PORT', /process\.env/],
]

const harmless: Record<string, string> = {
  'src/http/e.ts': "import { d } from './d.ts'\nexport const e = d",
  'bench/g.ts': "import type { F } from './f.ts'\nexport type G = F",
  'src/http/y.ts': [
    "// import { x } from '../pipeline/x.ts'",
    '/* process.env, select a from b */',
    "const words = 'Please select one of these. It comes from the list.'",
    'const pattern = /[\'"`]/ // process.env',
    "const text = 'process.env'",
    "import { y } from '../store/a/y.ts'",
  ].join('\n'),
  'src/store/a/y.ts': "import type { Entry } from '../../domain/entry.ts'\nconst q = 'select a from b'",
  'src/store/a/z.ts': "import { x } from '../reports/x.ts'",
  'src/runtime/a.ts': "import { x } from '../../embedded-postgres/x.ts'",
  'src/config/a.ts': 'export const port = process.env.PORT',
  'demo/b.ts': "import { x } from '../src/domain/x.ts'\nimport { y } from './a.ts'",
}

const found = lint({
  ...Object.fromEntries(breaches.map(([, file, content]) => [file, content])),
  ...harmless,
})

/** The linter's messages about these files with the rules of this repository, by file. */
function lint(files: Record<string, string>): Map<string, string[]> {
  cpSync(join(repository, 'biome.json'), join(root, 'biome.json'))
  cpSync(join(repository, 'scripts/lint'), join(root, 'scripts/lint'), { recursive: true })
  cpSync(join(repository, '.gitignore'), join(root, '.gitignore'))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  const rules = ['noImportCycles', 'noRestrictedImports', 'noProcessEnv']
  const ran = spawnSync(
    join(repository, 'node_modules/.bin/biome'),
    ['lint', '--reporter=json', '--max-diagnostics=none', '.'],
    { cwd: root, encoding: 'utf8' },
  )
  assert.equal(ran.status, 1, ran.stderr)
  const { diagnostics } = JSON.parse(ran.stdout) as { diagnostics: Diagnostic[] }
  const ours = diagnostics.filter(
    ({ category }) => category === 'plugin' || rules.some(rule => category?.endsWith(rule)),
  )
  return new Map(
    Object.keys(files).map(file => [
      file,
      ours.filter(({ location }) => location?.path === file).map(({ message }) => message),
    ]),
  )
}

type Diagnostic = { category: string | null; message: string; location?: { path: string } }

for (const [what, file, , rule] of breaches)
  test(`lint rejects: ${what}`, () => {
    const messages = found.get(file)!
    assert.equal(messages.length, 1, messages.join('\n'))
    assert.match(messages[0]!, rule)
  })

test('lint accepts code that only resembles a violation', () => {
  for (const file of Object.keys(harmless).filter(file => !/\/[eg]\.ts$/.test(file)))
    assert.deepEqual(found.get(file), [], file)
})

test('every file named in docs/architecture.md exists', () => {
  const text = readFileSync(join(repository, 'docs/architecture.md'), 'utf8')
  const named = [...text.matchAll(/`((?:\w[\w-]*\/)+[\w-]+\.ts)`/g)].map(([, path]) => path!)
  assert.ok(named.length > 60)
  assert.deepEqual(
    named.filter(path => !existsSync(join(repository, 'src', path)) && !existsSync(join(repository, path))),
    [],
  )
})
