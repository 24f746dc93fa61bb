import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

export type Skipped = { file: string; name: string; reason: string }
export type Outcome = { success: boolean; skipped: Skipped[]; totals: string[] }

/** One line a test file, and everything about what failed. Node's own totals are returned, to be printed last. */
export async function reportTests(
  events: AsyncIterable<TestEvent>,
  options: { root: string; isVerbose: boolean; print: (text: string) => void },
): Promise<Outcome> {
  const { root, isVerbose, print } = options
  const skipped: Skipped[] = []
  const failures: string[] = []
  const totals: string[] = []
  const said = new Map<string, string>()
  let success = true
  const nameOf = (file: string | undefined) => (file ? relative(root, file) : '')

  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') {
      said.set(data.file, (said.get(data.file) ?? '') + data.message)
    } else if (type === 'test:pass') {
      if (data.skip !== undefined)
        skipped.push({ file: nameOf(data.file), name: data.name, reason: String(data.skip) })
      if (isVerbose) print(`  ✔ ${data.name}`)
    } else if (type === 'test:fail') {
      success = false
      const failure = describeFailure(data, nameOf(data.file))
      if (failure === null) continue
      failures.push(failure)
      print(failure)
    } else if (type === 'test:summary' && data.file !== undefined) {
      const { tests, skipped: skips } = data.counts
      const counts = `${tests} tests${skips > 0 ? `, ${skips} skipped` : ''}, ${Math.round(data.duration_ms)} ms`
      print(`${data.success ? '✔' : '✖'} ${nameOf(data.file)} (${counts})`)
      const words = said.get(data.file)
      if (!data.success && words) print(indented(words))
      said.delete(data.file)
    } else if (type === 'test:summary') {
      success = success && data.success
    } else if (type === 'test:diagnostic' && data.nesting === 0 && data.file === undefined) {
      totals.push(`# ${data.message}`)
    }
  }
  printFailures(failures, said, nameOf, print)
  return { success, skipped, totals }
}

function printFailures(
  failures: string[],
  said: Map<string, string>,
  nameOf: (file: string) => string,
  print: (text: string) => void,
): void {
  // Files that died before they could sum up: what they said is all there is.
  for (const [file, words] of said) print(`${nameOf(file)} said:\n${indented(words)}`)
  if (failures.length > 0) print(`\nFailed (${failures.length}):`)
  for (const failure of failures) print(`  ${failure.split('\n')[0]}`)
}

type Failure = Extract<TestEvent, { type: 'test:fail' }>['data']

/** Null for a suite that failed only because of what is in it. */
function describeFailure(data: Failure, file: string): string | null {
  const error = data.details.error as Error & { failureType?: string }
  if (error.failureType === 'subtestsFailed') return null
  const isFile = data.name.endsWith(file)
  const where = isFile ? file : `${file}:${data.line} ${data.name}`
  const cause = isFile ? 'the file did not end well (see what it said)' : inspect(error.cause ?? error)
  return `✖ ${where}\n${indented(cause)}`
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .filter(line => !/^\s+at .*\(?node:internal\//.test(line))
    .map(line => `    ${line}`)
    .join('\n')
}
