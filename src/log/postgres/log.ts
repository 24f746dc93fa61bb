import { setImmediate } from 'node:timers/promises'
import type pg from 'pg'
import { bytea, type Column, copyTable, int2, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import {
  afterCommit,
  type Db,
  inTransaction,
  isConflict,
  queryPrepared,
  RestartTransaction,
  transactionOn,
  withClient,
} from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import { retryWithPartitions } from '../../postgres/partitions.ts'
import { type Append, type Appended, choosePartition, type FlushGroup, type Log } from '../log.ts'
import { packBody, type StoredBody } from './bodies.ts'
import { appendClaiming, type LogFacts } from './claims.ts'
import {
  advance,
  countPartitions,
  find,
  findRead,
  forget,
  lag,
  partitionsWithEvents,
  take,
  unread,
  unreadWith,
} from './reader.ts'

// Two flushes keep the disk busy while the next one gathers. More would only make each smaller.
export const POSTGRES_FLUSHES: FlushGroup = {
  name: 'postgres',
  maxInFlight: 2,
  maxItems: 1_000,
  maxBytes: 4_000_000,
  gatherMs: 0,
}

/** The log, and what the log on JetStream needs, because it reads the events in PostgreSQL before its own. */
export type PostgresLog = Log & {
  /** The partitions whose next entries include events, and the number of partitions. */
  partitionsWithEvents(client: pg.PoolClient): Promise<{ held: number[]; partitions: number }>
}

/** `now`: the time at which keys are claimed, instead of PostgreSQL's. */
export function openPostgresLog({ pool, now }: { pool: pg.Pool; now?: () => Date }): PostgresLog {
  const listeners = new Set<() => void>()
  const epochs = openEpochs(pool)
  /** Entries appended by each open transaction: later appends of it continue there, so that no position is used twice. */
  const appendedIn = new WeakMap<object, number>()
  let partitions: number | undefined

  function wakeListeners(): void {
    for (const listener of listeners) listener()
  }

  async function appendOn(client: pg.PoolClient, batch: Append[], firstOrd = 0): Promise<Appended[]> {
    partitions ??= await countPartitions(client)
    const facts = { partitions, epoch: await epochs.current(client), firstOrd }
    if (batch.some(({ claim }) => claim !== null))
      return appendClaiming(client, batch, { ...facts, now: now?.() ?? null })
    await copyEntries(client, await packBodies(batch), facts)
    return batch.map(() => ({ duplicateOf: null }))
  }

  async function appendAlone(batch: Append[]): Promise<Appended[]> {
    // The clock may have jumped past all prepared partitions: a machine that slept for weeks does not wait for the next upkeep.
    const attempt = () => retryWithPartitions(pool, () => withClient(pool, client => appendOn(client, batch)))
    const appended = await attempt().catch(async error => {
      if (isOtherEpoch(error)) await epochs.enter()
      else if (!isConflict(error)) throw error
      return attempt()
    })
    wakeListeners()
    return appended
  }

  async function appendWithin(client: pg.PoolClient, batch: Append[]): Promise<Appended[]> {
    const transaction = transactionOn(client)
    const firstOrd = appendedIn.get(transaction) ?? 0
    appendedIn.set(transaction, firstOrd + batch.length)
    const appended = await appendOn(client, batch, firstOrd).catch(error => {
      throw epochs.toRestart(error)
    })
    afterCommit(client, wakeListeners)
    return appended
  }

  return {
    append: (batch, { client } = {}) => (client ? appendWithin(client, batch) : appendAlone(batch)),
    flushGroup: () => POSTGRES_FLUSHES,
    onAppend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async take(client, options) {
      try {
        return await take(client, options, await epochs.current(client))
      } catch (error) {
        throw epochs.toRestart(error)
      }
    },
    advance,
    lag: () => lag(pool),
    find: (tenantId, id) => find(pool, tenantId, id),
    unread: (tenantId, receivedBy) => unread(pool, tenantId, receivedBy),
    async unreadWith(tenantId, query) {
      return { entries: await unreadWith(pool, tenantId, query), unavailable: null }
    },
    findRead: (tenantId, query) => findRead(pool, tenantId, query),
    forget,
    outside: null,
    async partitionsWithEvents(client) {
      partitions ??= await countPartitions(client)
      return { held: await partitionsWithEvents(client), partitions }
    },
  }
}

type Row = Append & { stored: StoredBody }

// Compressing this much takes half a millisecond. Other requests must not wait for a whole flush.
const PORTION_LENGTH = 262_144

async function packBodies(batch: Append[]): Promise<Row[]> {
  const rows: Row[] = []
  let length = 0
  for (const append of batch) {
    const stored = packBody(append.entry.body)
    rows.push({ ...append, stored })
    if (stored.packed !== null) length += append.entry.body.length
    if (length < PORTION_LENGTH) continue
    length = 0
    await setImmediate()
  }
  return rows
}

const COLUMNS = {
  partition: int2(({ entry }, _, { partitions }) => choosePartition(entry.tenantId, entry.orderingKey, partitions)),
  epoch: int4((_entry, _index, { epoch }) => epoch),
  ord: int4((_entry, index, { firstOrd }) => firstOrd + index),
  id: uuid(({ entry }) => entry.id),
  tenant_id: int4(({ entry }) => entry.tenantId),
  kind: text(({ entry }) => entry.kind),
  ordering_key: text(({ entry }) => entry.orderingKey),
  received_at: timestamp(({ entry }) => entry.receivedAt),
  context: text(({ entry }) => entry.context),
  body_bytes: int4(({ entry, storedBytes }) => storedBytes ?? entry.body.length),
  body: text(({ stored }) => stored.body),
  packed: bytea(({ stored }) => stored.packed),
} satisfies Record<string, Column<Row, LogFacts>>

const copyEntries = copyTable<Row, LogFacts>('log', COLUMNS, {
  // Fails in another epoch. The function is called only for the first row of a transaction, because each call takes time.
  where: 'ord <> 0 or is_log_epoch(epoch)',
})

/**
 * Creates the cursors of a new installation and returns their number. It is fixed from then on, because it decides which entries
 * wait behind each other.
 */
export async function initializePostgresLog(pool: pg.Pool, partitions: number): Promise<number> {
  await pool.query(
    `insert into log_cursors (partition) select generate_series(0, $1 - 1)
     where not exists (select 1 from log_cursors) on conflict do nothing`,
    [partitions],
  )
  await enterEpoch(pool)
  return countPartitions(pool)
}

/**
 * Positions contain transaction ids, which start elsewhere in every cluster. The log knows its epoch, and each append and each take
 * checks it: the database behind the address may change at any moment.
 */
function openEpochs(pool: pg.Pool) {
  let known: number | undefined
  async function enter(): Promise<void> {
    known = await enterEpoch(pool)
  }
  return {
    /** The epoch as known here. PostgreSQL rejects a statement with an outdated one. */
    async current(db: Db): Promise<number> {
      if (known === undefined) {
        const { rows } = await queryPrepared<{ epoch: number }>(db, 'select max(epoch) as epoch from log_epochs')
        known = rows[0]!.epoch
      }
      return known
    },
    /** Reads the epoch again. Starts a new one if this is another database. */
    enter,
    /** A transaction with an outdated epoch restarts in the current one. */
    toRestart: (error: unknown): unknown =>
      isOtherEpoch(error) ? new RestartTransaction((error as Error).message, enter) : error,
  }
}

/** Raised by `is_log_epoch` in the migrations. */
function isOtherEpoch(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'KT001'
}

/** One node after the other: the second finds the epoch that the first has started. */
function enterEpoch(pool: pg.Pool): Promise<number> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.epoch)
    const { rows } = await client.query<{ epoch: number }>('select enter_log_epoch() as epoch')
    return rows[0]!.epoch
  })
}

/** For a restored backup, in the transaction that restores it: all its entries sort before new ones, in any database. */
export async function startEpoch(client: pg.PoolClient): Promise<void> {
  await client.query(
    'insert into log_epochs (epoch, database) select coalesce(max(epoch), 0) + 1, log_database() from log_epochs',
  )
}
