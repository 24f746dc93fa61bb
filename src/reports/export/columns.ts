import { contactFacts } from '../../domain/conversions/conversions.ts'
import { publicProfileId } from '../../domain/identity/identity.ts'
import type { ConversionRow } from '../../store/conversions/conversions.ts'
import type { EventRow } from '../../store/events/events.ts'
import { plainNumber } from '../../store/export/row-texts.ts'
import type { StoredRecord } from '../../store/records/records.ts'

/** json: JSON text as it is stored; number: a JavaScript number, or exact decimal text. */
export type ColumnType = 'text' | 'timestamp' | 'number' | 'boolean' | 'json'
export type Column<Row> = { name: string; type: ColumnType; of(row: Row): Cell }
export type Cell = string | number | boolean | Date | null

const column = <Row>(name: string, type: ColumnType, of: (row: Row) => Cell): Column<Row> => ({
  name,
  type,
  of,
})

/** The fields of the rows of GET /v1/events, in their order. */
export const EVENT_COLUMNS: Column<EventRow>[] = [
  column('id', 'text', row => row.id),
  column('event_type', 'text', row => row.eventType),
  column('occurred_at', 'timestamp', row => row.occurredAt),
  column('received_at', 'timestamp', row => row.receivedAt),
  column('source', 'text', row => row.source),
  column('source_type', 'text', row => row.sourceType),
  column('source_config_id', 'text', row => row.sourceConfigId),
  column('inbound_event_id', 'text', row => row.inboundEventId),
  column('provider_event_id', 'text', row => row.providerEventId),
  column('visitor', 'text', row => row.visitor),
  column('session_id', 'text', row => row.sessionId),
  column('profile_id', 'text', row => publicProfileId(row.profile)),
  column('contact_id', 'text', row => row.contactId),
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
  column('contact_name', 'text', row => contactOf(row).name),
  column('contact_email', 'text', row => contactOf(row).email),
  column('company_name', 'text', row => contactOf(row).company),
  column('integration_id', 'text', row => row.integrationId),
]

const NOBODY = { name: null, email: null, company: null }

/** Three columns in a row ask for the same contact. */
function contactOf(row: ConversionRow) {
  if (lastContact.row !== row)
    lastContact = {
      row,
      facts: row.contactData === null ? NOBODY : contactFacts(JSON.parse(row.contactData)),
    }
  return lastContact.facts
}

let lastContact: { row: ConversionRow | null; facts: ReturnType<typeof contactFacts> } = {
  row: null,
  facts: NOBODY,
}

/** The fields of GET /v1/products/:id and the like. */
export const RECORD_COLUMNS: Column<StoredRecord>[] = [
  column('entityType', 'text', row => row.entityType),
  column('id', 'text', row => row.id),
  column('externalId', 'text', row => row.externalId),
  column('sourceUpdatedAt', 'timestamp', row => row.sourceUpdatedAt),
  column('data', 'json', row => row.data),
  column('createdAt', 'timestamp', row => row.createdAt),
  column('updatedAt', 'timestamp', row => row.updatedAt),
]

/** An object that is ready to be shown: its fields are the columns. */
export function shownColumns(types: Record<string, ColumnType>): Column<Record<string, unknown>>[] {
  return Object.entries(types).map(([name, type]) =>
    column(name, type, row => {
      const value = row[name] ?? null
      return type === 'json' && value !== null ? JSON.stringify(value) : (value as Cell)
    }),
  )
}
