import { type Amount, sumAmounts, toNumber } from '../amount.ts'
import { alerts, destinations, inbound, tenants } from '../api/admin.ts'
import { conversions, events, records } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { Alert, Conversion, Destination, Event, Health, List, Rejection, SeriesRow } from '../api/types.ts'
import type { Series } from '../components/plot.ts'
import { isAdmin, tenant } from '../session.ts'

const NEWEST_ROWS = 8

/** The part that changes when data arrives. null: the key has no access. */
type Latest = {
  events: List<Event> | null
  conversions: List<Conversion> | null
  health: Health | null
  alerts: Alert[] | null
  /** Destinations that are failing, or were disabled because they failed. */
  failing: Destination[] | null
}

export type Activity = Latest & {
  readAt: Date
  /** Per hour, since the start of the same day last week. */
  eventHours: SeriesRow[] | null
  conversionHours: SeriesRow[] | null
  lastRefused: Rejection | null
  /** Which of the first steps are done. `source` null: unknown. */
  started: { event: boolean; record: boolean; source: boolean | null }
}

export async function readActivity(signal: AbortSignal): Promise<Activity> {
  const readAt = new Date()
  const hours = { interval: 'hour', since: firstDay(readAt).toISOString() } as const
  const [news, eventHours, conversionHours, refused, hasRecord, hasSource] = await Promise.all([
    readLatest(signal),
    nullOn(403, events.series(hours, signal)),
    nullOn(403, conversions.series(hours, signal)),
    isAdmin.peek() ? inbound.rejections({ tenant: tenant.peek(), limit: 1 }, signal) : null,
    anyRecord(signal),
    isAdmin.peek() && tenant.peek() !== null ? inbound.receipts({ tenant: tenant.peek(), limit: 1 }, signal) : null,
  ])
  return {
    ...{ ...news, readAt },
    eventHours: eventHours?.results ?? null,
    conversionHours: conversionHours?.results ?? null,
    lastRefused: refused?.results[0] ?? null,
    started: {
      event: Boolean(news.events?.results.length || news.conversions?.results.length),
      record: hasRecord,
      source: hasSource && hasSource.results.length > 0,
    },
  }
}

/** The current activity. Returns `before` if nothing has arrived, which costs only a few small requests. */
export async function refreshActivity(before: Activity, signal: AbortSignal): Promise<Activity> {
  const isSameHour = before.readAt.getHours() === new Date().getHours()
  return isSameHour && fingerprint(await readLatest(signal)) === fingerprint(before) ? before : readActivity(signal)
}

async function readLatest(signal: AbortSignal): Promise<Latest> {
  const id = isAdmin.peek() ? tenant.peek() : null
  const [newestEvents, newestConversions, health, raised, sentTo] = await Promise.all([
    nullOn(403, events.list({ limit: NEWEST_ROWS }, signal)),
    nullOn(403, conversions.list({ limit: NEWEST_ROWS }, signal)),
    id === null ? null : tenants.health(id, signal),
    id === null ? null : alerts.list({ tenant: id }, signal),
    id === null ? null : destinations.list(id, signal),
  ])
  return {
    ...{ events: newestEvents, conversions: newestConversions, health },
    alerts: raised?.results ?? null,
    failing: sentTo?.results.filter(isFailing) ?? null,
  }
}

function isFailing({ health, disabled_reason }: Destination): boolean {
  return health.status === 'failing' || (health.status === 'disabled' && disabled_reason !== null)
}

function fingerprint({ events, conversions, health, alerts: raised, failing }: Latest): string {
  const lists = [events?.results, conversions?.results, raised, failing]
  // The disk fills a little all the time; that is not a change.
  const signs = health && { ...health, disk_free: null, disk_days_left: null }
  return JSON.stringify([lists.map(list => list?.map(({ id }) => id)), signs])
}

async function anyRecord(signal: AbortSignal): Promise<boolean> {
  const types = ['products', 'contacts', 'orders'] as const
  const lists = await Promise.all(types.map(type => nullOn(403, records.list(type, { limit: 1 }, signal))))
  return lists.some(list => list !== null && list.results.length > 0)
}

const HOUR_MS = 3_600_000
const DAYS = [
  { ago: 0, label: 'Today' },
  { ago: 1, label: 'Yesterday' },
  { ago: 7, label: 'A week ago' },
]

/** Today, yesterday and the same day of last week, by local hours. */
export type Days = {
  today: Amount
  yesterday: Amount
  weekAgo: Amount
  moments: Date[]
  /** Cumulative by hour. */
  series: Series[]
}

/** The start of the earliest day of the comparison. */
function firstDay(now: Date): Date {
  return dayBefore(now, 7)
}

export function compareDays(rows: SeriesRow[], now: Date, amountIn: (row: SeriesRow) => Amount | null): Days {
  const days = DAYS.map(({ ago, label }) => {
    const hours: Amount[][] = Array.from({ length: 24 }, () => [])
    for (const row of rows) {
      const at = new Date(row.at)
      const value = amountIn(row)
      if (value !== null && at >= dayBefore(now, ago) && at < dayBefore(now, ago - 1)) hours[at.getHours()]!.push(value)
    }
    const sums = hours.map(sumAmounts)
    return { label, ago, total: sumAmounts(sums), sums }
  })
  const start = dayBefore(now, 0).getTime()
  return {
    today: days[0]!.total,
    yesterday: days[1]!.total,
    weekAgo: days[2]!.total,
    moments: Array.from({ length: 24 }, (_, hour) => new Date(start + hour * HOUR_MS)),
    series: days.map(({ label, ago, sums }) => ({
      label,
      isAside: ago > 0,
      values: runningTotals(sums.map(toNumber)).map((total, hour) =>
        ago === 0 && hour > now.getHours() ? null : total,
      ),
    })),
  }
}

/** The currencies of sales, those in most hours first. */
export function listCurrencies(rows: SeriesRow[]): string[] {
  const hours = new Map<string, number>()
  for (const { amounts = {} } of rows)
    for (const currency of Object.keys(amounts)) hours.set(currency, (hours.get(currency) ?? 0) + 1)
  return [...hours].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([currency]) => currency)
}

function dayBefore(now: Date, days: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days)
}

function runningTotals(values: number[]): number[] {
  let total = 0
  return values.map(value => {
    total += value
    return total
  })
}
