import { alerts, destinations, inbound, tenants } from '../../api/admin.ts'
import { conversions, events, records } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type {
  Alert,
  Conversion,
  Destination,
  Event,
  Health,
  List,
  Rejection,
  SeriesRow,
} from '../../api/types.ts'
import { isAdmin, tenant } from '../../session.ts'
import { firstDay } from './days.ts'

const LATEST = 8

/** What changes when something comes in. null: the key may not see it. */
type News = {
  events: List<Event> | null
  conversions: List<Conversion> | null
  health: Health | null
  alerts: Alert[] | null
  /** Those that take nothing at the moment, or were disabled because they did not. */
  failing: Destination[] | null
}

export type Activity = News & {
  readAt: Date
  /** By the hour, since the beginning of this day last week. */
  eventHours: SeriesRow[] | null
  conversionHours: SeriesRow[] | null
  lastRefused: Rejection | null
  /** What has come in of the things that one begins with; of sources: something did. */
  begun: { event: boolean; record: boolean; source: boolean | null }
}

export async function readActivity(signal: AbortSignal): Promise<Activity> {
  const readAt = new Date()
  const hours = { interval: 'hour', since: firstDay(readAt).toISOString() } as const
  const [news, eventHours, conversionHours, refused, hasRecord, hasSource] = await Promise.all([
    readNews(signal),
    nullOn(403, events.series(hours, signal)),
    nullOn(403, conversions.series(hours, signal)),
    isAdmin.peek() ? inbound.rejections({ tenant: tenant.peek(), limit: 1 }, signal) : null,
    anyRecord(signal),
    isAdmin.peek() && tenant.peek() !== null
      ? inbound.receipts({ tenant: tenant.peek(), limit: 1 }, signal)
      : null,
  ])
  return {
    ...{ ...news, readAt },
    eventHours: eventHours?.results ?? null,
    conversionHours: conversionHours?.results ?? null,
    lastRefused: refused?.results[0] ?? null,
    begun: {
      event: Boolean(news.events?.results.length || news.conversions?.results.length),
      record: hasRecord,
      source: hasSource && hasSource.results.length > 0,
    },
  }
}

/** The activity as it is now; the one before where nothing has come in, which costs a few small requests. */
export async function followed(before: Activity, signal: AbortSignal): Promise<Activity> {
  const isSameHour = before.readAt.getHours() === new Date().getHours()
  return isSameHour && markOf(await readNews(signal)) === markOf(before) ? before : readActivity(signal)
}

async function readNews(signal: AbortSignal): Promise<News> {
  const id = isAdmin.peek() ? tenant.peek() : null
  const [newestEvents, newestConversions, health, raised, sentTo] = await Promise.all([
    nullOn(403, events.list({ limit: LATEST }, signal)),
    nullOn(403, conversions.list({ limit: LATEST }, signal)),
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

function markOf({ events, conversions, health, alerts: raised, failing }: News): string {
  const lists = [events?.results, conversions?.results, raised, failing]
  // The disk is a little fuller every time: no news.
  const signs = health && { ...health, disk_free: null, disk_days_left: null }
  return JSON.stringify([lists.map(list => list?.map(({ id }) => id)), signs])
}

async function anyRecord(signal: AbortSignal): Promise<boolean> {
  const types = ['products', 'contacts', 'orders'] as const
  const lists = await Promise.all(types.map(type => nullOn(403, records.list(type, { limit: 1 }, signal))))
  return lists.some(list => list !== null && list.results.length > 0)
}
