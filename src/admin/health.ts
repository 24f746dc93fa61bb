import type pg from 'pg'
import { stripNamespaces } from '../domain/billing/namespace.ts'
import { Count, Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { type Log, LogUnavailable, totalUnread, type Unread } from '../log/log.ts'
import { groupWarnings, type WarningGroup } from '../store/billing/versions.ts'
import { findDestination } from '../store/destinations/destinations.ts'
import {
  type FailingGroup,
  groupFailing,
  groupLetters,
  groupRefusals,
  type LetterGroup,
  type RefusalGroup,
} from '../store/entries/dead-letters.ts'
import { summarizeParked } from '../store/entries/parked.ts'
import { destinationActivity, sourceActivity, summarizeFailures } from '../store/health/health.ts'
import { groupRejections, type RejectionGroup } from '../store/inbound/rejections.ts'
import { findSource } from '../store/inbound/sources.ts'
import { type Actor, canSee, requireTenant } from './actor.ts'
import { notFound } from './error.ts'

/** The health of a tenant, for its operators. */
export function healthAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    async show(tenant: string): Promise<Omit<HealthView, 'disk_free' | 'disk_days_left'>> {
      const { id } = await requireTenant(pool, actor, tenant)
      const failures = await summarizeFailures(pool, id)
      const { own, all } = await readWaiting(log, id)
      return {
        tenant: publicTenantId(id),
        waiting: own && waitingView(own),
        retrying: waitingView(await summarizeParked(pool, id)),
        // An actor with access to one tenant does not see the load of the others.
        installation: actor.tenantId === null ? { waiting: all && waitingView(all) } : null,
        dead_letters: { open: failures.openLetters, by_hour: failures.lettersByHour },
        refused: { last_24_hours: failures.refused, by_hour: failures.refusedByHour },
        deferred: { events: failures.deferred, oldest_at: failures.deferredSince?.toISOString() ?? null },
      }
    },
    /** Events of a source per hour of the last day. */
    async source(id: string): Promise<SourceActivity> {
      const source = await findSource(pool, id)
      if (source === null || !canSee(actor, source.tenantId)) throw notFound('source', id)
      const { received, refused } = await sourceActivity(pool, source.tenantId, id)
      return { id, received: withTotal(received), refused: withTotal(refused) }
    },
    /** Deliveries to a destination per hour of the last day. */
    async destination(id: string): Promise<DestinationActivity> {
      const destination = await findDestination(pool, id)
      if (destination === null || !canSee(actor, destination.tenantId)) throw notFound('destination', id)
      const { delivered, failed } = await destinationActivity(pool, destination.tenantId, id)
      return { id, delivered: withTotal(delivered), failed: withTotal(failed) }
    },
    /** Failures and rejections by cause, the most recent first. */
    async issues(tenant: string): Promise<IssueView[]> {
      const { id } = await requireTenant(pool, actor, tenant)
      const letters = await groupLetters(pool, id, MOST_ISSUES)
      const refusals = await groupRefusals(pool, id, MOST_ISSUES)
      const refused = await groupRejections(pool, id, MOST_ISSUES)
      const failing = await groupFailing(pool, id)
      const warnings = await groupWarnings(pool, id, MOST_ISSUES)
      return [
        ...letters.map(letterIssue),
        ...refusals.map(refusalIssue),
        ...refused.map(refusedIssue),
        ...failing.map(destinationIssue),
        ...warnings.map(warningIssue),
      ].sort((a, b) => (a.last_at < b.last_at ? 1 : -1))
    },
  }
}

const MOST_ISSUES = 100

function withTotal(by_hour: number[]) {
  return { last_24_hours: by_hour.reduce((sum, count) => sum + count, 0), by_hour }
}

function letterIssue(group: LetterGroup): IssueView {
  return {
    ...{ kind: 'dead_letters', cause: group.cause, reason: group.reason, route: null },
    ...{ count: group.count, first_at: group.firstAt.toISOString(), last_at: group.lastAt.toISOString() },
    ...{ example: group.exampleError, example_id: group.exampleId },
    ...{ source_config_id: group.sourceId, destination_id: null },
  }
}

function refusalIssue(group: RefusalGroup): IssueView {
  return {
    ...{ kind: 'refused', cause: group.code, reason: null, route: null },
    ...{ count: group.count, first_at: group.firstAt.toISOString(), last_at: group.lastAt.toISOString() },
    ...{ example: group.detail, example_id: null },
    ...{ source_config_id: group.sourceId, destination_id: null },
  }
}

function refusedIssue(group: RejectionGroup): IssueView {
  return {
    ...{ kind: 'refused', cause: group.cause, reason: null, route: group.route, source_config_id: null },
    ...{ count: group.count, first_at: group.firstAt.toISOString(), last_at: group.lastAt.toISOString() },
    ...{ example: group.detail ?? group.cause, example_id: null, destination_id: null },
  }
}

function destinationIssue(group: FailingGroup): IssueView {
  return {
    ...{ kind: 'failing_destination', cause: group.name, reason: null, route: null },
    ...{ count: group.pending, first_at: group.firstAt.toISOString(), last_at: group.lastAt.toISOString() },
    ...{ example: group.error, example_id: null },
    ...{ source_config_id: null, destination_id: group.destinationId },
  }
}

