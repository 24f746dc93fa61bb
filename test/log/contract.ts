import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import type { Entry, EntryKind } from '../../src/domain/entries/entry.ts'
import { newEntryId } from '../../src/domain/ids.ts'
import type { Log } from '../../src/log/log.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { anEntry, anAppend as aRecord, asReader, bodies, EVERYTHING, readAll, takeOnce } from './entries.ts'

export type OpenedLog = {
  log: Log
  pool: pg.Pool
  /** Resolves when all appended entries can be read. Transactions of other tests may delay it. */
  readable(): Promise<void>
  close(): Promise<void>
}

/**
 * The guarantees of every log engine. `claims`: whether it stores idempotency keys with its entries. `skip`: why it cannot be tested
 * here.
 */
export function logContract(
  engine: string,
  open: () => Promise<OpenedLog>,
  { claims, kind, skip = false }: { claims: boolean; kind: EntryKind; skip?: string | false },
) {
  const anAppend = (given: Partial<Entry> = {}) => aRecord({ kind, ...given })
  describe(`a log on ${engine}`, { skip }, () => {
    let opened: OpenedLog
    let log: Log
    let pool: pg.Pool
    before(async () => {
      opened = await open()
      log = opened.log
      pool = opened.pool
    })
    after(() => opened.close())

    test('an entry is read exactly as it was appended', async () => {
      const texts = ['{}', '', 'tab\tnewline\nreturn\r\\backslash\\n \\. "quotes"', '\\N', '🦀 ü \u2028', '\u0001']
      const appends = texts.map(text => anAppend({ body: text, context: text, orderingKey: `k${text}` }))
      assert.deepEqual(
        await log.append(appends),
        appends.map(() => ({ duplicateOf: null })),
      )
      const read = await readAll(log, pool)
      const byId = new Map(read.map(entry => [entry.id, entry]))
      for (const { entry } of appends) assert.deepEqual(byId.get(entry.id), entry)
    })

    test('any string is read unchanged', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.string({ unit: 'binary' }), { maxLength: 50 }), async texts => {
          const storable = texts.map(text => text.replaceAll('\0', ''))
          await log.append(storable.map(body => anAppend({ body })))
          assert.deepEqual(bodies(await readAll(log, pool)), storable)
        }),
        { numRuns: 8 },
      )
    })

    test('entries of one ordering key are read in the order in which they were appended', async () => {
      for (let round = 0; round < 5; round++) {
        await log.append(
          Array.from({ length: 40 }, (_, i) => anAppend({ orderingKey: `key-${i % 7}`, body: String(round * 40 + i) })),
        )
      }
      const read = await readAll(log, pool, { ...EVERYTHING, maxPartitions: 2, maxEntries: 7 })
      assert.equal(read.length, 200)
      for (const group of Map.groupBy(read, entry => entry.orderingKey).values()) {
        const order = bodies(group).map(Number)
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
        )
      }
    })

    test('entries of one ordering key are in one partition', async () => {
      await log.append(Array.from({ length: 50 }, (_, i) => anAppend({ orderingKey: `k-${i % 5}` })))
      await opened.readable()
      const partitions = await takeOnce(log, pool)
      for (let i = 0; i < 5; i++) {
        const holding = partitions.filter(partition => partition.entries.some(entry => entry.orderingKey === `k-${i}`))
        assert.equal(holding.length, 1)
      }
    })

    test('an empty append succeeds', async () => {
      assert.deepEqual(await log.append([]), [])
    })

    test('concurrent appends are all durable, and each entry is read once', async () => {
      const appends = Array.from({ length: 200 }, (_, i) => anAppend({ orderingKey: `k-${i}` }))
      await Promise.all(appends.map(append => log.append([append])))
      const read = await readAll(log, pool, { ...EVERYTHING, maxPartitions: 3, maxEntries: 10 })
      assert.deepEqual(read.map(({ id }) => id).sort(), appends.map(({ entry }) => entry.id).sort())
    })

    test('a position advances when the reader commits, not before', async () => {
      await log.append([anAppend({ body: 'once' })])
      await opened.readable()
      await assert.rejects(
        asReader(pool, async client => {
          const taken = await log.take(client, EVERYTHING)
          assert.deepEqual(bodies(taken.flatMap(partition => partition.entries)), ['once'])
          await log.advance(client, taken)
          throw new Error('the reader fails')
        }),
        /the reader fails/,
      )
      assert.deepEqual(bodies(await readAll(log, pool)), ['once'])
      assert.deepEqual(await readAll(log, pool), [])
    })

    test('two transactions never take the same partition, and the second one takes the rest', async () => {
      await log.append(Array.from({ length: 60 }, (_, i) => anAppend({ orderingKey: `key-${i}` })))
      await opened.readable()
      const [first, second] = await asReader(pool, async client => {
        const mine = await log.take(client, { ...EVERYTHING, maxPartitions: 2 })
        const others = await asReader(pool, async other => {
          const taken = await log.take(other, EVERYTHING)
          await log.advance(other, taken)
          return taken
        })
        await log.advance(client, mine)
        return [mine, others]
      })
      const partitions = [...first!, ...second!].map(({ partition }) => partition)
      assert.equal(first!.length, 2)
      assert.equal(new Set(partitions).size, partitions.length)
      const entries = [...first!, ...second!].flatMap(partition => partition.entries)
      assert.equal(new Set(entries.map(({ id }) => id)).size, 60)
      assert.deepEqual(await readAll(log, pool), [])
    })

    test('a take is limited in partitions and in entries per partition', async () => {
      await log.append(Array.from({ length: 300 }, (_, i) => anAppend({ orderingKey: `key-${i}` })))
      await opened.readable()
      const taken = await takeOnce(log, pool, { ...EVERYTHING, maxPartitions: 2, maxEntries: 3 })
      assert.equal(taken.length, 2)
      for (const { entries } of taken) assert.equal(entries.length, 3)
      await readAll(log, pool)
    })

    test('a take is limited in size, but never empty', async () => {
      const body = 'x'.repeat(1_000_000)
      await log.append(Array.from({ length: 12 }, () => anAppend({ orderingKey: 'large', body })))
      await opened.readable()
      const [partition] = await takeOnce(log, pool)
      assert.ok(partition!.entries.length >= 1)
      assert.ok(partition!.entries.length <= 5, `${partition!.entries.length} MB in one take`)
      assert.equal((await readAll(log, pool)).length, 12 - partition!.entries.length)
    })

    test('a partition that the caller requests is returned even if it is empty', async () => {
      await log.append([anAppend({ orderingKey: 'somewhere' })])
      await opened.readable()
      const partition = (await takeOnce(log, pool))[0]!.partition
      const taken = await takeOnce(log, pool, { ...EVERYTHING, alsoPartitions: [partition] })
      assert.deepEqual(taken, [{ partition, entries: [], position: null }])
    })

    test('lag reports the unread entries per partition and the age of the oldest', async () => {
      const empty = await log.lag()
      assert.ok(empty.every(({ entries, oldestAt }) => entries === 0 && oldestAt === null))
      const oldest = new Date(Date.now() - 5_000)
      await log.append([anAppend({ orderingKey: 'lagging', receivedAt: oldest }), anAppend({ orderingKey: 'lagging' })])
      const waiting = (await log.lag()).filter(({ entries }) => entries > 0)
      assert.deepEqual(
        waiting.map(({ entries, oldestAt }) => ({ entries, oldestAt })),
        [{ entries: 2, oldestAt: oldest }],
      )
      await readAll(log, pool)
      assert.ok((await log.lag()).every(({ entries }) => entries === 0))
    })

    test('an entry is found by its id before and after it is read, and only by its own tenant', async () => {
      const { entry } = anAppend({ body: 'find me' })
      await log.append([{ entry, claim: null }])
      assert.deepEqual(await log.find(1, entry.id), entry)
      await readAll(log, pool)
      assert.deepEqual(await log.find(1, entry.id), entry)
      assert.equal(await log.find(2, entry.id), null)
      assert.equal(await log.find(1, newEntryId(Date.now())), null)
    })

    test('a listener is notified of appends until it stops', async () => {
      let heard = 0
      const stop = log.onAppend(() => heard++)
      await log.append([anAppend()])
      assert.equal(heard, 1)
      stop()
      await log.append([anAppend()])
      assert.equal(heard, 1)
      await readAll(log, pool)
    })

    test('an append in a transaction becomes visible and notifies listeners at the commit', async () => {
      let heard = 0
      const stop = log.onAppend(() => heard++)
      await inTransaction(pool, async client => {
        await log.append([anAppend({ body: 'with the rest' })], { client })
        assert.equal(heard, 0)
        assert.ok((await log.lag()).every(({ entries }) => entries === 0))
      })
      assert.equal(heard, 1)
      await assert.rejects(
        inTransaction(pool, async client => {
          await log.append([anAppend({ body: 'never' })], { client })
          throw new Error('the rest fails')
        }),
        /the rest fails/,
      )
      assert.equal(heard, 1)
      stop()
      assert.deepEqual(bodies(await readAll(log, pool)), ['with the rest'])
    })

    test('a failed append appends nothing of its batch, and later appends succeed', async () => {
      const impossible = anEntry({ kind, body: 'holds \0' })
      const large = Array.from({ length: 50 }, () => anAppend({ body: 'x'.repeat(100_000) }))
      await assert.rejects(log.append([...large, { entry: impossible, claim: null }, ...large]))
      await log.append([anAppend({ body: 'after the failure' })])
      assert.deepEqual(bodies(await readAll(log, pool)), ['after the failure'])
    })

    if (claims) claimContract(() => opened)
  })
}

