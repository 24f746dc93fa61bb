import { alerts, destinations, inbound, tenants } from '../api/admin.ts'
import { conversions, events, readNames, records } from '../api/data.ts'
import { nullOn, type Problem } from '../api/request.ts'
import type { Alert, Conversion, Destination, Event, Health, List, Rejection, SeriesRow } from '../api/types.ts'
import { isRateMissing } from '../components/missing-rate.ts'
import { isAdmin, tenant } from '../session.ts'
import { tenantFacts } from '../view.ts'
import {
  type Course,
  type Frame,
  type MrrHistory,
  readConversionCourses,
  readFrame,
  readMrr,
  readVisitorCourse,
} from './figures.ts'
import { countPaymentIssues } from './subscriptions/figures.ts'

const NEWEST_ROWS = 8

/** The part that changes when data arrives. null: the key has no access. */
type Latest = {
  events: List<Event> | null
  conversions: List<Conversion> | null
  /** By contact id. */
  names: Map<string, string>
  health: Health | null
  alerts: Alert[] | null
  /** Destinations that are failing, or were disabled because they failed. */
  failing: Destination[] | null
}

export type Activity = Latest & {
  readAt: Date
  frame: Frame
  /** Of the last 24 hours. */
  eventHours: SeriesRow[] | null
  conversionCount: Course | null
  revenue: Course | null
  visitors: Course | null
  mrr: MrrHistory | null
  /** Why amounts could not be converted. */
  missingRate: Problem | null
  /** Failed and overdue payments now, by currency. `isMore`: there may be more. */
  paymentIssues: { currency: string; count: number; isMore: boolean }[]
  lastRefused: Rejection | null
  /** Which of the first steps are done. `source` null: unknown. */
  started: { event: boolean; record: boolean; source: boolean | null }
}

export async function readActivity(signal: AbortSignal): Promise<Activity> {
  const readAt = new Date()
  const frame = readFrame()
  const [news, eventHours, converted, visitors, paymentIssues, refused, hasRecord, hasSource] = await Promise.all([
    readLatest(signal),
    nullOn(403, events.series({ interval: 'hour' }, signal)),
    readAmounts(frame, signal),
    readVisitorCourse(frame, signal),
    readPaymentIssues(signal),
    isAdmin.peek() ? inbound.rejections({ tenant: tenant.peek(), limit: 1 }, signal) : null,
    anyRecord(signal),
    isAdmin.peek() && tenant.peek() !== null ? inbound.receipts({ tenant: tenant.peek(), limit: 1 }, signal) : null,
  ])
  return {
    ...{ ...news, ...converted, readAt, frame, visitors, paymentIssues },
    eventHours: eventHours?.results ?? null,
    lastRefused: refused?.results[0] ?? null,
    started: {
      event: Boolean(news.events?.results.length || news.conversions?.results.length),
      record: hasRecord,
      source: hasSource && hasSource.results.length > 0,
    },
  }
}

type Amounts = Pick<Activity, 'mrr' | 'revenue' | 'conversionCount' | 'missingRate'>

/** Without an exchange rate the rest of the page is still shown. */
async function readAmounts(frame: Frame, signal: AbortSignal): Promise<Amounts> {
  try {
    const [sales, mrr] = await Promise.all([readConversionCourses(frame, signal), readMrr(frame, signal)])
    return { mrr, revenue: sales.revenue, conversionCount: sales.count, missingRate: null }
  } catch (error) {
    if (!isRateMissing(error)) throw error
    return { mrr: null, revenue: null, conversionCount: null, missingRate: error }
  }
}

const MOST_CURRENCIES = 5

/** In every currency and regardless of the period: what needs attention does not depend on the view. */
async function readPaymentIssues(signal: AbortSignal): Promise<Activity['paymentIssues']> {
  const codes = tenantFacts.peek()?.currencies.slice(0, MOST_CURRENCIES) ?? []
  const found = await Promise.all(
    codes.map(async currency => {
      const issues = await nullOn(403, countPaymentIssues({ currency }, signal))
      return { currency, count: issues?.open ?? 0, isMore: issues?.isMore ?? false }
    }),
  )
  return found.filter(({ count }) => count > 0)
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
    names: await readNames(newestEvents?.results.map(({ contact_id }) => contact_id) ?? [], signal),
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
