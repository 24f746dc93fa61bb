import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Mode } from '../../torture/deployment/deployment.ts'
import { KNOWN_DEFECTS } from '../../torture/faults/known-defects.ts'
import { faultNamed } from '../../torture/faults/list.ts'
import { run } from '../../torture/run.ts'
import { isLong } from '../long.ts'

/**
 * A fixed set of faults in half a minute (one minute in CI), with little load. On a slow machine the last faults are skipped, and no fault is
 * subject to a time limit.
 */
export async function quickRun(t: TestContext, mode: Mode, names: string[]): Promise<void> {
  for (const name of names) if (KNOWN_DEFECTS[name]) t.diagnostic(`${name} is left out: ${KNOWN_DEFECTS[name]}`)
  const faults = names.filter(name => !KNOWN_DEFECTS[name]).map(faultNamed)
  let output = ''
  const { problems, acknowledged, struck } = await run({
    mode,
    seed: 'tests',
    durationMs: isLong ? 30_000 : 20_000,
    faults,
    scale: 0.2,
    load: 0.1,
    patienceMs: 60_000,
    memoryMb: 700,
    hasNats: false,
    httpNodes: 1,
    onceEach: true,
    print: words => {
      output += `${words}\n`
      if (/skipped|no time/.test(words)) t.diagnostic(words)
    },
  })
  t.diagnostic(`${struck} faults, ${acknowledged} things acknowledged`)
  assert.deepEqual(problems, [], output)
  assert.ok(struck > 0 && acknowledged > 0, output)
}
