import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { choosePartition } from '../../src/log/log.ts'
import { listStalled } from '../../src/store/entries/parked.ts'
import { eventually } from '../eventually.ts'
import { anAppend } from '../log/entries.ts'
import { PARTITIONS } from '../log/open.ts'
import { effectKind, openPipeline, type Pipeline, QUICK_RETRY, texts } from './effects.ts'

let pipeline: Pipeline
before(async () => {
  pipeline = await openPipeline()
})
afterEach(() => pipeline.reset())
after(() => pipeline.close())

const isPoison = (text: string) => text.startsWith('poison')

/** Fails `times` times, then succeeds. */
function failing(times: number) {
  const tried = new Map<string, number>()
  return (text: string) => {
    if (!text.startsWith('failing')) return false
    const before = tried.get(text) ?? 0
    tried.set(text, before + 1)
    return before < times
  }
}

test('one poison entry among many becomes a dead letter; all others take effect once', async () => {
  const appends = Array.from({ length: 400 }, (_, i) =>
    anAppend({ orderingKey: `key-${i}`, ...texts(i === 123 ? 'poison' : `good ${i}`) }),
  )
  await pipeline.log.append(appends)
  pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.settled()
  const effects = Object.values(await pipeline.effects())
  assert.equal(effects.length, 399)
  assert.ok(effects.every(applied => applied.length === 1))
  assert.deepEqual(await pipeline.deadLetters(), [
    { body: '["poison"]', error: 'division by zero', attempts: QUICK_RETRY.attempts },
  ])
})

test('many poison entries in one batch all become dead letters, and the other entries take effect', async () => {
  const appends = Array.from({ length: 300 }, (_, i) =>
    anAppend({ orderingKey: `key-${i}`, ...texts(i % 3 === 0 ? `poison ${i}` : `good ${i}`) }),
  )
  await pipeline.log.append(appends)
  pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.settled()
  assert.equal(Object.keys(await pipeline.effects()).length, 200)
  assert.equal((await pipeline.deadLetters()).length, 100)
})

test('an entry that cannot be decoded becomes a dead letter with its original body', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'a', body: 'not json at all' }),
    anAppend({ orderingKey: 'b', ...texts('good') }),
  ])
  pipeline.start()
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { b: ['good'] })
  const [letter] = await pipeline.deadLetters()
  assert.equal(letter!.body, 'not json at all')
  assert.equal(letter!.attempts, QUICK_RETRY.attempts)
})

test('while an entry waits for its retry, later ones of its key wait behind it and others do not', async () => {
  const retry = { attempts: 100, firstDelayMs: 40, maxDelayMs: 40 }
  let isFailing = true
  const kind = effectKind(text => text === 'failing' && isFailing)
  pipeline.start({ kind, retry })
  await pipeline.log.append([
    anAppend({ orderingKey: 'failing', ...texts('before') }),
    anAppend({ orderingKey: 'failing', ...texts('failing') }),
    anAppend({ orderingKey: 'failing', ...texts('behind, same flush') }),
    anAppend({ orderingKey: 'healthy', ...texts('a') }),
  ])
  await pipeline.log.append([
    anAppend({ orderingKey: 'failing', ...texts('behind, next flush') }),
    anAppend({ orderingKey: 'healthy', ...texts('b') }),
  ])
  await eventually('two effects of the healthy key', async () => (await pipeline.effects()).healthy?.length === 2)
  await pipeline.log.append([
    anAppend({ orderingKey: 'failing', ...texts('behind, later') }),
    anAppend({ orderingKey: 'healthy', ...texts('c') }),
  ])
  await eventually('three effects of the healthy key', async () => (await pipeline.effects()).healthy?.length === 3)
  assert.deepEqual((await pipeline.effects()).failing, ['before'])
  isFailing = false
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), {
    failing: ['before', 'failing', 'behind, same flush', 'behind, next flush', 'behind, later'],
    healthy: ['a', 'b', 'c'],
  })
  assert.deepEqual(await pipeline.deadLetters(), [])
})

test('entries behind a dead entry are applied without it, in order', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'k', ...texts('1') }),
    anAppend({ orderingKey: 'k', ...texts('poison') }),
    anAppend({ orderingKey: 'k', ...texts('2') }),
    anAppend({ orderingKey: 'k', ...texts('poison too') }),
    anAppend({ orderingKey: 'k', ...texts('3') }),
  ])
  pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { k: ['1', '2', '3'] })
  assert.deepEqual(
    (await pipeline.deadLetters()).map(({ body }) => body),
    ['["poison"]', '["poison too"]'],
  )
})

test('an entry that fails several times and then succeeds takes effect once', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'a', ...texts('failing 1') }),
    anAppend({ orderingKey: 'b', ...texts('fine') }),
  ])
  // The first failure is that of the batch, the second that of the isolated entry, which is then retried.
  pipeline.start({ kind: effectKind(failing(3)), workers: 1 })
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { a: ['failing 1'], b: ['fine'] })
  assert.deepEqual(await pipeline.deadLetters(), [])
})