function claimContract(opened: () => OpenedLog) {
  test('a repeated key returns its first use and appends nothing', async () => {
    const { log, pool } = opened()
    const first = aRecord({ body: 'first' }, 'key-1')
    const second = aRecord({ body: 'second' }, 'key-1')
    assert.deepEqual(await log.append([first]), [{ duplicateOf: null }])
    const [again] = await log.append([second])
    assert.equal(again!.duplicateOf?.operationId, first.entry.id)
    assert.deepEqual(again!.duplicateOf?.bodyHash, first.claim!.bodyHash)
    assert.equal(again!.duplicateOf?.entityType, 'product')
    assert.equal(again!.duplicateOf?.recordId, 'p-1')
    assert.deepEqual(bodies(await readAll(log, pool)), ['first'])
  })

  test('in one batch the first use of a key wins, and entries without a key are unaffected', async () => {
    const { log, pool } = opened()
    const batch = [
      aRecord({ body: 'a' }, 'key-2'),
      aRecord({ body: 'b' }),
      aRecord({ body: 'c' }, 'key-2'),
      aRecord({ body: 'd' }, 'key-3'),
    ]
    const appended = await log.append(batch)
    assert.deepEqual(
      appended.map(({ duplicateOf }) => duplicateOf?.operationId ?? null),
      [null, null, batch[0]!.entry.id, null],
    )
    assert.deepEqual(bodies(await readAll(log, pool)), ['a', 'b', 'd'])
  })

  test('of concurrent appends with one key exactly one wins, and all others refer to it', async () => {
    const { log, pool } = opened()
    const appends = Array.from({ length: 20 }, (_, i) => aRecord({ body: `try ${i}` }, 'contested'))
    const results = await Promise.all(appends.map(append => log.append([append])))
    const winners = appends.filter((_, i) => results[i]![0]!.duplicateOf === null)
    assert.equal(winners.length, 1)
    for (const [result] of results) {
      if (result!.duplicateOf) assert.equal(result!.duplicateOf.operationId, winners[0]!.entry.id)
    }
    assert.deepEqual(bodies(await readAll(log, pool)), [winners[0]!.entry.body])
  })

  test('concurrent batches that claim the same keys in opposite order neither deadlock nor both win', async () => {
    const { log, pool } = opened()
    const keys = Array.from({ length: 30 }, (_, i) => `cross-${i}`)
    const batches = [keys, keys.toReversed(), keys, keys.toReversed()].map(order =>
      order.map(key => aRecord({ body: key }, key)),
    )
    const results = await Promise.all(batches.map(batch => log.append(batch)))
    const won = results.flatMap((result, b) =>
      result.flatMap(({ duplicateOf }, i) => (duplicateOf ? [] : [batches[b]![i]!.entry.body])),
    )
    assert.deepEqual(won.sort(), keys.toSorted())
    assert.equal((await readAll(log, pool)).length, keys.length)
  })

  test('two tenants can use the same key', async () => {
    const { log, pool } = opened()
    const results = await log.append([aRecord({ tenantId: 1 }, 'shared name'), aRecord({ tenantId: 2 }, 'shared name')])
    assert.deepEqual(results, [{ duplicateOf: null }, { duplicateOf: null }])
    await readAll(log, pool)
  })

  test('a key is stored together with its entry or not at all', async () => {
    const { log, pool } = opened()
    const impossible = aRecord({ body: 'holds \0' }, 'not consumed')
    await assert.rejects(log.append([impossible]))
    assert.deepEqual(await log.append([aRecord({ body: 'good' }, 'not consumed')]), [{ duplicateOf: null }])
    assert.deepEqual(bodies(await readAll(log, pool)), ['good'])
  })
}
