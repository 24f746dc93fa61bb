import type { Query } from '../router.ts'
import type { TenantFacts } from '../view.ts'
import { requestData, streamData } from './client.ts'
import { cookieFor, nullOn, request } from './request.ts'
import type {
  AccountReport,
  AcquisitionReport,
  AttentionReport,
  BooksReport,
  BreakdownReport,
  Channel,
  ChurnReasonsReport,
  Conversion,
  Customer,
  Event,
  EventOutcome,
  ExclusionsReport,
  ForecastReport,
  Found,
  Funnel,
  HistoryReport,
  List,
  MovementsReport,
  OverviewReport,
  RecordType,
  RetentionReport,
  RevenueInvoices,
  RevenueReport,
  Series,
  StoredRecord,
  Visitors,
} from './types.ts'

/** The data API of the selected tenant. */

type Signal = AbortSignal | undefined

export type TimeFilter = {
  event_type?: string | null
  since?: string | null
  until?: string | null
  limit?: number
  cursor?: string | null
}

type SeriesQuery = {
  interval: 'minute' | 'hour' | 'day'
  since?: string
  until?: string
  event_type?: string
  group_by?: 'event_type' | 'source'
  cut?: string
  /** Of conversions: `reporting` converts all amounts. */
  currency?: string
}

export const readTenant = (signal?: Signal) => requestData<TenantFacts>('/tenant', { signal })
/** The same of a tenant that is not selected yet. */
export const readTenantWithCookie = (id: string) => request<TenantFacts>(cookieFor(id), '/v1/tenant')

export const events = {
  series: (query: SeriesQuery, signal?: Signal) => requestData<Series>('/events/series', { query, signal }),
  /** Distinct visitors, per bucket and in total. */
  visitors: (query: SeriesQuery, signal?: Signal) => requestData<Visitors>('/events/visitors', { query, signal }),
  list: (query: TimeFilter, signal?: Signal) => requestData<List<Event>>('/events', { query, signal }),
  /** Events as they arrive. */
  stream: (query: { event_type?: string | null }, signal: AbortSignal) =>
    streamData<Event>('/events/live', { query, signal }),
  /** Events and sales as they arrive. */
  streamAll: (signal: AbortSignal) =>
    streamData<Event | Conversion>('/events/live', { query: { conversions: 'true' }, signal }),
  find: (id: string, signal?: Signal) => requestData<EventOutcome>(`/events/${id}`, { signal }),
  /** Finds an event by the id that its sender gave it. */
  lookup: (query: { event_id: string; source_config_id: string }, signal?: Signal) =>
    requestData<EventOutcome>('/events/lookup', { query, signal }),
}

/** Finds records and events by id, people by the beginning of a name or identifier. */
export const search = (text: string, signal?: Signal) =>
  requestData<List<Found>>('/search', { query: { q: text }, signal })

export const conversions = {
  series: (query: SeriesQuery, signal?: Signal) => requestData<Series>('/conversions/series', { query, signal }),
  list: (query: TimeFilter, signal?: Signal) => requestData<List<Conversion>>('/conversions', { query, signal }),
  find: (id: string, signal?: Signal) => requestData<Conversion>(`/conversions/${encodeURIComponent(id)}`, { signal }),
}

/** Names by contact id. Without permission to read contacts there are none, and the ids are shown. */
export async function readNames(ids: (string | null)[], signal?: Signal): Promise<Map<string, string>> {
  const wanted = [...new Set(ids.filter(id => id !== null))].slice(0, 200)
  if (wanted.length === 0) return new Map()
  type Names = { results: { id: string; name: string }[] }
  const found = await nullOn(403, requestData<Names>('/contact-names', { query: { ids: wanted.join('\n') }, signal }))
  return new Map(found?.results.map(({ id, name }) => [id, name]))
}

/** People with a purchase, a subscription or a contact. */
export const customers = {
  list: (query: Query, signal?: Signal) => requestData<List<Customer>>('/customers', { query, signal }),
  channels: (query: Query, signal?: Signal) => requestData<{ results: Channel[] }>('/channels', { query, signal }),
  funnel: (query: Query, signal?: Signal) => requestData<Funnel>('/funnel', { query, signal }),
}

export const records = {
  list: (type: RecordType, query: Query, signal?: Signal) =>
    requestData<List<StoredRecord>>(`/${type}`, { query, signal }),
  find: (type: RecordType, id: string, signal?: Signal) =>
    requestData<StoredRecord>(`/${type}/${encodeURIComponent(id)}`, { signal }),
}

const report =
  <Report>(name: string) =>
  (query: Query & { currency: string }, signal?: Signal) =>
    requestData<Report>(`/subscriptions/${name}`, { query, signal })

export const reports = {
  overview: report<OverviewReport>('overview'),
  history: report<HistoryReport>('history'),
  breakdown: report<BreakdownReport>('breakdown'),
  movements: report<MovementsReport>('movements'),
  retention: report<RetentionReport>('retention'),
  attention: report<AttentionReport>('attention'),
  acquisition: report<AcquisitionReport>('acquisition'),
  account: report<AccountReport>('account'),
  exclusions: report<ExclusionsReport>('exclusions'),
  forecast: report<ForecastReport>('forecast'),
  churnReasons: report<ChurnReasonsReport>('churn-reasons'),
  revenue: report<RevenueReport>('revenue'),
  revenueInvoices: report<RevenueInvoices>('revenue/invoices'),
  books: (query: Query, signal?: Signal) => requestData<BooksReport>('/subscriptions/books', { query, signal }),
}
