import type { Query } from '../router.ts'
import { tenant as selectedTenant } from '../session.ts'
import { requestAdmin } from './client.ts'
import { Problem } from './request.ts'
import type {
  Alert,
  AlertRules,
  AlertValue,
  ArchivedEvent,
  AuditRow,
  Backlog,
  CreatedDestination,
  CreatedKey,
  CreatedSource,
  DeadLetter,
  DeadLetterWithBody,
  Delivery,
  Destination,
  DestinationActivity,
  DestinationSettings,
  DestinationTest,
  Digest,
  DigestSchedule,
  ErasurePreview,
  ErasureReceipt,
  Health,
  ImportedRates,
  InvitedUser,
  Issue,
  JsonObject,
  Key,
  List,
  NewDestinationSettings,
  NewKey,
  NewSource,
  NewUser,
  Person,
  Policy,
  Receipt,
  ReceivedRequest,
  Rejection,
  ReplayOrder,
  ReplayResult,
  RetriedMessages,
  RevokedKey,
  RotatedKey,
  RotatedSource,
  RuleName,
  SecretKind,
  SentMessage,
  Session,
  Source,
  SourceActivity,
  SourceTest,
  SuppressionList,
  TenantSettings,
  User,
} from './types.ts'

/** The admin API. */

type Signal = AbortSignal | undefined

const sourcePath = (id: string) => `/sources/${encodeURIComponent(id)}`
const post = <Body>(path: string, body?: unknown) => requestAdmin<Body>(path, { method: 'POST', body })

/** The admin API finds objects of all tenants by id. A page shows only those of the selected tenant. */
async function ofSelectedTenant<Found extends { tenant: string }>(answer: Promise<Found>): Promise<Found> {
  const found = await answer
  if (found.tenant === selectedTenant.peek()) return found
  throw new Problem({ status: 404, title: 'Not found', detail: 'The selected tenant has nothing with this id.' })
}

export const tenants = {
  list: (signal?: Signal) => requestAdmin<List<TenantSettings>>('/tenants', { signal }),
  create: (name: string) => post<TenantSettings>('/tenants', { name }),
  change: (id: string, settings: Omit<TenantSettings, 'id' | 'name' | 'created_at'>) =>
    requestAdmin<TenantSettings>(`/tenants/${encodeURIComponent(id)}`, { method: 'PATCH', body: settings }),
  policy: (id: string, signal?: Signal) =>
    requestAdmin<Policy>(`/tenants/${encodeURIComponent(id)}/policy`, { signal }),
  setPolicy: (id: string, settings: JsonObject) =>
    requestAdmin<Policy>(`/tenants/${encodeURIComponent(id)}/policy`, { method: 'PUT', body: settings }),
  importRates: (id: string, csv: string) => post<ImportedRates>(`/tenants/${encodeURIComponent(id)}/rates`, { csv }),
  health: (id: string, signal?: Signal) =>
    requestAdmin<Health>(`/tenants/${encodeURIComponent(id)}/health`, { signal }),
  issues: (id: string, signal?: Signal) =>
    requestAdmin<List<Issue>>(`/tenants/${encodeURIComponent(id)}/issues`, { signal }),
}

const rulesPath = (tenant: string) => `/tenants/${encodeURIComponent(tenant)}/alert-rules`

export const alerts = {
  /** The raised alerts, or all of the last 90 days. */
  list: (query: { tenant: string; state?: 'raised' | 'all' }, signal?: Signal) =>
    requestAdmin<List<Alert>>('/alerts', { query, signal }),
  rules: (tenant: string, signal?: Signal) => requestAdmin<AlertRules>(rulesPath(tenant), { signal }),
  /** Rules that are not given stay as they are. */
  setRules: (tenant: string, rules: Partial<Record<RuleName, number | null | 'default'>>) =>
    requestAdmin<AlertRules>(rulesPath(tenant), { method: 'PATCH', body: rules }),
  values: (tenant: string, signal?: Signal) =>
    requestAdmin<List<AlertValue>>(`/tenants/${encodeURIComponent(tenant)}/alert-values`, { signal }),
  /** Sends a test message to every destination that receives alerts of the rule. */
  test: (tenant: string, rule: RuleName) =>
    post<List<DestinationTest>>(`/tenants/${encodeURIComponent(tenant)}/alert-test`, { rule }),
}

const digestPath = (tenant: string) => `/tenants/${encodeURIComponent(tenant)}/digest`

export const digests = {
  find: (tenant: string, signal?: Signal) => requestAdmin<Digest>(digestPath(tenant), { signal }),
  set: (tenant: string, schedule: Partial<DigestSchedule>) =>
    requestAdmin<Digest>(digestPath(tenant), { method: 'PATCH', body: schedule }),
  preview: (tenant: string) =>
    requestAdmin<{ subject: string; text: string; html: string }>(`${digestPath(tenant)}/preview`),
}

