import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { anAppend } from '../log/entries.ts'
import { openPipeline, type Pipeline, texts } from './effects.ts'

let pipeline: Pipeline
before(async () => {
  pipeline = await openPipeline()
})
after(async () => {
  await pipeline.reset()
  await pipeline.close()
})

/** Another process that owns every partition with unread entries. */
async function startHolding() {
  const script = fileURLToPath(new URL('holding.ts', import.meta.url))
  const child = spawn(process.execPath, [script, pipeline.url], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [partitions] = await once(createInterface(child.stdout), 'line')
  return { partitions: Number(partitions), kill: () => child.kill('SIGKILL'), exited: once(child, 'exit') }
}

test('partitions of a killed process are taken over by another', async t => {
  await pipeline.log.append(
    Array.from({ length: 100 }, (_, i) => anAppend({ orderingKey: `key-${i % 10}`, ...texts(String(i)) })),
  )
  await pipeline.readable()
  const holding = await startHolding()
  t.after(holding.kill)
  assert.ok(holding.partitions > 0)
  pipeline.start()
  // All partitions with entries are owned by the other process.
  await pipeline.pool.query('select pg_sleep(0.3)')
  assert.deepEqual(await pipeline.effects(), {})

  holding.kill()
  const killedAt = performance.now()
  await pipeline.settled()
  t.diagnostic(`taken over ${Math.round(performance.now() - killedAt)} ms after the kill`)
  await holding.exited
  const effects = await pipeline.effects()
  assert.equal(Object.keys(effects).length, 10)
  for (const [key, applied] of Object.entries(effects)) {
    const first = Number(key.slice(4))
    assert.deepEqual(
      applied.map(Number),
      Array.from({ length: 10 }, (_, i) => first + i * 10),
    )
  }
})