test('of an entry with several items, only the poison items become dead letters', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'batch', ...texts('a', 'b', 'poison', 'c', 'poison 2', 'd') }),
    anAppend({ orderingKey: 'batch', ...texts('e') }),
  ])
  pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { batch: ['a', 'b', 'c', 'd', 'e'] })
  assert.deepEqual(
    (await pipeline.deadLetters()).map(({ body }) => body),
    ['["poison"]', '["poison 2"]'],
  )
})

test('with several consumers a poison entry is tried by one at a time, and becomes one dead letter', async () => {
  for (let i = 0; i < 3; i++) pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.log.append(
    Array.from({ length: 200 }, (_, i) =>
      anAppend({ orderingKey: `key-${i % 20}`, ...texts(i === 77 ? 'poison' : String(i)) }),
    ),
  )
  await pipeline.settled()
  const effects = await pipeline.effects()
  for (let key = 0; key < 20; key++) {
    const expected = Array.from({ length: 10 }, (_, i) => key + i * 20).filter(i => i !== 77)
    assert.deepEqual(effects[`key-${key}`]!.map(Number), expected)
  }
  assert.deepEqual(await pipeline.deadLetters(), [
    { body: '["poison"]', error: 'division by zero', attempts: QUICK_RETRY.attempts },
  ])
})

test('entries behind a poison entry keep their order, even if they are more than a transaction takes', async () => {
  const behind = Array.from({ length: 1_300 }, (_, i) => anAppend({ orderingKey: 'crowd', ...texts(String(i)) }))
  await pipeline.log.append([anAppend({ orderingKey: 'crowd', ...texts('poison') }), ...behind])
  pipeline.start({ kind: effectKind(isPoison) })
  await pipeline.settled()
  assert.deepEqual(
    (await pipeline.effects()).crowd!.map(Number),
    Array.from({ length: 1_300 }, (_, i) => i),
  )
  assert.equal((await pipeline.deadLetters()).length, 1)
})

test('entries behind one that cannot be decoded wait for it, and keep their order', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'k', ...texts('1') }),
    anAppend({ orderingKey: 'k', body: 'not json' }),
    anAppend({ orderingKey: 'k', ...texts('2') }),
  ])
  pipeline.start({ retry: { attempts: 2, firstDelayMs: 3_600_000, maxDelayMs: 3_600_000 } })
  await eventually('the entry to wait for its retry', async () => {
    const { rows } = await pipeline.pool.query('select attempts from parked_entries order by parked_id')
    return rows.length === 2 && rows[0].attempts === 1
  })
  assert.deepEqual(await pipeline.effects(), { k: ['1'] })
  await pipeline.pool.query('update parked_entries set next_attempt_at = now()')
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { k: ['1', '2'] })
  assert.equal((await pipeline.deadLetters()).length, 1)
})

test('if the receipt of a dead letter cannot be written, a warning is logged and nothing else is lost', async () => {
  await pipeline.log.append([
    anAppend({ orderingKey: 'a', ...texts('poison, and cannot be recorded') }),
    anAppend({ orderingKey: 'b', ...texts('good') }),
  ])
  const warnings: string[] = []
  const logger = { warn: (_: object, message: string) => warnings.push(message) }
  pipeline.start({ kind: effectKind(isPoison), logger })
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { b: ['good'] })
  assert.equal((await pipeline.deadLetters()).length, 1)
  assert.match(warnings.at(-1)!, /receipt or operation .* could not be written/)
})

test('a partition that fails outside of any entry does not stop others, and is reported', async () => {
  const kind = effectKind(isPoison)
  const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`)
  const partition = choosePartition(1, 'key-0', PARTITIONS)
  const others = keys.filter(key => choosePartition(1, key, PARTITIONS) !== partition)
  await pipeline.log.append(
    keys.map(orderingKey => anAppend({ orderingKey, ...texts(orderingKey === 'key-0' ? 'poison' : 'good') })),
  )
  let isBroken = true
  pipeline.start({
    kind: {
      ...kind,
      narrow(entry, works) {
        if (isBroken) throw new Error('out of order')
        return kind.narrow(entry, works)
      },
    },
  })
  await eventually('the other partitions to continue', async () => {
    const effects = await pipeline.effects()
    return others.every(key => effects[key]?.length === 1)
  })
  await eventually('the partition to be reported', async () => (await listStalled(pipeline.pool)).length > 0)
  const [stalled] = await listStalled(pipeline.pool)
  assert.equal(stalled!.partition, `postgres/${partition}`)
  assert.equal(stalled!.error, 'out of order')
  isBroken = false
  await pipeline.settled()
  assert.equal(Object.keys(await pipeline.effects()).length, 39)
})
