import { cpuSeconds } from '../cpu.ts'
import { load, type Sent } from '../load.ts'
import { countRows } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { cdpBatches, productWrites, trackingEvents } from '../traffic.ts'

const ALL_BUT_WORKERS = ['--surfaces', 'data,events,inbound,console']

/** The cost of one event or write in one stage. */
type StageCost = {
  nodeUs: number
  postgresUs: number
  walBytes: number
  /** WAL syncs per event; a fraction because of group commit. */
  syncs: number
}

export type KindCost = {
  count: number
  accept: StageCost
  process: StageCost
  /** Bytes on disk by table, including indexes. */
  kept: Record<string, number>
}

export type StageFacts = { single: KindCost; batched: KindCost; record: KindCost }

/**
 * Measures accepting and processing separately: a backlog accumulates without workers and is then processed without new requests.
 * `npm run bench -- plan` uses these figures.
 */
export const stages: Scenario = async ({ connections, seconds }) => {
  const service = await startService()
  try {
    const { tracking, private: data } = service
    const single = { traffic: trackingEvents(), connections, authorization: tracking }
    const batched = { traffic: cdpBatches(), connections: 16, authorization: tracking }
    const record = { traffic: productWrites(), connections, authorization: data }
    const facts: StageFacts = {
      single: await measureCost(service, { ...single, seconds, table: 'events' }),
      batched: await measureCost(service, { ...batched, seconds: Math.ceil(seconds / 3), table: 'events' }),
      record: await measureCost(service, { ...record, seconds, table: 'records' }),
    }
    const total = ({ accept, process }: KindCost) =>
      accept.nodeUs + accept.postgresUs + process.nodeUs + process.postgresUs
    return {
      facts,
      bars: [
        {
          what: 'CPU of a batched event / CPU of a single event',
          value: total(facts.batched) / total(facts.single),
          atMost: 0.5,
        },
        {
          what: 'CPU µs of a single event, accepted and processed',
          value: total(facts.single),
          atMost: 1_000,
        },
      ],
    }
  } finally {
    await service.stop()
  }
}

type Work = {
  traffic: Sent[]
  connections: number
  authorization: string
  seconds: number
  table: 'events' | 'records'
}

async function measureCost(service: Service, { seconds, table, ...work }: Work): Promise<KindCost> {
  await service.restart([])
  const idle = await readUsage(service) // the cost of the start alone
  await service.restart(ALL_BUT_WORKERS)
  const send = (forSeconds: number) => load({ url: service.url, ...work, seconds: forSeconds })
  await send(2)
  await service.restart([])
  await service.drained()
  await service.restart(ALL_BUT_WORKERS)
  const [rowsBefore, keptBefore] = [await countRows(service, table), await keptBy(service)]
  await service.pool.query('checkpoint')
  const before = await readUsage(service)
  await send(seconds)
  const accepted = await readUsage(service)

  await service.restart([])
  await service.drained()
  const processed = await readUsage(service)
  const count = (await countRows(service, table)) - rowsBefore
  const keptAfter = await keptBy(service)
  const per = (amount: number) => Math.max(0, amount) / count
  const us = (amount: number) => round(per(amount) * 1e6)
  return {
    count,
    accept: {
      nodeUs: us(accepted.node - before.node),
      postgresUs: us(accepted.postgres - before.postgres),
      walBytes: round(per(accepted.wal - before.wal)),
      syncs: round(per(accepted.syncs - before.syncs)),
    },
    process: {
      // of a process that started with this stage
      nodeUs: us(processed.node - idle.node),
      postgresUs: us(processed.postgres - accepted.postgres),
      walBytes: round(per(processed.wal - accepted.wal)),
      syncs: round(per(processed.syncs - accepted.syncs)),
    },
    kept: Object.fromEntries(
      Object.entries(keptAfter)
        .map(([name, bytes]) => [name, Math.round((bytes - (keptBefore[name] ?? 0)) / count)] as const)
        .filter(([, bytes]) => bytes > 0),
    ),
  }
}

const round = (value: number) => Number(value.toPrecision(3))

async function readUsage(service: Service) {
  const { rows } = await service.pool.query<{ wal: number; syncs: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
       (select coalesce(sum(fsyncs), 0)::float8 from pg_stat_io where object = 'wal') as syncs`,
  )
  const postgres = cpuSeconds(await service.postmasterPid(), true)
  return { ...rows[0]!, node: cpuSeconds(service.pid) ?? 0, postgres: postgres ?? 0 }
}

/** Bytes of every table with its partitions and indexes. */
async function keptBy(service: Service): Promise<Record<string, number>> {
  const { rows } = await service.pool.query<{ name: string; bytes: number }>(
    `select coalesce(p.relname, c.relname) as name, sum(pg_total_relation_size(c.oid))::float8 as bytes
     from pg_class c
     left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace group by 1`,
  )
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]))
}
