// Keeps the direction of imports, and SQL and process.env where they belong. `npm run lint` runs it.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { splitSource } from './split-source.ts'

/** What each part may import of ours, besides itself. */
const mayImport = {
  main: ['cli', 'config'],
  cli: [
    'runtime',
    'demo',
    'http',
    'jobs',
    'reports',
    'admin',
    'pipeline',
    'intake',
    'log',
    'store',
    'postgres',
    'domain',
    'embedded-postgres',
    'config',
    'telemetry',
  ],
  runtime: [
    'http',
    'jobs',
    'reports',
    'admin',
    'pipeline',
    'intake',
    'log',
    'store',
    'postgres',
    'domain',
    'embedded-postgres',
    'config',
    'telemetry',
  ],
  demo: ['admin', 'intake', 'log', 'store', 'postgres', 'domain'],
  http: ['reports', 'admin', 'intake', 'log', 'store', 'postgres', 'domain', 'telemetry'],
  reports: ['log', 'store', 'postgres', 'domain'],
  pipeline: ['admin', 'intake', 'log', 'store', 'postgres', 'domain'],
  jobs: ['admin', 'intake', 'log', 'store', 'postgres', 'domain'],
  admin: ['intake', 'log', 'store', 'postgres', 'domain'],
  intake: ['log', 'store', 'postgres', 'domain'],
  log: ['postgres', 'domain'],
  store: ['postgres', 'domain'],
  postgres: ['domain'],
  telemetry: ['domain'],
  domain: [],
  'embedded-postgres': [],
  config: [],
} as const satisfies Record<string, string[]>

type Part = keyof typeof mayImport

const SQL_PARTS: Part[] = ['store', 'log', 'postgres', 'embedded-postgres']
const ENVIRONMENT_PARTS: Part[] = ['config', 'embedded-postgres']

const SQL = new RegExp(
  [
    'select\\s[^;]*?\\sfrom\\s+[a-z_]+',
    'insert\\s+into\\s+[a-z_]+',
    'update\\s+[a-z_]+(\\s+[a-z]+)?\\s+set\\s',
    'delete\\s+from\\s+[a-z_]+(\\s+where\\s|$)',
    '(create|alter|drop)\\s+(table|index|database|role|trigger)\\s+[a-z_]+',
  ]
    .map(pattern => `^\\s*${pattern}|[(;]\\s*${pattern}`)
    .join('|'),
  'i',
)

export type Violation = { file: string; line: number; rule: string }

/** Every breach in the sources below `root`. */
export function findViolations(root: string): Violation[] {
  return globSync(['src/**/*.ts', 'demo/**/*.ts', 'embedded-postgres/**/*.ts'], { cwd: root })
    .sort()
    .flatMap(file => violationsOf(root, file.split(sep).join('/')))
}

function violationsOf(root: string, file: string): Violation[] {
  const part = partOf(file)
  if (part === null)
    return [{ file, line: 1, rule: 'belongs to no part: give it one in scripts/check-imports.ts' }]
  const { code, strings } = splitSource(readFileSync(join(root, file), 'utf8'))
  const violations: Violation[] = []
  const breach = (line: number, rule: string) => violations.push({ file, line, rule })
  for (const { line, text, before } of strings) {
    if (!isImport(before)) {
      if (!SQL_PARTS.includes(part) && SQL.test(text))
        breach(line, `SQL is written only in ${SQL_PARTS.join(', ')}`)
    } else if (text.startsWith('.')) {
      const rule = importRule(part, join(dirname(file), text).split(sep).join('/'))
      if (rule) breach(line, rule)
    }
  }
  if (!ENVIRONMENT_PARTS.includes(part))
    for (const [index, line] of code.split('\n').entries())
      if (/\bprocess\s*\.\s*env\b/.test(line)) breach(index + 1, 'only config reads process.env')
  return violations
}

/** Whether the string that follows this code is what an import names. */
function isImport(before: string): boolean {
  if (/\bimport\s*\(\s*$/.test(before)) return true
  const statement =
    /(?:^|[;\n}])\s*(import|export)\b((?:(?!\b(?:import|export)\b)[^;'"`])*?)(?:\bfrom\s*)?$/.exec(before)
  if (!statement) return false
  return /\bfrom\s*$/.test(before) || (statement[1] === 'import' && statement[2]!.trim() === '')
}

function importRule(from: Part, target: string): string | null {
  const to = partOf(target)
  if (to === null && !target.startsWith('src/')) return `imports ${target}, which is not part of the server`
  if (to === null || to === from) return null
  const allowed: readonly Part[] = mayImport[from]
  if (allowed.includes(to)) return null
  const list = allowed.length === 0 ? 'nothing else of ours' : allowed.join(', ')
  return `imports ${target}: ${from} may import ${list}, not ${to}`
}

function partOf(file: string): Part | null {
  const name = /^(?:src\/)?([^/.]+)/.exec(file)?.[1] ?? ''
  return Object.hasOwn(mayImport, name) ? (name as Part) : null
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url))
  const violations = findViolations(root)
  for (const { file, line, rule } of violations) console.error(`${relative('.', file)}:${line} ${rule}`)
  if (violations.length > 0)
    console.error(`${violations.length} breaches of the import rules (docs/architecture.md).`)
  process.exitCode = violations.length > 0 ? 1 : 0
}
