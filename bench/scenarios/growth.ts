import { setTimeout as sleep } from 'node:timers/promises'
import { DAY_MS } from '../../src/domain/time.ts'
import { countRows, median } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { residentBytes } from './memory.ts'

const SMALL = 100_000
const LARGE = Number(process.env.BENCH_GROWTH_EVENTS ?? 10_000_000)
const MONTHS = 12
const PEOPLE = 200_000
const PER_BATCH = 500
const CONNECTIONS = 4
const REPEATS = 15

/**
 * The same questions with 100,000 and with 10 million events of twelve months, idle and while events arrive. An answer
 * should take as long with the large number as with the small one.
 */
export const growth: Scenario = async () => {
  const service = await startService()
  try {
    const stages: Stage[] = []
    let sent = 0
    for (const events of [SMALL, LARGE]) {
      const perSecond = await fill(service, { from: sent, to: events })
      sent = events
      await service.pool.query('vacuum analyze')
      const idle = await measureQuestions(service)
      const stop = keepSending(service, sent)
      const busy = await measureQuestions(service)
      await stop()
      stages.push({
        events: await countRows(service, 'events'),
        perSecond,
        idle,
        busy,
        bytes: await bytesPerEvent(service),
      })
    }
    const [small, large] = stages as [Stage, Stage]
    const slowest = (stage: Stage, when: 'idle' | 'busy') =>
      Math.max(...Object.keys(stage[when]).map(name => large[when][name]! / Math.max(1, small[when][name]!)))
    return {
      facts: { small, large },
      bars: [
        { what: 'largest growth of an answer, idle', value: slowest(large, 'idle'), atMost: 1.5 },
        { what: 'largest growth of an answer while events arrive', value: slowest(large, 'busy'), atMost: 1.5 },
        { what: 'slowest answer, idle (ms)', value: Math.max(...Object.values(large.idle)), atMost: 20 },
        { what: 'slowest answer while events arrive (ms)', value: Math.max(...Object.values(large.busy)), atMost: 20 },
        { what: 'bytes per event, after the retention of the log', value: keptBytes(large), atMost: 700 },
        { what: 'MB resident at the end', value: residentBytes(service.pid) / 1_000_000, atMost: 250 },
        { what: 'rate with many events / rate with few', value: large.perSecond / small.perSecond, atLeast: 0.85 },
      ],
    }
  } finally {
    await service.stop()
  }
}

export type GrowthFacts = { small: Stage; large: Stage }

type Stage = {
  events: number
  /** Accepted and processed. */
  perSecond: number
  /** The median time of each question in milliseconds. */
  idle: Record<string, number>
  busy: Record<string, number>
  /** Bytes per event of each table and index. */
  bytes: Record<string, number>
}

/** Events are numbered. The number determines the time, so that every period of the twelve months has events. */
async function fill(service: Service, { from, to }: { from: number; to: number }): Promise<number> {
  const startedAt = performance.now()
  let next = from
  const sender = async () => {
    while (next < to) {
      const first = next
      next += PER_BATCH
      await post(service, first)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, sender))
  await service.drained()
  return Math.round((to - from) / ((performance.now() - startedAt) / 1000))
}

async function post(service: Service, first: number): Promise<void> {
  const body = JSON.stringify({ batch: Array.from({ length: PER_BATCH }, (_, index) => createEvent(first + index)) })
  for (;;) {
    const response = await fetch(`${service.url}/v1/batch`, {
      method: 'POST',
      headers: { authorization: service.tracking, 'content-type': 'application/json' },
      body,
    })
    await response.arrayBuffer()
    if (response.ok) return
    if (response.status !== 503 && response.status !== 429) throw new Error(`The server answered ${response.status}.`)
    await sleep(200)
  }
}

const now = Date.now()