function warningIssue(group: WarningGroup): IssueView {
  const { kind, field, objectId, value } = group
  return {
    ...{ kind: 'billing_warning', cause: `${kind} \`${field}\` cannot be read`, reason: null, route: null },
    ...{ count: group.count, first_at: group.firstAt.toISOString(), last_at: group.lastAt.toISOString() },
    ...{ example: `${stripNamespaces(objectId)}: ${value}`, example_id: group.eventId },
    ...{ source_config_id: group.sourceId, destination_id: null },
  }
}

// With more entries than this, the entries of one tenant are not counted: on NATS this means reading all of them.
const MOST_LOOKED_THROUGH = 100_000

/** Unknown values are null, so that the rest of the health is available while the log is not. */
async function readWaiting(log: Log, tenantId: number): Promise<{ own: Unread | null; all: Unread | null }> {
  try {
    const all = totalUnread(await log.lag({ complete: true }))
    if (all.entries === 0) return { own: all, all }
    return { own: all.entries <= MOST_LOOKED_THROUGH ? await log.unread(tenantId, null) : null, all }
  } catch (error) {
    if (error instanceof LogUnavailable) return { own: null, all: null }
    throw error
  }
}

function waitingView({ entries, oldestAt }: Unread) {
  return { entries, oldest_at: oldestAt?.toISOString() ?? null }
}

const ByHour = Type.Array(Type.Integer(), {
  description: 'The last 24 hours, oldest first; the last hour is the current one',
})

const HoursOfActivity = Type.Object(
  {
    last_24_hours: Count,
    by_hour: Type.Array(Type.Integer(), {
      description: 'The last 24 hours, oldest first; the last hour is the current one. Counted up to 10,000 per hour',
    }),
  },
  { title: 'Activity', description: 'A count for the last 24 hours, in total and by hour' },
)

/** The activity of a source. */
export const SourceActivity = Type.Object(
  { id: Type.String(), received: HoursOfActivity, refused: HoursOfActivity },
  { title: 'SourceActivity', description: 'The requests of a source in the last 24 hours' },
)
export type SourceActivity = Static<typeof SourceActivity>

/** The delivery attempts of a destination. */
export const DestinationActivity = Type.Object(
  {
    id: Type.String(),
    delivered: HoursOfActivity,
    failed: HoursOfActivity,
  },
  { title: 'DestinationActivity', description: 'The delivery attempts of a destination in the last 24 hours' },
)
export type DestinationActivity = Static<typeof DestinationActivity>

/** The health of a tenant. */
export const HealthView = Type.Object(
  {
    tenant: Type.String(),
    waiting: Nullable(
      Type.Object(
        { entries: Count, oldest_at: NullableTimestamp },
        {
          description:
            'Accepted entries of this tenant that are not processed yet; null: unknown, because the log is unavailable or has more than 100,000 unprocessed entries',
        },
      ),
    ),
    retrying: Type.Object(
      { entries: Count, oldest_at: NullableTimestamp },
      { description: 'Entries of this tenant that failed and wait for a retry, and entries that wait behind them' },
    ),
    installation: Nullable(
      Type.Object(
        {
          waiting: Nullable(
            Type.Object(
              { entries: Count, oldest_at: NullableTimestamp },
              { description: 'Accepted entries that are not processed yet; null: unknown' },
            ),
          ),
        },
        { description: 'Entries of all tenants; null for a caller with access to one tenant' },
      ),
    ),
    dead_letters: Type.Object({ open: Count, by_hour: ByHour }, { description: 'Dead letters of this tenant' }),
    refused: Type.Object({ last_24_hours: Count, by_hour: ByHour }, { description: 'Rejected requests' }),
    deferred: Type.Object(
      { events: Count, oldest_at: NullableTimestamp },
      { description: 'Events above the rate limit of their source that wait to be processed' },
    ),
    disk_free: Nullable(
      Type.Number({
        description: 'The free share of the disk of the installation, from 0 to 1; null with an external PostgreSQL',
      }),
    ),
    disk_days_left: Nullable(
      Type.Number({
        description:
          'Time until the disk of the installation is full, at the rate of the last day; null: unknown, or usage does not grow',
      }),
    ),
  },
  { title: 'Health', description: 'Waiting, failed and rejected data of a tenant' },
)
export type HealthView = Static<typeof HealthView>

/** Failures with the same cause. */
export const IssueView = Type.Object(
  {
    kind: Type.Enum(['dead_letters', 'refused', 'failing_destination', 'billing_warning']),
    cause: Type.String({
      description:
        'For dead letters, the error without variable parts; for rejected requests to a source, the code; for rejected requests with a key, the reason without variable parts; for a destination, its name; for a billing warning, the field that cannot be read',
    }),
    reason: NullableText,
    route: Nullable(
      Type.String({ description: 'The route of rejected requests with a key, for example POST /v1/track' }),
    ),
    source_config_id: NullableText,
    destination_id: NullableText,
    count: Type.Integer({ minimum: 0, description: 'For a destination, the number of messages waiting for delivery' }),
    first_at: Timestamp,
    last_at: Timestamp,
    example: Type.String({ description: 'The most recent error or rejection, in full' }),
    example_id: Nullable(
      Type.String({
        format: 'uuid',
        description: 'The most recent dead letter; for a billing warning, the most recent event',
      }),
    ),
  },
  { title: 'Issue', description: 'Failures with the same cause' },
)
export type IssueView = Static<typeof IssueView>
