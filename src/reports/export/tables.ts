import { formatMovement, netWithinDays } from '../../domain/billing/account.ts'
import { toCanonicalSubscription } from '../../domain/billing/canonical.ts'
import { orderSubscriptions } from '../../domain/billing/order.ts'
import type { SubscriptionVersion } from '../../domain/billing/types.ts'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { publicProfileId } from '../../domain/identity/identifiers.ts'
import type { EntityType } from '../../domain/records/records.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import type { Db } from '../../postgres/database.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import { loadVersions } from '../../store/billing/versions.ts'
import type { ConversionRow } from '../../store/conversions/conversions.ts'
import type { EventRow } from '../../store/events/events.ts'
import {
  conversionPages,
  eventPages,
  type MovementRow,
  movementPages,
  recordPages,
  subscriptionIdPages,
  type Window,
} from '../../store/export/pages.ts'
import { conversionText, eventText, plainNumber, recordText } from '../../store/export/row-texts.ts'
import type { StoredRecord } from '../../store/records/records.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import { cachedDays } from '../ledger.ts'

/** Customers are not among these tables: http/export/ writes the rows of http/customers/list.ts, with its filters. */

/** json: JSON text as it is stored; number: a JavaScript number, or exact decimal text. */
export type ColumnType = 'text' | 'timestamp' | 'number' | 'boolean' | 'json'
export type Column<Row> = { name: string; type: ColumnType; of(row: Row): Cell }
export type Cell = string | number | boolean | Date | null

const column = <Row>(name: string, type: ColumnType, of: (row: Row) => Cell): Column<Row> => ({ name, type, of })

/** The fields of the rows of GET /v1/events, in their order. */
export const EVENT_COLUMNS: Column<EventRow>[] = [
  column('id', 'text', row => row.id),
  column('event_type', 'text', row => row.eventType),
  column('occurred_at', 'timestamp', row => row.occurredAt),
  column('received_at', 'timestamp', row => row.receivedAt),
  column('source', 'text', row => row.source),
  column('source_type', 'text', row => row.source),
  column('source_config_id', 'text', row => row.sourceConfigId),
  column('inbound_event_id', 'text', row => row.inboundEventId),
  column('provider_event_id', 'text', row => row.providerEventId),
  column('visitor', 'text', row => row.visitor),
  column('session_id', 'text', row => row.sessionId),
  column('profile_id', 'text', row => publicProfileId(row.profile)),
  column('contact_id', 'text', row => row.contactId),
  column('verified', 'boolean', row => row.verified),
  column('payload', 'json', row => row.payload),
  column('headers', 'json', row => row.headers ?? '{}'),
  column('meta', 'json', row => row.meta ?? '{}'),
]

/** The fields of the rows of GET /v1/conversions. */
export const CONVERSION_COLUMNS: Column<ConversionRow>[] = [
  column('id', 'text', row => row.id),
  column('occurred_at', 'timestamp', row => row.occurredAt),
  column('conversion_type', 'text', row => row.conversionType),
  column('event_type', 'text', row => row.eventType),
  column('source', 'text', row => row.source),
  column('source_object_id', 'text', row => row.sourceObjectId),
  column('amount', 'number', row => row.amount && plainNumber(row.amount)),
  column('currency', 'text', row => row.currency),
  column('visitor', 'text', row => row.visitor),
  column('profile_id', 'text', row => publicProfileId(row.profile)),
  column('contact_id', 'text', row => row.contactId),
  column('contact_name', 'text', row => parseContact(row).name),
  column('contact_email', 'text', row => parseContact(row).email),
  column('company_name', 'text', row => parseContact(row).company),
  column('integration_id', 'text', row => row.integrationId),
  column('verified', 'boolean', row => row.verified),
  column('claims', 'number', row => row.claims),
]

const NO_CONTACT = { name: null, email: null, company: null }

/** Three adjacent columns use the same contact, so it is parsed once. */
function parseContact(row: ConversionRow) {
  if (lastContact.row !== row)
    lastContact = { row, facts: row.contactData === null ? NO_CONTACT : contactFacts(JSON.parse(row.contactData)) }
  return lastContact.facts
}

let lastContact: { row: ConversionRow | null; facts: ReturnType<typeof contactFacts> } = {
  row: null,
  facts: NO_CONTACT,
}

/** The fields of GET /v1/products/:id and of the other record types. */
export const RECORD_COLUMNS: Column<StoredRecord>[] = [
  column('entityType', 'text', row => row.entityType),
  column('id', 'text', row => row.id),
  column('externalId', 'text', row => row.externalId),
  column('sourceUpdatedAt', 'timestamp', row => row.sourceUpdatedAt),
  column('data', 'json', row => row.data),
  column('createdAt', 'timestamp', row => row.createdAt),
  column('updatedAt', 'timestamp', row => row.updatedAt),
]

/** Columns for rows that already have the fields of the API. */
export function shownColumns(types: Record<string, ColumnType>): Column<Record<string, unknown>>[] {
  return Object.entries(types).map(([name, type]) =>
    column(name, type, row => {
      const value = row[name] ?? null
      return type === 'json' && value !== null ? JSON.stringify(value) : (value as Cell)
    }),
  )
}

