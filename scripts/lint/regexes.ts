// Rejects regular expressions that can take more than linear time, in the code that sees input. `npm run lint` runs it.
// docs/decisions/0034-checked-regular-expressions.md has the reasons.
//   --record   writes the list of linear expressions, so that the next run need not check them again
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
type Recheck = {
  checkSync(source: string, flags: string, options: { checker: 'automaton'; timeout: number }): Result
}
type Result = {
  status: 'safe' | 'vulnerable' | 'unknown'
  complexity?: { summary: string }
  attack?: { pattern: string }
  error?: { kind: string }
}

/** TypeScript 5, which the SDK uses: version 7 has no stable API. */
const ts = createRequire(new URL('../../sdk/js/package.json', import.meta.url))('typescript') as TypeScript
type Node = { kind: number; text: string; getStart(): number; getText(): string } & Record<string, unknown>
type SourceFile = Node & { getLineAndCharacterOfPosition(at: number): { line: number } }
type TypeScript = {
  SyntaxKind: Record<string, number>
  ScriptTarget: { Latest: number }
  createSourceFile(name: string, text: string, target: number, setParents: boolean): SourceFile
  forEachChild(node: Node, visit: (child: Node) => void): void
}

// The slowest safe expression takes seven seconds. One that takes much longer is too complicated to be checked.
const TIMEOUT_MS = 20_000

/** What one version of recheck found to be linear. All expressions together take it half a minute. */
const LIST = new URL('./linear-regexes.json', import.meta.url)
type List = { recheck: string; linear: string[] }

/** Files that are not checked, and why. */
const UNCHECKED = new Map([
  ['src/http/console/page.ts', 'reads only modules of the console, when the server starts'],
  ['src/domain/tenants/credentials.ts', 'reads at most 4 KB of a sample; test/hostile/linear.test.ts measures it'],
])

type Expression = { place: string; source: string; flags: string }

const { SyntaxKind: kinds } = ts
const expressions: Expression[] = []
const errors: string[] = []

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', 'src', 'console', 'sdk'], {
  encoding: 'utf8',
  maxBuffer: 1e8,
}).split('\n')
for (const file of files) if (/\.(ts|js|mjs)$/.test(file) && !UNCHECKED.has(file)) collect(file)

const { version } = require('recheck/package.json') as { version: string }
const list = JSON.parse(readFileSync(LIST, 'utf8')) as List
const known = new Set(list.recheck === version ? list.linear : [])
const linear = new Set<string>()
const results = new Map<string, Result>()
for (const { place, source, flags } of expressions) {
  // Without an unbounded repetition the time for a position is bounded.
  if (!/[*+]|,\}/.test(source)) continue
  const literal = `/${source}/${flags}`
  if (known.has(literal)) {
    linear.add(literal)
    continue
  }
  const result = results.get(literal) ?? check(source, flags)
  results.set(literal, result)
  const { status, complexity, attack, error } = result
  if (status === 'safe') linear.add(literal)
  if (status === 'vulnerable')
    errors.push(`${place}: ${literal} takes ${complexity!.summary} time, for example for ${attack!.pattern}.`)
  if (status === 'unknown')
    errors.push(`${place}: ${literal} cannot be checked (${error!.kind}). Simplify it, or write a loop.`)
}

const unlisted = [...linear].filter(literal => !known.has(literal))
if (process.argv.includes('--record')) {
  const updated: List = { recheck: version, linear: [...linear].sort() }
  writeFileSync(LIST, `${JSON.stringify(updated, null, 2)}\n`)
} else if (unlisted.length > 0) {
  console.log(`Linear, but not in the list: ${unlisted.join('  ')}`)
  console.log('`node scripts/lint/regexes.ts --record` adds them, so that they are not checked again.')
}

for (const error of errors) console.error(error)
if (errors.length > 0) process.exit(1)

function check(source: string, flags: string): Result {
  // The JavaScript build. The package would start a native program or Java instead, if they are installed.
  const { checkSync } = require('recheck/lib/browser.js') as Recheck
  return checkSync(source, flags, { checker: 'automaton', timeout: TIMEOUT_MS })
}

/** Adds the regular expressions of a file: literals, `RegExp(…)`, and the `pattern` of a schema. */
function collect(file: string): void {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return // deleted, and not committed yet
  }
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const constants = new Map<string, Node>()
  visit(tree)

  function visit(node: Node): void {
    if (node.kind === kinds.VariableDeclaration && node.initializer)
      constants.set((node.name as Node).text, node.initializer as Node)
    if (node.kind === kinds.RegularExpressionLiteral) {
      const end = node.text.lastIndexOf('/')
      add(node, node.text.slice(1, end), node.text.slice(end + 1))
    } else if (isRegExpCall(node)) {
      const [source, flags] = node.arguments as Node[]
      add(node, source && evaluate(source), flags ? evaluate(flags) : '')
    } else if (node.kind === kinds.PropertyAssignment && (node.name as Node).text === 'pattern') {
      const pattern = evaluate(node.initializer as Node)
      if (pattern !== null) add(node, pattern, 'u')
    }
    ts.forEachChild(node, visit)
  }

  function add(node: Node, source: string | null | undefined, flags: string | null): void {
    const place = `${file}:${tree.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
    if (typeof source === 'string' && flags !== null) expressions.push({ place, source, flags })
    else errors.push(`${place}: ${node.getText()} is built at run time and cannot be checked. Write a loop.`)
  }

  /** The value of a string that consists of literals and constants of the same file. Null for any other expression. */
  function evaluate(node: Node): string | null {
    if (node.kind === kinds.StringLiteral || node.kind === kinds.NoSubstitutionTemplateLiteral) return node.text
    if (node.kind === kinds.Identifier) {
      const constant = constants.get(node.text)
      return constant ? evaluate(constant) : null
    }
    if (node.kind === kinds.PropertyAccessExpression && (node.name as Node).text === 'source') {
      const literal = constants.get((node.expression as Node).text)
      if (literal?.kind !== kinds.RegularExpressionLiteral || !literal) return null
      return literal.text.slice(1, literal.text.lastIndexOf('/'))
    }
    if (node.kind === kinds.TaggedTemplateExpression)
      return (node.tag as Node).getText() === 'String.raw' ? evaluateTemplate(node.template as Node, 'rawText') : null
    return node.kind === kinds.TemplateExpression ? evaluateTemplate(node, 'text') : null
  }

  function evaluateTemplate(node: Node, field: 'text' | 'rawText'): string | null {
    if (node.kind === kinds.NoSubstitutionTemplateLiteral) return node[field] as string
    let value = (node.head as Node)[field] as string
    for (const span of node.templateSpans as Node[]) {
      const inserted = evaluate(span.expression as Node)
      if (inserted === null) return null
      value += inserted + ((span.literal as Node)[field] as string)
    }
    return value
  }
}

function isRegExpCall(node: Node): boolean {
  const isCall = node.kind === kinds.NewExpression || node.kind === kinds.CallExpression
  return isCall && (node.expression as Node).text === 'RegExp'
}
