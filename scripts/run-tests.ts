// npm test [-- words…] [--verbose]: runs the test files whose path contains one of the words (without words: all of
// them) on one throw-away PostgreSQL.
import { randomUUID } from 'node:crypto'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startTestCluster } from '../test/database.ts'
import { leakedProcesses, RUN_VARIABLE } from './leaked-processes.ts'
import { reportTests, type Skipped } from './report-tests.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const TEST_TIMEOUT_MS = 180_000

const { values, positionals: words } = parseArgs({
  options: { verbose: { type: 'boolean', default: false } },
  allowPositionals: true,
})

const files = globSync('test/**/*.test.ts', { cwd: root })
  .filter(file => words.length === 0 || words.some(word => file.includes(relative(root, join(root, word)))))
  .map(file => join(root, file))
  .sort()
if (files.length === 0) {
  console.error(`No test file has ${words.map(word => JSON.stringify(word)).join(' or ')} in its path.`)
  process.exit(2)
}

const cluster = await startTestCluster()
let ok = false
try {
  ok = await runFiles()
} finally {
  await cluster.stop()
}
process.exitCode = ok ? 0 : 1

async function runFiles(): Promise<boolean> {
  const runId = randomUUID()
  process.env[RUN_VARIABLE] = runId
  const events = run({
    files,
    cwd: root,
    concurrency: Math.max(2, availableParallelism()),
    timeout: TEST_TIMEOUT_MS,
    execArgv: ['--import', join(root, 'scripts/leak-watch.ts')],
  })
  const { success, skipped, totals } = await reportTests(events, {
    root,
    isVerbose: values.verbose,
    print: text => console.log(text),
  })
  const mustRunAll = process.env.KONTOR_TEST_REQUIRE_ALL === '1'
  tellSkipped(skipped, mustRunAll)
  const left = await leftBehind(runId)
  for (const { pid, command } of left) {
    console.log(`A test left a process behind, which is ended now: ${pid} ${command}`)
    process.kill(pid, 'SIGKILL')
  }
  console.log(`\n${totals.join('\n')}`)
  return success && left.length === 0 && !(mustRunAll && skipped.length > 0)
}

function tellSkipped(skipped: Skipped[], mustRunAll: boolean): void {
  for (const { file, name, reason } of skipped)
    console.log(`${mustRunAll ? 'Skipped, but required' : 'Skipped'}: ${file}: ${name}: ${reason}`)
  if (skipped.length > 0 && !mustRunAll)
    console.log('(.ci/run installs what these need; KONTOR_TEST_REQUIRE_ALL=1 makes a skip a failure.)')
}

/** Processes that are just ending are given a moment. */
async function leftBehind(runId: string) {
  const deadline = Date.now() + 5_000
  for (;;) {
    const left = leakedProcesses(runId)
    if (left.length === 0 || Date.now() > deadline) return left
    await sleep(100)
  }
}
