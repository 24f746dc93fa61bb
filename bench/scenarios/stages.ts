import { cpuSeconds, threadSeconds } from '../cpu.ts'
import { load, type Sent } from '../load.ts'
import { countRows } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { productWrites, smallBatches, trackingEvents } from '../traffic.ts'

const ALL_BUT_WORKERS = ['--surfaces', 'data,events,inbound,console']

/** The cost of one event or write in one stage. */
type StageCost = {
  nodeUs: number
  postgresUs: number
  walBytes: number
  /** WAL syncs per event; a fraction because of group commit. */
  syncs: number
  /** Microseconds by thread of the server and by kind of PostgreSQL process. */
  parts: Record<string, number>
}

export type KindCost = {
  count: number
  accept: StageCost
  process: StageCost
  /** Bytes on disk by table, including indexes. */
  kept: Record<string, number>
  /** Bytes on disk of each table without its indexes, and of each index. */
  keptParts: Record<string, number>
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
    const batched = { traffic: smallBatches(), connections: 16, authorization: tracking }
    const record = { traffic: productWrites(), connections, authorization: data }
    const facts: StageFacts = {
      single: await measureCost(service, { ...single, seconds, table: 'events' }),
      batched: await measureCost(service, { ...batched, seconds: Math.ceil(seconds / 3), table: 'events' }),
      record: await measureCost(service, { ...record, seconds, table: 'records' }),
    }
    const sum = (bytes: Record<string, number>) => Object.values(bytes).reduce((all, each) => all + each, 0)
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
        { what: 'bytes of a batched event while it is in the log', value: sum(facts.batched.kept), atMost: 1_000 },
        {
          what: 'bytes of a batched event after the retention of the log',
          value: sum(facts.batched.kept) - (facts.batched.kept.log ?? 0),
          atMost: 700,
        },
        {
          what: 'bytes of WAL of a batched event',
          value: facts.batched.accept.walBytes + facts.batched.process.walBytes,
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
  const [rowsBefore, keptBefore] = [await countRows(service, table), await readSizes(service)]
  // Pages that the warm-up wrote are not vacuumed at the cost of the measured events.
  await service.pool.query('vacuum')
  await service.pool.query('checkpoint')
  const before = await readUsage(service)
  await send(seconds)
  const accepted = await readUsage(service)

  await service.restart([])
  await service.drained()
  const processed = await readUsage(service)
  const count = (await countRows(service, table)) - rowsBefore
  const keptAfter = await readSizes(service)
  const per = (amount: number) => Math.max(0, amount) / count
  const us = (amount: number) => round(per(amount) * 1e6)
  return {
    count,
    accept: {
      nodeUs: us(accepted.node - before.node),
      postgresUs: us(accepted.postgres - before.postgres),
      walBytes: round(per(accepted.wal - before.wal)),
      syncs: round(per(accepted.syncs - before.syncs)),
      parts: partsSince(before, accepted),
    },
    process: {
      // The server and its PostgreSQL started with this stage.
      nodeUs: us(processed.node - idle.node),
      postgresUs: us(processed.postgres - idle.postgres),
      walBytes: round(per(processed.wal - accepted.wal)),
      syncs: round(per(processed.syncs - accepted.syncs)),
      parts: partsSince(idle, processed),
    },
    kept: bytesSince('tables'),
    keptParts: bytesSince('relations'),
  }

  function partsSince(from: Usage, to: Usage): Record<string, number> {
    const named = Object.entries(to.parts).map(([name, seconds]) => [name, seconds - (from.parts[name] ?? 0)] as const)
    const all = [...named, ['PostgreSQL: background processes', to.background - from.background] as const]
    return Object.fromEntries(
      all.map(([name, seconds]) => [name, us(seconds)] as const).filter(([, each]) => each > 0.1),
    )
  }

  function bytesSince(of: keyof Sizes): Record<string, number> {
    return Object.fromEntries(
      Object.entries(keptAfter[of])
        .map(([name, bytes]) => [name, Math.round((bytes - (keptBefore[of][name] ?? 0)) / count)] as const)
        .filter(([, bytes]) => bytes > 1),
    )
  }
}

const round = (value: number) => Number(value.toPrecision(3))

type Usage = Awaited<ReturnType<typeof readUsage>>

async function readUsage(service: Service) {
  const { rows } = await service.pool.query<{ wal: number; syncs: number }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
       (select coalesce(sum(fsyncs), 0)::float8 from pg_stat_io where object = 'wal') as syncs`,
  )
  const postgres = cpuSeconds(await service.postmasterPid(), true)
  return { ...rows[0]!, node: cpuSeconds(service.pid) ?? 0, postgres: postgres ?? 0, ...(await readParts(service)) }
}

const THREADS: Record<string, string> = {
  MainThread: 'Node: HTTP thread',
  pipeline: 'Node: pipeline thread',
  V8Worker: 'Node: garbage collection and compilation',
}
const CONNECTIONS: Record<string, string> = {
  kontor: 'PostgreSQL: connections of HTTP',
  'kontor worker': 'PostgreSQL: connections of the pipeline',
}

/** CPU seconds by thread and kind of connection, and of PostgreSQL's own processes. */
async function readParts(service: Service): Promise<{ parts: Record<string, number>; background: number }> {
  const { rows } = await service.pool.query<{ pid: number; name: string; is_client: boolean }>(
    `select pid, application_name as name, backend_type = 'client backend' as is_client from pg_stat_activity
     where pid <> pg_backend_pid() and application_name <> 'bench'`,
  )
  const parts: Record<string, number> = {}
  const add = (name: string, seconds: number) => {
    parts[name] = (parts[name] ?? 0) + seconds
  }
  for (const [name, seconds] of Object.entries(threadSeconds(service.pid)))
    add(THREADS[name] ?? 'Node: other threads', seconds)
  let background = 0
  for (const { pid, name, is_client } of rows) {
    const seconds = cpuSeconds(pid) ?? 0
    if (is_client) add(CONNECTIONS[name] ?? 'PostgreSQL: other connections', seconds)
    else background += seconds
  }
  return { parts, background }
}

type Sizes = { tables: Record<string, number>; relations: Record<string, number> }

/** Bytes of every table with its partitions, TOAST and indexes: by table, and by table and index. */
async function readSizes(service: Service): Promise<Sizes> {
  const { rows } = await service.pool.query<{ table: string; name: string; bytes: number }>(
    `with relations as (
       select c.oid, c.relkind, coalesce(p.relname, c.relname) as name, coalesce(x.indrelid, c.oid) as table_id,
         pg_total_relation_size(c.oid) - case when c.relkind = 'r' then pg_indexes_size(c.oid) else 0 end as bytes
       from pg_class c
       left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
       left join pg_index x on x.indexrelid = c.oid
       where c.relkind in ('r', 'i') and c.relnamespace = 'public'::regnamespace
     )
     select t.name as table, r.name, sum(r.bytes)::float8 as bytes
     from relations r join relations t on t.oid = r.table_id group by 1, 2`,
  )
  const sizes: Sizes = { tables: {}, relations: {} }
  for (const { table, name, bytes } of rows) {
    sizes.tables[table] = (sizes.tables[table] ?? 0) + bytes
    sizes.relations[name === table ? name : `${table}: ${name}`] = bytes
  }
  return sizes
}
