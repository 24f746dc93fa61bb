import type pg from 'pg'
import { type Column, copyTable, int2, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import { afterCommit, isConflict, transactionOn, withClient } from '../../postgres/database.ts'
import { makingPartitions } from '../../postgres/partitions.ts'
import type { Append, Appended, FlushGroup, Log } from '../log.ts'
import { partitionOf } from '../log.ts'
import { appendClaiming, findFirstUses, type LogFacts } from './claims.ts'
import { isOtherEra, openEras } from './eras.ts'
import { countPartitions } from './initialise.ts'
import { countRead, find, forget, hasEntriesSince, newestAhead } from './kept.ts'
import { advance, take } from './reader.ts'
import { lag, partitionsWithEvents, unread, unreadWith } from './unread.ts'

// Two flushes keep the disk busy while the next one gathers; more would only make each smaller.
export const POSTGRES_FLUSHES: FlushGroup = {
  name: 'postgres',
  maxInFlight: 2,
  maxItems: 1_000,
  maxBytes: 4_000_000,
  gatherMs: 0,
}

const MAX_CANDIDATES = 50

/** What a log beside it has to know: it reads what came before its own entries first. */
export type PostgresLog = Log & {
  /** The partitions in which events stand among the next to be read, and how many partitions there are. */
  partitionsWithEvents(client: pg.PoolClient): Promise<{ held: number[]; partitions: number }>
}

/** `now`: the time at which keys are claimed, instead of PostgreSQL's. */
export function openPostgresLog({ pool, now }: { pool: pg.Pool; now?: () => Date }): PostgresLog {
  const listeners = new Set<() => void>()
  const eras = openEras(pool)
  /** How many, of transactions under way: what is appended later in one comes after, and never has a position twice. */
  const appendedIn = new WeakMap<object, number>()
  let partitions: number | undefined

  function wakeListeners(): void {
    for (const listener of listeners) listener()
  }

  async function appendOn(client: pg.PoolClient, batch: Append[], firstOrd = 0): Promise<Appended[]> {
    partitions ??= await countPartitions(client)
    const facts = { partitions, epoch: await eras.current(client), firstOrd }
    if (batch.some(({ claim }) => claim !== null))
      return appendClaiming(client, batch, { ...facts, now: now?.() ?? null })
    await copyEntries(client, batch, facts)
    return batch.map(() => ({ duplicateOf: null }))
  }

  async function appendAlone(batch: Append[]): Promise<Appended[]> {
    // The clock may have jumped past all that was prepared: a machine that slept for weeks does not wait for the next upkeep.
    const attempt = () => makingPartitions(pool, () => withClient(pool, client => appendOn(client, batch)))
    const appended = await attempt().catch(async error => {
      if (isOtherEra(error)) await eras.enter()
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
      throw eras.beginAgain(error)
    })
    afterCommit(client, wakeListeners)
    return appended
  }

  return {
    append: (batch, { client } = {}) => (client ? appendWithin(client, batch) : appendAlone(batch)),
    async take(client, options) {
      try {
        return await take(client, options, await eras.current(client))
      } catch (error) {
        throw eras.beginAgain(error)
      }
    },
    advance,
    groupOf: () => POSTGRES_FLUSHES,
    outside: null,
    onAppend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    lag: () => lag(pool),
    async firstUse(tenantId, key) {
      return (await findFirstUses(pool, [{ tenantId, key }]))[0] ?? null
    },
    find: (tenantId, id) => find(pool, tenantId, id),
    unread: (tenantId, receivedBy) => unread(pool, tenantId, receivedBy),
    async unreadWith(tenantId, text) {
      return { entries: await unreadWith(pool, tenantId, text, MAX_CANDIDATES), away: null }
    },
    countRead: (tenantId, entries) => countRead(pool, tenantId, entries),
    forget,
    hasEntriesSince,
    newestAhead: seconds => newestAhead(pool, seconds),
    async partitionsWithEvents(client) {
      partitions ??= await countPartitions(client)
      return { held: await partitionsWithEvents(client), partitions }
    },
  }
}

const COLUMNS = {
  partition: int2(({ entry }, _, { partitions }) =>
    partitionOf(entry.tenantId, entry.orderingKey, partitions),
  ),
  epoch: int4((_entry, _index, { epoch }) => epoch),
  ord: int4((_entry, index, { firstOrd }) => firstOrd + index),
  id: uuid(({ entry }) => entry.id),
  tenant_id: int4(({ entry }) => entry.tenantId),
  kind: text(({ entry }) => entry.kind),
  ordering_key: text(({ entry }) => entry.orderingKey),
  received_at: timestamp(({ entry }) => entry.receivedAt),
  context: text(({ entry }) => entry.context),
  body_bytes: int4(({ entry, storedBytes }) => storedBytes ?? entry.body.length),
  body: text(({ entry }) => entry.body),
} satisfies Record<string, Column<Append, LogFacts>>

const copyEntries = copyTable<Append, LogFacts>('log', COLUMNS, {
  // In the same message, so that it costs no round trip, and in the same transaction.
  before: ({ epoch }) => `call assert_log_epoch(${epoch})`,
})