function createEvent(number: number) {
  const person = (number * 7_919) % PEOPLE
  // Multiplying by a large prime spreads the numbers over the period.
  const age = ((number * 2_654_435_761) % 1_000_003) / 1_000_003
  const type = number % 100_000 === 17 ? 'Rare' : TYPES[number % TYPES.length]!
  return {
    type: 'track',
    event: type,
    messageId: `m-${number}`,
    anonymousId: `visitor-${person}`,
    timestamp: new Date(now - age * MONTHS * 30 * DAY_MS).toISOString(),
    properties: {
      page: `https://shop.example/products/${number % 300}`,
      ...(type === 'Order Completed' && { order_id: `o-${number}`, total: 49.9, currency: 'EUR' }),
    },
  }
}

const TYPES = [
  ...Array.from({ length: 49 }, (_, index) => ['Product Viewed', 'Product Added', 'Page'][index % 3]!),
  'Order Completed',
]

/** Sends at a moderate rate until the returned function is called. */
function keepSending(service: Service, from: number): () => Promise<void> {
  let stopped = false
  let next = from
  const sending = (async () => {
    while (!stopped) {
      await post(service, next)
      next += PER_BATCH
      await sleep(200)
    }
  })()
  return async () => {
    stopped = true
    await sending
    await service.drained()
  }
}

async function measureQuestions(service: Service): Promise<Record<string, number>> {
  const questions = await listQuestions(service)
  const admin = `Bearer ${(await service.command('key', 'create', '--kind', 'admin')).key}`
  const times: Record<string, number> = {}
  for (const [name, path] of Object.entries(questions)) {
    const each: number[] = []
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const startedAt = performance.now()
      const authorization = path.startsWith('/admin') ? admin : service.private
      const response = await fetch(`${service.url}${path}`, { headers: { authorization } })
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${path}: ${response.status}`)
      each.push(performance.now() - startedAt)
    }
    times[name] = Math.round(median(each) * 10) / 10
  }
  return times
}

async function listQuestions(service: Service): Promise<Record<string, string>> {
  const { rows } = await service.pool.query<{ id: string }>(
    `select e.id from events e
     where e.inbound_event_id = 'm-1000'`,
  )
  const month = (ago: number) => new Date(now - ago * 30 * DAY_MS).toISOString()
  return {
    'first page': '/v1/events',
    'by type': '/v1/events?event_type=Page',
    'rare type': '/v1/events?event_type=Rare',
    'no match': '/v1/events?event_type=None',
    'time window': `/v1/events?since=${month(6)}&until=${month(5)}`,
    'by id': `/v1/events/${rows[0]!.id}`,
    conversions: '/v1/conversions',
    'by the sender’s id': '/v1/events/lookup?event_id=m-1000',
    'series by day': '/v1/events/series?interval=day',
    'series by day of a year': `/v1/events/series?interval=day&since=${month(12)}`,
    'series by hour': '/v1/events/series?interval=hour',
    'series by day, by type': '/v1/events/series?interval=day&group_by=event_type',
    'conversions by day': '/v1/conversions/series?interval=day',
    search: '/v1/search?q=visitor-7919',
    'person page': '/admin/v1/people/visitor:visitor-7919?tenant=default',
    'timeline of a person': '/admin/v1/people/visitor:visitor-7919/timeline?tenant=default',
  }
}

/** Everything but the log, whose entries are deleted after their retention. */
function keptBytes({ bytes }: Stage): number {
  return Object.entries(bytes).reduce((sum, [name, own]) => (name.startsWith('log') ? sum : sum + own), 0)
}

async function bytesPerEvent(service: Service): Promise<Record<string, number>> {
  const { rows } = await service.pool.query<{ name: string; bytes: number }>(
    `with total as (select count(*)::float8 as events from events)
     select coalesce(p.relname, c.relname) as name,
       round((sum(pg_relation_size(c.oid) + case when c.relkind = 'r' then coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) else 0 end)
         / (select events from total))::numeric, 1)::float8 as bytes
     from pg_class c
     left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
     where c.relkind in ('r', 'i') and c.relnamespace = 'public'::regnamespace
     group by 1 having sum(pg_relation_size(c.oid)) > 1000000 order by 2 desc limit 30`,
  )
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]))
}