export const keys = {
  /** The keys of a tenant; with null, the admin keys. */
  list: (tenant: string | null, signal?: Signal) => requestAdmin<List<Key>>('/keys', { query: { tenant }, signal }),
  create: (key: NewKey) => post<CreatedKey>('/keys', key),
  /** The previous key remains valid for a day. */
  rotate: (id: string) => post<RotatedKey>(`/keys/${encodeURIComponent(id)}/rotate`, {}),
  revoke: (id: string, withCreated = false) =>
    post<RevokedKey>(`/keys/${encodeURIComponent(id)}/revoke`, { with_made: withCreated }),
}

export const users = {
  list: (signal?: Signal) => requestAdmin<List<User>>('/users', { signal }),
  invite: (user: NewUser) => post<InvitedUser>('/users', user),
  setEnabled: (id: string, isEnabled: boolean) =>
    post<User>(`/users/${encodeURIComponent(id)}/${isEnabled ? 'enable' : 'disable'}`),
  /** The password is no longer valid; the invitation sets a new one. */
  reset: (id: string) => post<InvitedUser>(`/users/${encodeURIComponent(id)}/reset`),
}

export const sessions = {
  list: (signal?: Signal) => requestAdmin<List<Session>>('/sessions', { signal }),
  end: (id: string) => post<Session>(`/sessions/${encodeURIComponent(id)}/end`),
}

export const sources = {
  list: (tenant: string | null, signal?: Signal) =>
    requestAdmin<List<Source>>('/sources', { query: { tenant }, signal }),
  find: (id: string, signal?: Signal) => ofSelectedTenant(requestAdmin<Source>(sourcePath(id), { signal })),
  activity: (id: string, signal?: Signal) => requestAdmin<SourceActivity>(`${sourcePath(id)}/activity`, { signal }),
  create: (source: NewSource) => post<CreatedSource>('/sources', source),
  change: (id: string, settings: JsonObject) =>
    requestAdmin<Source>(sourcePath(id), { method: 'PATCH', body: settings }),
  remove: (id: string) => requestAdmin<null>(sourcePath(id), { method: 'DELETE' }),
  setEnabled: (id: string, isEnabled: boolean) => post<Source>(`${sourcePath(id)}/${isEnabled ? 'enable' : 'disable'}`),
  /** The previous credential remains valid for `overlapHours`. */
  rotate: (id: string, what: SecretKind, overlapHours: number) =>
    post<RotatedSource>(`${sourcePath(id)}/rotate`, { what, overlap_hours: overlapHours }),
  /** Sets the secret that the sender uses. */
  setSecret: (id: string, value: string) =>
    post<RotatedSource>(`${sourcePath(id)}/rotate`, { what: 'signing_secret', value, overlap_hours: 0 }),
  test: (id: string) => post<SourceTest>(`${sourcePath(id)}/test`, {}),
}

const destinationPath = (id: string) => `/destinations/${encodeURIComponent(id)}`

export const destinations = {
  list: (tenant: string, signal?: Signal) =>
    requestAdmin<List<Destination>>('/destinations', { query: { tenant }, signal }),
  find: (id: string, signal?: Signal) => ofSelectedTenant(requestAdmin<Destination>(destinationPath(id), { signal })),
  activity: (id: string, signal?: Signal) =>
    requestAdmin<DestinationActivity>(`${destinationPath(id)}/activity`, { signal }),
  create: (tenant: string, settings: NewDestinationSettings) =>
    post<CreatedDestination>('/destinations', { tenant, ...settings }),
  change: (id: string, settings: DestinationSettings) =>
    requestAdmin<Destination>(destinationPath(id), { method: 'PATCH', body: settings }),
  remove: (id: string) => requestAdmin<null>(destinationPath(id), { method: 'DELETE' }),
  setEnabled: (id: string, isEnabled: boolean) =>
    post<Destination>(`${destinationPath(id)}/${isEnabled ? 'enable' : 'disable'}`),
  /** Messages are also signed with the previous secret for `overlapHours`. */
  rotate: (id: string, overlapHours: number) =>
    post<CreatedDestination>(`${destinationPath(id)}/rotate`, { overlap_hours: overlapHours }),
  test: (id: string) => post<DestinationTest>(`${destinationPath(id)}/test`),
  replay: (id: string, since: string) => post<{ queued: number }>(`${destinationPath(id)}/replay`, { since }),
  /** Attempts all waiting messages now. */
  retry: (id: string) => post<RetriedMessages>(`${destinationPath(id)}/retry`),
  /** The body as sent; null: it has expired. */
  message: (id: string, message: string) =>
    requestAdmin<SentMessage>(`${destinationPath(id)}/message`, { query: { message } }),
  deliveries: (id: string, query: Query, signal?: Signal) =>
    requestAdmin<List<Delivery>>(`${destinationPath(id)}/deliveries`, { query, signal }),
}

