// npm test [-- --all] [-- paths…]: runs Node's test runner on test/**/*.test.ts.
//   no argument   every file except those under CHECK_ONLY
//   --all         every file; `npm run check` and .ci/run use it
//   paths         every file whose path contains one of them
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type RunOptions, run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const FILE_LIMIT_MS = 900_000 // ends a file that hangs; the slowest one takes a minute on two idle cores

// What belongs here is slow and repeats, in another way, what another file proves. A file belongs here if its path begins with one of
// these.
const CHECK_ONLY = Object.entries({
  'test/': ['crash/', 'torture/', 'release/', 'guides/', 'http/clients', 'events/kill', 'scripts/interrupted-run'],
  'test/console/': ['crawl', 'stories', 'markup'], // every link, every stored string, stories on many pages
  'test/log/jetstream-': ['service', 'signals', 'secured', 'cluster', 'losses', 'moves'], // a second log engine as a service
  'test/embedded-postgres/': ['cluster', 'crash'],
  'test/cli/': ['backup', 'start-as-root'],
  'test/hostile/': ['linear'],
  'test/security/': ['fuzz'],
  'test/postgres/': ['sessions'], // several servers, and a pooler
  'test/demo/': ['billing'], // a year of it
  'test/sdk/js/': ['installed', 'typescript-5'],
}).flatMap(([folder, names]) => names.map(name => `${folder}${name}`))

// The slowest files start first. Started last, each would run alone at the end.
const FIRST = [
  'torture',
  'guides',
  'console',
  'books',
  'crash',
  'release',
  'sdk',
  'cli/',
  'hostile',
  'security',
  'log/',
]

// Loading the server takes a second of processor time, and its first start half a second more. The files of a folder run one
// after the other in one process, a few in each. These are long enough to have their own, or must have one.
const ALONE = [
  ...['test/console/', 'test/guides/', 'test/torture/', 'test/crash/', 'test/release/', 'test/security/'],
  ...[
    'test/log/jetstream-',
    'test/cli/start',
    'test/cli/processes',
    'test/cli/backup',
    'test/hostile/linear',
    'test/scripts/interrupted-run',
  ],
]
const FILES_PER_PROCESS = 10

const paths = process.argv.slice(2).filter(argument => argument !== '--all')
const all = process.argv.includes('--all')
const files = globSync('test/**/*.test.ts', { cwd: root })
  .filter(isSelected)
  .sort((a, b) => startOrder(a) - startOrder(b) || (a < b ? -1 : 1))
if (files.length === 0) {
  console.error(`No test file has ${paths.map(path => JSON.stringify(path)).join(' or ')} in its path.`)
  process.exit(2)
}

// Stripping types and compiling would take half a second in each process.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/compiled-for-tests')
enableCompileCache(process.env.NODE_COMPILE_CACHE) // for test/global-setup.ts, which this process loads

// What test/global-setup.ts starts once for all files that use it.
const sources = files.map(file => readFileSync(join(root, file), 'utf8'))
process.env.KONTOR_TEST_USES = ['sharedServer(', 'launchChromium(']
  .filter(call => sources.some(text => text.includes(call)))
  .join()

// @types/node does not know globalSetupPath yet.
const options: RunOptions & { globalSetupPath: string } = {
  files: groupFiles(files),
  cwd: root,
  // Two more than processors: a third of the time a file waits for PostgreSQL, a browser or a timeout.
  concurrency: availableParallelism() + 2,
  timeout: FILE_LIMIT_MS,
  globalSetupPath: join(root, 'test/global-setup.ts'),
  execArgv: ['--import', join(root, 'test/leak-watch.ts')],
}
const events = run(options)
const skipped: string[] = []
const durationsMs: [file: string, ms: number][] = []
events.on('test:fail', () => {
  process.exitCode = 1
})
events.on('test:pass', ({ skip, file, name }) => {
  if (skip !== undefined) skipped.push(`${relative(root, file ?? '')}: ${name}: ${skip}`)
})
// A file alone in its process, or a member of a group, which is a test with the name of the file.
events.on('test:summary', ({ file, duration_ms }) => {
  if (file !== undefined && files.includes(relative(root, file))) durationsMs.push([relative(root, file), duration_ms])
})
events.on('test:complete', ({ name, details }) => {
  if (files.includes(name)) durationsMs.push([name, details.duration_ms])
})
events.compose(spec).on('end', printSummary).pipe(process.stdout)

function isSelected(file: string): boolean {
  if (paths.length > 0) return paths.some(path => file.includes(relative(root, join(root, path))))
  return all || !CHECK_ONLY.some(start => file.startsWith(start))
}

function printSummary(): void {
  const slowest = durationsMs.sort(([, a], [, b]) => b - a).slice(0, 20)
  if (slowest.length > 5) console.log('The slowest files:')
  if (slowest.length > 5)
    for (const [file, ms] of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
  const mustRunAll = process.env.KONTOR_TEST_REQUIRE_ALL === '1'
  for (const line of skipped) console.log(`${mustRunAll ? 'Skipped, but required' : 'Skipped'}: ${line}`)
  if (skipped.length > 0 && mustRunAll) process.exitCode = 1
  else if (skipped.length > 0)
    console.log('(.ci/run installs what these need. KONTOR_TEST_REQUIRE_ALL=1 makes a skip a failure.)')
}

/** Replaces the files that share a process by one file, in which each of them is a test with its own hooks. */
function groupFiles(files: string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'kontor-test-groups-')) // several runs may be active at the same time
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const counts = new Map<string, number>()
  const groups = Map.groupBy(files, file => {
    if (ALONE.some(start => file.startsWith(start))) return file
    const [, subject] = file.split('/')
    const count = counts.get(subject!) ?? 0
    counts.set(subject!, count + 1)
    return `${subject}-${Math.floor(count / FILES_PER_PROCESS) + 1}`
  })
  return [...groups].map(([name, members]) => {
    if (members.length === 1) return join(root, members[0]!)
    const group = join(folder, `${name}.test.mjs`)
    const urlOf = (path: string) => JSON.stringify(pathToFileURL(join(root, path)).href)
    const lines = [
      `import { test } from 'node:test'`,
      `import ${urlOf('test/database.ts')} // its hooks are for all files`,
      ...members.map(file => `test(${JSON.stringify(file)}, () => import(${urlOf(file)}))`),
    ]
    writeFileSync(group, `${lines.join('\n')}\n`)
    return group
  })
}

function startOrder(file: string): number {
  const place = FIRST.findIndex(part => file.includes(`test/${part}`))
  return place < 0 ? FIRST.length : place
}
