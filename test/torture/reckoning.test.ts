import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Item, openLedger, readLedger } from '../../torture/ledger.ts'
import { randomFrom } from '../../torture/random.ts'
import type { Read } from '../../torture/reconcile/api.ts'
import { compare } from '../../torture/reconcile/events.ts'
import { computeOutcomes } from '../../torture/reconcile/outcomes.ts'
import { checkRecord, type Write } from '../../torture/reconcile/records.ts'

let directory: string
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kontor-ledger-'))
})
after(() => rm(directory, { recursive: true }))

let files = 0

/** Writes and reads the ledger file, as in a run. */
async function outcomesAfter(sent: { item: Item; status: number | null }[]) {
  const ledger = openLedger(join(directory, String(++files)))
  for (const { item, status } of sent) {
    const n = ledger.sent('tenant', [item])
    if (status !== null) ledger.answered(n, { status })
  }
  const { attempts } = await readLedger(ledger.path)
  return [...computeOutcomes(attempts).values()]
}

async function verdict(
  sent: { item: Item; status: number | null }[],
  listed: Record<string, number>,
): Promise<string[]> {
  const problems = compare('event', await outcomesAfter(sent), new Map(Object.entries(listed)))
  return problems.map(({ kind, words }) => `${kind}: ${words}`)
}

const event = (marker: string, more: Partial<Item> = {}): Item => ({ marker, row: 'event', ...more })

test('an acknowledged event must be listed exactly once', async () => {
  const sent = [{ item: event('m1'), status: 200 }]
  assert.deepEqual(await verdict(sent, { m1: 1 }), [])
  assert.deepEqual(await verdict(sent, {}), ['missing: event m1'])
  assert.deepEqual(await verdict(sent, { m1: 2 }), ['duplicate: event m1, 2 times'])
})

test('an event with an unclear outcome may be listed once or not at all', async () => {
  for (const status of [null, 0, 503]) {
    const sent = [{ item: event('m1'), status }]
    assert.deepEqual(await verdict(sent, {}), [])
    assert.deepEqual(await verdict(sent, { m1: 1 }), [])
    assert.deepEqual(await verdict(sent, { m1: 2 }), ['duplicate: event m1, 2 times'])
  }
})

test('repeats with one id are one event, which must exist if one of them was acknowledged', async () => {
  const item = event('m1', { claim: 'id-1' })
  const sent = [
    { item, status: 0 },
    { item, status: 503 },
    { item, status: 200 },
  ]
  assert.deepEqual(await verdict(sent, { m1: 1 }), [])
  assert.deepEqual(await verdict(sent, {}), ['missing: event m1 (id-1)'])
  assert.deepEqual(await verdict(sent, { m1: 2 }), ['duplicate: event m1 (id-1), 2 times'])
})

test('rejected items and items that were never sent must not exist', async () => {
  const sent = [{ item: event('m1'), status: 400 }]
  assert.deepEqual(await verdict(sent, { m1: 1 }), ['unexpected: event m1, which was rejected'])
  assert.deepEqual(await verdict(sent, { other: 1 }), ['unexpected: event other, which was never sent'])
})

test('a record equals the newest acknowledged write, or a newer one with an unclear outcome', async () => {
  const write = (version: number, deleted = false): Item => ({
    marker: `v${version}`,
    record: { type: 'contact', id: 'c', version, deleted },
  })
  const judge = async (sent: { item: Item; status: number | null }[], marker: string | null) => {
    const read: Read = async () =>
      marker === null ? { status: 404, body: {} } : { status: 200, body: { data: { marker } } }
    const problems = await checkRecord(read, 'contacts/c', (await outcomesAfter(sent)) as Write[])
    return problems.map(({ kind }) => kind)
  }
  const sent = [
    { item: write(1), status: 202 },
    { item: write(2), status: 202 },
    { item: write(3), status: 0 },
    { item: write(4), status: 400 },
  ]
  assert.deepEqual(await judge(sent, 'v1'), ['missing'])
  assert.deepEqual(await judge(sent, 'v2'), [])
  assert.deepEqual(await judge(sent, 'v3'), [])
  assert.deepEqual(await judge(sent, 'v9'), ['unexpected'])
  assert.deepEqual(await judge(sent, null), ['missing'])
  const removed = [...sent, { item: write(5, true), status: 202 }]
  assert.deepEqual(await judge(removed, null), [])
  assert.deepEqual(await judge(removed, 'v2'), ['missing'])
})

test('a seed gives the same series, independent of its forks', () => {
  const series = (random = randomFrom('seed')) => Array.from({ length: 5 }, () => random.integer(0, 1_000))
  const disturbed = randomFrom('seed')
  series(disturbed.fork('other'))
  assert.deepEqual(series(), series())
  assert.deepEqual(series(disturbed), series())
  assert.notDeepEqual(series(randomFrom('another seed')), series())
})
