import type { Rule } from '../../domain/alerts/rules.ts'
import type { DestinationType, What } from '../../domain/destinations/destinations.ts'
import { type Db, queryRows } from '../../postgres/database.ts'
import type { SealedSecret } from '../inbound/sources.ts'

export type Destination = {
  id: string
  tenantId: number
  name: string
  type: DestinationType
  url: string
  what: What[]
  eventTypes: string[]
  alertRules: Rule[]
  enabled: boolean
  disabledReason: string | null
  /** Two during a rotation, the newest first. */
  secrets: SealedSecret[]
  /** Encrypted JSON; null: none */
  headers: string | null
  createdBy: string | null
  createdAt: Date
  updatedAt: Date
}

type Row = Omit<Destination, 'secrets'> & { secrets: string }

const COLUMNS = `d.id, d.tenant_id as "tenantId", d.name, d.type, d.url, d.what, d.event_types as "eventTypes",
  d.alert_rules as "alertRules", d.enabled,
  d.disabled_reason as "disabledReason", d.secrets, d.headers, d.created_by as "createdBy", d.created_at as "createdAt",
  d.updated_at as "updatedAt"`

export async function insertDestination(
  db: Db,
  destination: Omit<Destination, 'createdAt' | 'updatedAt' | 'disabledReason'>,
): Promise<Destination> {
  const { id, tenantId, name, type, url, what, eventTypes, alertRules, enabled, secrets, headers, createdBy } =
    destination
  const { rows } = await db.query<Row>(
    `insert into destinations as d (id, tenant_id, name, type, url, what, event_types, alert_rules, enabled, secrets, headers,
       created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning ${COLUMNS}`,
    [
      ...[id, tenantId, name, type, url, what, eventTypes, alertRules, enabled],
      ...[JSON.stringify(secrets), headers, createdBy],
    ],
  )
  await db.query('insert into destination_states (destination_id) values ($1)', [id])
  return toDestination(rows[0]!)
}

export async function findDestination(db: Db, id: string): Promise<Destination | null> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from destinations d where d.id = $1 and d.deleted_at is null`,
    [id],
  )
  return rows[0] ? toDestination(rows[0]) : null
}

/** Locks the destination until the caller's transaction ends. */
export async function lockDestination(db: Db, id: string): Promise<Destination | null> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from destinations d where d.id = $1 and d.deleted_at is null for update`,
    [id],
  )
  return rows[0] ? toDestination(rows[0]) : null
}

export async function listDestinations(db: Db, tenantId: number): Promise<Destination[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from destinations d where d.tenant_id = $1 and d.deleted_at is null order by d.created_at, d.id`,
    [tenantId],
  )
  return rows.map(toDestination)
}

/** Enabled destinations that were created with one of these keys. */
export async function listDestinationsCreatedWith(db: Db, keyIds: string[]): Promise<Destination[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from destinations d
     where d.created_by = any($1) and d.enabled and d.deleted_at is null order by d.created_at, d.id`,
    [keyIds],
  )
  return rows.map(toDestination)
}

type FailingDestination = Pick<Destination, 'id' | 'tenantId' | 'name' | 'disabledReason'> & {
  failingSince: Date | null
  lastError: string | null
}

/** Destinations that have been failing since before a given time, and those that Kontor disabled. */
export async function listFailing(db: Db, before: Date): Promise<FailingDestination[]> {
  const { rows } = await db.query<FailingDestination>(
    `select d.id, d.tenant_id as "tenantId", d.name, d.disabled_reason as "disabledReason", s.failing_since as "failingSince",
       s.last_error as "lastError"
     from destinations d join destination_states s on s.destination_id = d.id
     where d.deleted_at is null and case when d.enabled then s.failing_since < $1 else d.disabled_reason is not null end
     order by d.created_at, d.id`,
    [before],
  )
  return rows
}

type SubscribedDestination = Pick<Destination, 'id' | 'tenantId' | 'what' | 'eventTypes' | 'alertRules' | 'enabled'>

/** The destinations of all tenants, without the fields that only sending needs; `what`: filters by subscribed kind. */
export async function listSubscribed(db: Db, what: What | null = null): Promise<SubscribedDestination[]> {
  return queryRows<SubscribedDestination>(
    db,
    `select id, tenant_id as "tenantId", what, event_types as "eventTypes", alert_rules as "alertRules", enabled
     from destinations
     where deleted_at is null and ($1::text is null or $1 = any(what))`,
    [what],
  )
}

/** Writes the changeable fields. A destination that is enabled again or has a new URL is no longer marked as failing. */
export async function updateDestination(
  db: Db,
  before: Destination,
  changes: Partial<Destination>,
): Promise<Destination> {
  const destination = { ...before, ...changes }
  const { id, name, url, what, eventTypes, alertRules, enabled, disabledReason, secrets, headers } = destination
  const { rows } = await db.query<Row>(
    `update destinations d set name = $2, url = $3, what = $4, event_types = $5, alert_rules = $6, enabled = $7,
       disabled_reason = $8, secrets = $9, headers = $10, updated_at = now()
     where id = $1 returning ${COLUMNS}`,
    [
      ...[id, name, url, what, eventTypes, alertRules, enabled, enabled ? null : disabledReason],
      ...[JSON.stringify(secrets), headers],
    ],
  )
  if (enabled && (!before.enabled || url !== before.url))
    await db.query('update destination_states set failing_since = null where destination_id = $1', [id])
  return toDestination(rows[0]!)
}

/** Deletes the waiting messages too. Past attempts stay in the list of attempts. */
export async function deleteDestination(db: Db, id: string): Promise<void> {
  await db.query(`update destinations set deleted_at = now(), enabled = false where id = $1`, [id])
  await db.query('delete from delivery_queue where destination_id = $1', [id])
}

/** After a restore, the copy must not send on behalf of the original. Returns the number of disabled destinations. */
export async function disableDestinations(db: Db, reason: string): Promise<number> {
  const { rowCount } = await db.query(
    `update destinations set enabled = false, disabled_reason = $1, updated_at = now() where enabled and deleted_at is null`,
    [reason],
  )
  return rowCount ?? 0
}

type DestinationState = {
  lastAttemptAt: Date | null
  lastSuccessAt: Date | null
  failingSince: Date | null
  lastStatus: number | null
  lastError: string | null
  /** Counted up to MAX_COUNTED. */
  pending: number
}

const MAX_COUNTED = 100_000

export async function readDestinationState(db: Db, id: string): Promise<DestinationState> {
  const { rows } = await db.query<DestinationState>(
    `select last_attempt_at as "lastAttemptAt", last_success_at as "lastSuccessAt", failing_since as "failingSince",
       last_status as "lastStatus", last_error as "lastError",
       (select count(*) from (select from delivery_queue where destination_id = $1 limit ${MAX_COUNTED}) q) as pending
     from destination_states where destination_id = $1`,
    [id],
  )
  return rows[0]!
}

/** Parses the JSON columns, which are read as strings. */
function toDestination(row: Row): Destination {
  return { ...row, secrets: JSON.parse(row.secrets) }
}