/** A table that can be exported: how its rows are read and formatted. */
export type Table<Row> = {
  scope: Scope
  columns: Column<Row>[]
  /** Formats a row as JSON. */
  text(row: Row): string
  pages(db: Db, tenantId: number, window: Window): AsyncGenerator<Row[]>
}

export const TABLES = [
  ...['products', 'contacts', 'orders', 'events', 'conversions', 'subscriptions', 'movements'],
] as const satisfies TableName[]

export type TableName = 'products' | 'contacts' | 'orders' | 'events' | 'conversions' | 'subscriptions' | 'movements'

/** A table with rows of any type. */
type AnyTable = Table<never>

export function findTable(name: TableName): AnyTable {
  return REGISTRY[name] as unknown as AnyTable
}

const records = (entityType: EntityType): Table<Parameters<typeof recordText>[0]> => ({
  scope: `${entityType}s:read`,
  columns: RECORD_COLUMNS,
  text: row => recordText(row),
  pages: (db, tenantId, window) => recordPages(db, tenantId, entityType, window),
})

const REGISTRY = {
  products: records('product'),
  contacts: records('contact'),
  orders: records('order'),
  events: { scope: 'events:read', columns: EVENT_COLUMNS, text: eventText, pages: eventPages },
  conversions: { scope: 'conversions:read', columns: CONVERSION_COLUMNS, text: conversionText, pages: conversionPages },
  subscriptions: {
    scope: 'subscriptions:read',
    columns: shownColumns({
      ...{ id: 'text', customer: 'text', customer_name: 'text', customer_email: 'text', status: 'text' },
      ...{ currency: 'text', started_at: 'text', trial_end: 'text', current_period_start: 'text' },
      ...{ current_period_end: 'text', cancel_at_period_end: 'boolean', cancel_at: 'text', canceled_at: 'text' },
      ...{ ended_at: 'text', cancellation_reason: 'text', collection_method: 'text', updated_at: 'text' },
      ...{ acquisition: 'json', metadata: 'json', items: 'json', discounts: 'json', livemode: 'boolean' },
    }),
    text: row => JSON.stringify(row),
    pages: subscriptionPages,
  } satisfies Table<Record<string, unknown>>,
  movements: {
    scope: 'subscriptions:read',
    columns: shownColumns({
      ...{ occurred_at: 'text', currency: 'text', customer: 'text', customer_name: 'text', movement_type: 'text' },
      ...{ mrr_before: 'number', mrr_after: 'number', mrr_delta: 'number', subscription_ids: 'json' },
      ...{ cause: 'text', event_id: 'text' },
    }),
    text: row => JSON.stringify(row),
    pages: shownMovements,
  } satisfies Table<Record<string, unknown>>,
} as const

/** The latest version of each subscription. The window applies to `updated_at`. */
async function* subscriptionPages(
  db: Db,
  tenantId: number,
  { since, until }: Window,
): AsyncGenerator<Record<string, unknown>[]> {
  for await (const ids of subscriptionIdPages(db, tenantId)) {
    const keys = ids.map(({ id }) => ({ tenantId, id }))
    const versions = Map.groupBy(await loadVersions<SubscriptionVersion>(db, 'subscription', keys), ({ id }) => id)
    const newest = ids.flatMap(({ id }) => {
      const own = versions.get(id)?.map(({ version }) => version) ?? []
      return orderSubscriptions(own).at(-1) ?? []
    })
    yield newest
      .filter(({ sourceAt }) => !(since && sourceAt < since.getTime()) && !(until && sourceAt > until.getTime()))
      .map(toCanonicalSubscription)
  }
}

/** With the policy `net_within_day`, netted as in reports: among the movements of the window. */
async function* shownMovements(db: Db, tenantId: number, window: Window): AsyncGenerator<Record<string, unknown>[]> {
  const { netWithinDay, timeZone } = await appliedPolicy(db, tenantId)
  const pages = movementPages(db, tenantId, window)
  for await (const rows of netWithinDay ? nettedPages(pages, cachedDays(timeZone)) : pages) {
    const names = await accountNames(db, tenantId, [...new Set(rows.map(({ account }) => account))])
    yield rows.map(row => toMovement(row, names.get(row.account) ?? null))
  }
}

/** Keeps the last day of a page until the next one: it may continue there. */
async function* nettedPages(
  pages: AsyncIterable<MovementRow[]>,
  toDay: (at: Date) => string,
): AsyncGenerator<MovementRow[]> {
  const ledgerOf = ({ account, currency }: MovementRow) => `${currency} ${account}`
  const dayOf = (row: MovementRow) => `${toDay(row.occurredAt)} ${ledgerOf(row)}`
  const net = (rows: MovementRow[]) =>
    [...Map.groupBy(rows, ledgerOf).values()].flatMap(own => netWithinDays(own, toDay))
  let unfinished: MovementRow[] = []
  for await (const page of pages) {
    const rows = [...unfinished, ...page]
    const lastDay = dayOf(rows.at(-1)!)
    const end = rows.findLastIndex(row => dayOf(row) !== lastDay) + 1
    yield net(rows.slice(0, end))
    unfinished = rows.slice(end)
  }
  yield net(unfinished)
}

function toMovement({ occurredAt, ...moved }: MovementRow, customerName: string | null) {
  return formatMovement({ ...moved, customerName, at: occurredAt })
}
