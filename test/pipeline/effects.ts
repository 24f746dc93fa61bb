import type pg from 'pg'
import type { Entry } from '../../src/domain/entries/entry.ts'
import { itemId } from '../../src/domain/ids.ts'
import type { Log } from '../../src/log/log.ts'
import { openScheduler, type Scheduler } from '../../src/pipeline/scheduler.ts'
import { openTransactions, type Retry, type TransactionOptions } from '../../src/pipeline/transaction.ts'
import type { Kind, Transaction, Unit } from '../../src/pipeline/unit.ts'
import { openTestLog } from '../log/open.ts'
import { settled } from '../settled.ts'

/** One unit of work. Applying it writes the text to the table `effects`, unless PostgreSQL fails on it. */
type Work = { index: number; text: string }

type EffectKind = Kind<Work> & { apply(transaction: Transaction, units: Unit<Work>[]): Promise<void> }

/**
 * A kind of entries whose body is a JSON array of strings. Applying a string writes it to the table `effects`. `isPoison`
 * selects the strings on which PostgreSQL fails. A body that is not JSON cannot be decoded.
 */
export function effectKind(isPoison: (text: string) => boolean = () => false): EffectKind {
  return {
    decode(entry) {
      const { items } = JSON.parse(entry.context) as { items?: number[] }
      const works = (JSON.parse(entry.body) as string[]).map((text, index) => ({ index, text }))
      return { works: items ? works.filter(({ index }) => items.includes(index)) : works, rejected: [] }
    },
    async apply({ client }, units) {
      await client.query(
        `insert into effects (ordering_key, entry_id, body)
         select * from unnest($1::text[], $2::uuid[], $3::text[])`,
        [
          units.map(({ entry }) => entry.orderingKey),
          units.map(({ entry }) => entry.id),
          units.map(({ work }) => work.text),
        ],
      )
      if (units.some(({ work }) => isPoison(work.text))) await client.query('select 1 / 0')
    },
    narrow: (entry, works) => ({
      ...entry,
      context: JSON.stringify({ items: works.map(({ index }) => index) }),
    }),
    deadLetter({ entry, work }, error, attempts) {
      const own = work ? { ...entry, body: JSON.stringify([work.text]), context: '{}' } : entry
      return {
        id: work ? itemId(entry.id, work.index) : entry.id,
        entry: own,
        sourceId: null,
        inboundEventId: null,
        reason: 'failed',
        error,
        attempts,
      }
    },
    async recordFailure({ client }, { work }) {
      if (work?.text.endsWith('and cannot be recorded')) await client.query('select 1 / 0')
    },
  }
}

/** Long enough to observe that an entry waits, short enough for a test. */
export const QUICK_RETRY: Retry = { attempts: 3, firstDelayMs: 5, maxDelayMs: 20 }

const silent = { error: () => {}, warn: () => {} }

type Given = {
  kind?: EffectKind
  log?: Log
  workers?: number
  retry?: Retry
  logger?: TransactionOptions['logger']
}

export type Pipeline = Awaited<ReturnType<typeof openPipeline>>

export async function openPipeline() {
  const opened = await openTestLog()
  const { pool, log } = opened
  await pool.query(
    'create table effects (n bigint generated always as identity, ordering_key text, entry_id uuid, body text)',
  )
  const schedulers: Scheduler[] = []
  return {
    ...opened,
    start(given: Given = {}) {
      const kind = given.kind ?? effectKind()
      const runTransaction = openTransactions({
        ...{ pool, log, retry: QUICK_RETRY, logger: silent, ...given },
        ...asOnlyKind(kind),
      })
      const { onAppend } = given.log ?? log
      const scheduler = openScheduler({
        ...{ runTransaction, onAppend, logger: silent },
        workers: given.workers ?? 2,
      })
      schedulers.push(scheduler)
      scheduler.start()
      return scheduler
    },
    /** Stops the workers and deletes all entries and effects: what a failed test leaves must not fail the next one. */
    async reset() {
      await Promise.all(schedulers.splice(0).map(scheduler => scheduler.stop()))
      await pool.query('delete from log')
      await pool.query('truncate effects, parked_entries, dead_letters')
    },
    settled: () => settled(pool),
    effects: () => effectsIn(pool),
    async deadLetters() {
      const { rows } = await pool.query<{ body: string; error: string; attempts: number }>(
        'select body, error, attempts from dead_letters order by id',
      )
      return rows
    },
  }
}

/** Processes record entries and event entries with this kind. */
export function asOnlyKind(kind: EffectKind): Pick<TransactionOptions, 'kinds' | 'applyBatch'> {
  return {
    kinds: { record: kind as Kind, events: kind as Kind },
    applyBatch: (transaction, units) => kind.apply(transaction, units as Unit<Work>[]),
  }
}

/** The applied strings by ordering key, in the order in which they were applied. */
async function effectsIn(pool: pg.Pool): Promise<Record<string, string[]>> {
  const { rows } = await pool.query<{ ordering_key: string; bodies: string[] }>(
    'select ordering_key, array_agg(body order by n) as bodies from effects group by 1',
  )
  return Object.fromEntries(rows.map(row => [row.ordering_key, row.bodies]))
}

export function texts(...list: string[]): Pick<Entry, 'body'> {
  return { body: JSON.stringify(list) }
}
