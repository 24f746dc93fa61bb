import { contactFacts } from '../../domain/conversions/conversions.ts'
import { publicProfileId } from '../../domain/identity/identifiers.ts'
import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { trimEnd } from '../../domain/trim.ts'
import type { Alert } from '../alerts/alerts.ts'
import type { ConversionRow } from '../conversions/conversions.ts'
import type { EventRow } from '../events/events.ts'
import type { StoredRecord } from '../records/records.ts'

/** Formats rows as JSON for lists, exports and deliveries. */

/** Payload, headers and meta are written as stored: parsing them would take time and lose exact digits. */
export function eventText(row: Omit<EventRow, 'conversion'>): string {
  const facts = JSON.stringify({
    id: row.id,
    event_type: row.eventType,
    occurred_at: row.occurredAt,
    received_at: row.receivedAt,
    source: row.source,
    source_type: row.source,
    source_config_id: row.sourceConfigId,
    inbound_event_id: row.inboundEventId,
    provider_event_id: row.providerEventId,
    visitor: row.visitor,
    session_id: row.sessionId,
    profile_id: publicProfileId(row.profile),
    contact_id: row.contactId,
    verified: row.verified,
  })
  return `${facts.slice(0, -1)},"payload":${row.payload},"headers":${row.headers ?? '{}'},"meta":${row.meta ?? '{}'}}`
}

export function conversionText(row: ConversionRow): string {
  const contact = row.contactData === null ? null : contactFacts(JSON.parse(row.contactData))
  const facts = JSON.stringify({
    id: row.id,
    occurred_at: row.occurredAt,
    conversion_type: row.conversionType,
    event_type: row.eventType,
    source: row.source,
    source_object_id: row.sourceObjectId,
    currency: row.currency,
    visitor: row.visitor,
    profile_id: publicProfileId(row.profile),
    contact_id: row.contactId,
    contact_name: contact?.name ?? null,
    contact_email: contact?.email ?? null,
    company_name: contact?.company ?? null,
    integration_id: row.integrationId,
    verified: row.verified,
    claims: row.claims,
  })
  // The amount is an exact decimal string and valid as a JSON number; trailing zeros are removed.
  return `${facts.slice(0, -1)},"amount":${row.amount === null ? 'null' : plainNumber(row.amount)}}`
}

export function plainNumber(decimal: string): string {
  if (!decimal.includes('.')) return decimal
  const digits = trimEnd(decimal, digit => digit === '0')
  return digits.endsWith('.') ? digits.slice(0, -1) : digits
}

/** The data is written as stored, for the same reason. */
export function recordText(record: StoredRecord, withDeleted = false): string {
  const deleted = withDeleted ? `,"deleted":${record.deleted}` : ''
  return `{"entityType":"${record.entityType}","id":${JSON.stringify(record.id)},"externalId":${JSON.stringify(record.externalId)},"sourceUpdatedAt":"${record.sourceUpdatedAt.toISOString()}","data":${record.data ?? 'null'},"createdAt":"${record.createdAt.toISOString()}","updatedAt":"${record.updatedAt.toISOString()}"${deleted}}`
}

/** As destinations receive it. */
export function alertText(alert: Alert, tenantName: string): string {
  return JSON.stringify({
    id: alert.id,
    tenant: publicTenantId(alert.tenantId),
    tenant_name: tenantName,
    rule: alert.rule,
    subject: alert.subject === '' ? null : alert.subject,
    state: alert.state,
    summary: alert.summary,
    value: alert.value,
    threshold: alert.threshold,
    raised_at: alert.raisedAt,
    resolved_at: alert.resolvedAt,
  })
}
