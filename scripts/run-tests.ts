// npm test [-- words…]: Node's test runner on the files whose path contains one of the words; without words all of them.
import { globSync, mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { type RunOptions, run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const FILE_LIMIT_MS = 900_000 // for what hangs: the slowest file takes a minute on two idle cores

// These take longest, up to a minute each: begun last they would run on alone at the end.
const FIRST = ['torture', 'console', 'books', 'crash', 'sdk', 'cli/', 'hostile', 'security', 'log/']

// Their files leave the process as they found it, and share one: starting it and loading what they test takes half a second each. With
// files that start a server it is no gain: the servers of the others would go on polling beside it.
const TOGETHER = ['test/domain/']

const words = process.argv.slice(2)
const files = globSync('test/**/*.test.ts', { cwd: root })
  .filter(file => words.length === 0 || words.some(word => file.includes(relative(root, join(root, word)))))
  .sort((a, b) => orderOf(a) - orderOf(b) || (a < b ? -1 : 1))
if (files.length === 0) {
  console.error(`No test file has ${words.map(word => JSON.stringify(word)).join(' or ')} in its path.`)
  process.exit(2)
}

// Every file runs in a process of its own, and most of them start servers: compiled once, all of them start from the cache
// (a fifth of the run's processor time).
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/compiled-for-tests')

// @types/node does not know globalSetupPath yet.
const options: RunOptions & { globalSetupPath: string } = {
  files: together(files),
  cwd: root,
  // One more than processors: a fifth of the time a file waits, for PostgreSQL, a browser or a fault to pass.
  concurrency: Math.max(2, availableParallelism() + 1),
  timeout: FILE_LIMIT_MS,
  globalSetupPath: join(root, 'test/global-setup.ts'),
  execArgv: ['--import', join(root, 'test/leak-watch.ts')],
}
const events = run(options)
const skipped: string[] = []
events.on('test:fail', () => {
  process.exitCode = 1
})
events.on('test:pass', ({ skip, file, name }) => {
  if (skip !== undefined) skipped.push(`${relative(root, file ?? '')}: ${name}: ${skip}`)
})
events.compose(spec).on('end', tellSkipped).pipe(process.stdout)

function tellSkipped(): void {
  const mustRunAll = process.env.KONTOR_TEST_REQUIRE_ALL === '1'
  for (const line of skipped) console.log(`${mustRunAll ? 'Skipped, but required' : 'Skipped'}: ${line}`)
  if (skipped.length === 0) return
  if (mustRunAll) process.exitCode = 1
  else console.log('(.ci/run installs what these need; KONTOR_TEST_REQUIRE_ALL=1 makes a skip a failure.)')
}

/** Files that share a process are imported by one that stands for them, where the first of them stood. */
function together(files: string[]): string[] {
  const folder = join(root, 'node_modules/.cache/tests-together')
  mkdirSync(folder, { recursive: true })
  const groups = Map.groupBy(files, file => {
    const shared = TOGETHER.find(shared => file.startsWith(shared))
    return shared?.replaceAll('/', '-') ?? file
  })
  return [...groups].map(([name, members]) => {
    if (members.length === 1) return join(root, members[0]!)
    const group = join(folder, `${name}all.test.mjs`)
    const imports = members.map(file => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)}\n`)
    writeFileSync(group, imports.join(''))
    return group
  })
}

function orderOf(file: string): number {
  const place = FIRST.findIndex(part => file.includes(`test/${part}`))
  return place < 0 ? FIRST.length : place
}
