import type { Query } from '../router.ts'
import { requestData, streamData } from './client.ts'
import type {
  AccountReport,
  AcquisitionReport,
  AttentionReport,
  BreakdownReport,
  Conversion,
  Event,
  EventOutcome,
  Found,
  HistoryReport,
  List,
  MovementsReport,
  OverviewReport,
  RecordType,
  RetentionReport,
  Series,
  StoredRecord,
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

type SeriesQuery = { interval: 'minute' | 'hour' | 'day'; since?: string; until?: string }

export const events = {
  series: (query: SeriesQuery, signal?: Signal) => requestData<Series>('/events/series', { query, signal }),
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
}
