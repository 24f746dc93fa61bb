import { type Postgres, query } from '../deployment/postgres.ts'
import type { Shop } from '../deployment/shops.ts'
import { pages, type Read, reader } from './api.ts'
import { bounds, type Outcome } from './outcomes.ts'
import type { Problem } from './problems.ts'

type EventRow = { id: string; occurred_at: string; payload: unknown }
type ConversionRow = { id: string; occurred_at: string; source: string; source_object_id: string | null }

/** Every acknowledged event is listed exactly once, every unclear one at most once, and no others. */
export async function checkEvents(url: string, shop: Shop, outcomes: Outcome[]): Promise<Problem[]> {
  const read = reader(url, shop.privateKey)
  const counts = new Map<string, number>()
  const times: number[] = []
  for await (const row of pages<EventRow>(read, '/v1/events?limit=100')) {
    count(counts, /"marker":"([^"]+)"/.exec(JSON.stringify(row.payload))?.[1] ?? `(no marker) ${row.id}`)
    times.push(Date.parse(row.occurred_at))
  }
  const sent = outcomes.filter(({ item }) => item.row === 'event' || (!item.row && !item.record))
  return [...compare('event', sent, counts), ...(await checkSeries(read, '/v1/events/series', times))]
}

/** One sale for each conversion event and each existing order. */
export async function checkConversions(url: string, shop: Shop, outcomes: Outcome[]): Promise<Problem[]> {
  const read = reader(url, shop.privateKey)
  const counts = new Map<string, number>()
  const orders = new Map<string, number>()
  const times: number[] = []
  for await (const row of pages<ConversionRow>(read, '/v1/conversions?limit=100')) {
    count(row.source === 'orders' ? orders : counts, row.source_object_id ?? `(no object) ${row.id}`)
    times.push(Date.parse(row.occurred_at))
  }
  const listed = new Map<string, number>()
  for await (const { id } of pages<{ id: string }>(read, '/v1/orders?limit=100')) count(listed, id)
  const sent = outcomes.filter(({ item }) => item.row === 'conversion')
  return [
    ...compare('conversion', sent, counts),
    ...sameCounts('order', listed, orders),
    ...(await checkSeries(read, '/v1/conversions/series', times)),
  ]
}

const DAY_MS = 86_400_000

/** The totals of the pipeline equal the sums of the rows. */
async function checkSeries(read: Read, path: string, times: number[]): Promise<Problem[]> {
  const { status, body } = await read(`${path}?interval=day`)
  if (status === 404) return [] // a version without series
  const buckets = body.results as { at: string; count: number }[]
  return buckets.flatMap(({ at, count }) => {
    const from = Date.parse(at)
    const rows = times.filter(time => time >= from && time < from + DAY_MS).length
    if (rows === count) return []
    return [
      {
        kind: 'wrong' as const,
        words: `${path} reports ${count} on ${at}, but there are ${rows} rows`,
        at: null,
      },
    ]
  })
}

/** The sent items, and how often each marker is listed. */
export function compare(what: string, sent: Outcome[], counts: Map<string, number>): Problem[] {
  const problems: Problem[] = []
  for (const outcome of sent) {
    const { item, acknowledgedAt, firstSentAt } = outcome
    const found = counts.get(item.marker) ?? 0
    counts.delete(item.marker)
    const { least, most } = bounds(outcome)
    const at = acknowledgedAt ?? firstSentAt
    const name = `${what} ${item.marker}${item.claim ? ` (${item.claim})` : ''}`
    if (found < least) problems.push({ kind: 'missing', words: name, at })
    if (found > most && found === 1) problems.push({ kind: 'unexpected', words: `${name}, which was rejected`, at })
    if (found > most && found > 1) problems.push({ kind: 'duplicate', words: `${name}, ${found} times`, at })
  }
  for (const name of counts.keys())
    problems.push({ kind: 'unexpected', words: `${what} ${name}, which was never sent`, at: null })
  return problems
}

function sameCounts(what: string, listed: Map<string, number>, conversions: Map<string, number>): Problem[] {
  const ids = new Set([...listed.keys(), ...conversions.keys()])
  return [...ids].flatMap(id => {
    const [rows, sales] = [listed.get(id) ?? 0, conversions.get(id) ?? 0]
    if (rows === 1 && sales === 1) return []
    return [{ kind: 'wrong' as const, words: `${what} ${id}: ${rows} records, ${sales} conversions`, at: null }]
  })
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** An inbound event is processed once, even if it was sent several times. */
export async function checkReceipts(postgres: Postgres, outcomes: Outcome[]): Promise<Problem[]> {
  const rows = await query<{ source: string; claim: string; processed: number }>(
    postgres,
    `select source_id as source, inbound_event_id as claim, count(*)::int as processed
     from receipts where outcome = 'processed' group by 1, 2 having count(*) > 1`,
  )
  const sentAt = new Map(outcomes.map(({ item, firstSentAt }) => [`${item.source}/${item.claim}`, firstSentAt]))
  return rows.map(({ source, claim, processed }) => ({
    kind: 'duplicate',
    words: `inbound event ${claim} was processed ${processed} times`,
    at: sentAt.get(`${source}/${claim}`) ?? null,
  }))
}
