import { toCanonicalSubscription } from '../../domain/billing/canonical.ts'
import { formatMovement, type Movement } from '../../domain/billing/movements.ts'
import { orderSubscriptions } from '../../domain/billing/order.ts'
import type { SubscriptionVersion } from '../../domain/billing/types.ts'
import type { EntityType } from '../../domain/records/records.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import type { Db } from '../../postgres/database.ts'
import { loadVersions } from '../../store/billing/versions.ts'
import {
  conversionPages,
  eventPages,
  type MovementRow,
  movementPages,
  recordPages,
  subscriptionIdPages,
  type Window,
} from '../../store/export/pages.ts'
import { conversionText, eventText, recordText } from '../../store/export/row-texts.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import { CONVERSION_COLUMNS, type Column, EVENT_COLUMNS, RECORD_COLUMNS, shownColumns } from './columns.ts'

/** What can be exported as a whole: how its rows are read, and how one is shown. */
export type Table<Row> = {
  scope: Scope
  columns: Column<Row>[]
  /** As JSON. */
  text(row: Row): string
  pages(db: Db, tenantId: number, window: Window): AsyncGenerator<Row[]>
}

export const TABLES = [
  ...['products', 'contacts', 'orders', 'events', 'conversions', 'subscriptions', 'movements'],
] as const satisfies TableName[]

export type TableName =
  | 'products'
  | 'contacts'
  | 'orders'
  | 'events'
  | 'conversions'
  | 'subscriptions'
  | 'movements'

/** Whoever uses it need not know what a row is. */
export type AnyTable = Table<never>

export function tableNamed(name: TableName): AnyTable {
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
  conversions: {
    scope: 'conversions:read',
    columns: CONVERSION_COLUMNS,
    text: conversionText,
    pages: conversionPages,
  },
  subscriptions: {
    scope: 'subscriptions:read',
    columns: shownColumns({
      ...{ id: 'text', customer: 'text', customer_name: 'text', customer_email: 'text', status: 'text' },
      ...{ currency: 'text', started_at: 'text', trial_end: 'text', current_period_start: 'text' },
      ...{
        current_period_end: 'text',
        cancel_at_period_end: 'boolean',
        cancel_at: 'text',
        canceled_at: 'text',
      },
      ...{ ended_at: 'text', cancellation_reason: 'text', collection_method: 'text', updated_at: 'text' },
      ...{ acquisition: 'json', metadata: 'json', items: 'json', discounts: 'json', livemode: 'boolean' },
    }),
    text: row => JSON.stringify(row),
    pages: subscriptionPages,
  } satisfies Table<Record<string, unknown>>,
  movements: {
    scope: 'subscriptions:read',
    columns: shownColumns({
      ...{
        occurred_at: 'text',
        currency: 'text',
        customer: 'text',
        customer_name: 'text',
        movement_type: 'text',
      },
      ...{ mrr_before: 'number', mrr_after: 'number', mrr_delta: 'number', subscription_ids: 'json' },
      ...{ cause: 'text', event_id: 'text' },
    }),
    text: row => JSON.stringify(row),
    pages: shownMovements,
  } satisfies Table<Record<string, unknown>>,
} as const

/** Each as its source last told it; the window is of `updated_at`. */
async function* subscriptionPages(
  db: Db,
  tenantId: number,
  { since, until }: Window,
): AsyncGenerator<Record<string, unknown>[]> {
  for await (const ids of subscriptionIdPages(db, tenantId)) {
    const keys = ids.map(({ id }) => ({ tenantId, id }))
    const versions = Map.groupBy(
      await loadVersions<SubscriptionVersion>(db, 'subscription', keys),
      ({ id }) => id,
    )
    const newest = ids.flatMap(({ id }) => {
      const told = versions.get(id)?.map(({ version }) => version) ?? []
      return orderSubscriptions(told).at(-1) ?? []
    })
    yield newest
      .filter(
        ({ sourceAt }) => !(since && sourceAt < since.getTime()) && !(until && sourceAt > until.getTime()),
      )
      .map(toCanonicalSubscription)
  }
}

async function* shownMovements(
  db: Db,
  tenantId: number,
  window: Window,
): AsyncGenerator<Record<string, unknown>[]> {
  for await (const rows of movementPages(db, tenantId, window)) {
    const names = await accountNames(db, tenantId, [...new Set(rows.map(({ account }) => account))])
    yield rows.map(row => movementOf(row, names.get(row.account) ?? null))
  }
}

function movementOf({ occurredAt, changes, ...moved }: MovementRow, customerName: string | null) {
  return formatMovement({
    ...{ ...moved, customerName, at: occurredAt },
    changes: JSON.parse(changes) as Movement['changes'],
  })
}