export const inbound = {
  receipts: (query: Query, signal?: Signal) => requestAdmin<List<Receipt>>('/receipts', { query, signal }),
  rejections: (query: Query, signal?: Signal) => requestAdmin<List<Rejection>>('/rejections', { query, signal }),
  /** Events deferred by the rate limit of their source. */
  backlogs: (signal?: Signal) => requestAdmin<List<Backlog>>('/overflow', { signal }),
  /** The request as received, while the log keeps it. */
  request: (tenant: string, id: string, signal?: Signal, isWhole = false) =>
    requestAdmin<ReceivedRequest>(`/events/${encodeURIComponent(id)}/request`, {
      query: { tenant, ...(isWhole && { whole: 'true' }) },
      signal,
    }),
  archived: (id: string) => requestAdmin<ArchivedEvent>(`/archive/${encodeURIComponent(id)}`),
}

export const deadLetters = {
  list: (query: Query, signal?: Signal) => requestAdmin<List<DeadLetter>>('/dead-letters', { query, signal }),
  find: (id: string, signal?: Signal) =>
    ofSelectedTenant(requestAdmin<DeadLetterWithBody>(`/dead-letters/${encodeURIComponent(id)}`, { signal })),
  replay: (order: ReplayOrder) => post<ReplayResult>('/dead-letters/replay', order),
  /** Closes dead letters without a replay. */
  resolve: (order: ReplayOrder) => post<{ resolved: number; remaining: number }>('/dead-letters/resolve', order),
}

export const audit = {
  list: (query: Query, signal?: Signal) => requestAdmin<List<AuditRow>>('/audit', { query, signal }),
}

const personPath = (id: string) => `/people/${encodeURIComponent(id)}`

export const people = {
  show: (tenant: string, id: string, signal?: Signal) =>
    requestAdmin<Person>(personPath(id), { query: { tenant }, signal }),
  /** Sales, records, billing and events of the last 90 days, in the form of the export. */
  timeline: (tenant: string, id: string, signal?: Signal) =>
    requestAdmin<JsonObject[]>(`${personPath(id)}/timeline`, { query: { tenant }, signal }),
  /** All data about a person; `type` says what a row is. */
  exportData: (tenant: string, id: string) =>
    requestAdmin<JsonObject[]>(`${personPath(id)}/export`, { query: { tenant, format: 'json' } }),
  /** Saves the same data as a file. */
  async save(tenant: string, id: string): Promise<JsonObject[]> {
    const rows = await people.exportData(tenant, id)
    const file = new Blob([JSON.stringify(rows, null, 2)], { type: 'application/json' })
    const link = document.createElement('a')
    link.href = URL.createObjectURL(file)
    link.download = `${id}.json`
    link.click()
    URL.revokeObjectURL(link.href)
    return rows
  },
  verify: (tenant: string, id: string, name: string) => post<Person>(`${personPath(id)}/verify`, { tenant, name }),
  split: (tenant: string, id: string, name: string) => post<unknown>(`${personPath(id)}/split`, { tenant, name }),
  previewErasure: (subject: Subject) => post<ErasurePreview>('/erasures', { ...subject, dry_run: true }),
  erase: (subject: Subject) => post<ErasureReceipt>('/erasures', { ...subject, confirm: true }),
}

/** `confirm_profile`: also what only unverified input links. */
type Subject = { tenant: string; confirm_profile: boolean } & ({ email: string } | { profile: string })

export const privacy = {
  /** The last 100 receipts, newest first. */
  erasures: (tenant: string, signal?: Signal) =>
    requestAdmin<List<ErasureReceipt>>('/erasures', { query: { tenant, limit: 100 }, signal }),
  suppressions: (tenant: string, signal?: Signal) =>
    requestAdmin<SuppressionList>('/suppressions', { query: { tenant }, signal }),
  previewErasure: (subject: Subject) =>
    post<ErasurePreview>('/erasures', { ...subject, suppress: true, dry_run: true }),
  /** Erases the person's data and discards later data, also for an unknown e-mail address. */
  suppress: (subject: Subject) => post<ErasureReceipt>('/erasures', { ...subject, suppress: true, confirm: true }),
  /** `id`: of the suppression, or an e-mail address. */
  resumeTracking: (tenant: string, id: string) =>
    requestAdmin<{ names: number }>(`/suppressions/${encodeURIComponent(id)}`, {
      method: 'DELETE',
      query: { tenant },
    }),
}
