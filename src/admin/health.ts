import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Log, LogUnavailable, totalOf, type Unread } from '../log/log.ts'
import { findDestination } from '../store/destinations/destinations.ts'
import {
  type FailingGroup,
  groupFailing,
  groupLetters,
  groupRefusals,
  type LetterGroup,
  type RefusalGroup,
} from '../store/entries/issues.ts'
import { summarizeParkedOf } from '../store/entries/parked.ts'
import { groupRefused, type RefusedGroup } from '../store/entries/refusals.ts'
import { destinationActivity, sourceActivity } from '../store/health/activity.ts'
import { failuresOf } from '../store/health/failures.ts'
import { findSource } from '../store/inbound/sources.ts'
import { type Actor, sees } from './actor.ts'
import { notFound } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { DestinationActivity, HealthView, IssueView, SourceActivity } from './views/health.ts'

/** How a tenant stands, for those who look after it. */
export function healthAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    async show(tenant: string): Promise<Omit<HealthView, 'disk_free' | 'disk_days_left'>> {
      const { id } = await tenantNamed(pool, actor, tenant)
      const failures = await failuresOf(pool, id)
      const { own, all } = await waitingIn(log, id)
      return {
        tenant: publicTenantId(id),
        waiting: own && waitingView(own),
        retrying: waitingView(await summarizeParkedOf(pool, id)),
        // Whoever has one tenant is not told how busy the others are.
        installation: actor.tenantId === null ? { waiting: all && waitingView(all) } : null,
        dead_letters: { open: failures.openLetters, by_hour: failures.lettersByHour },
        refused: { last_24_hours: failures.refused, by_hour: failures.refusedByHour },
        deferred: { events: failures.deferred, oldest_at: failures.deferredSince?.toISOString() ?? null },
      }
    },
    /** By the hour of the last day: what came of a source. */
    async source(id: string): Promise<SourceActivity> {
      const source = await findSource(pool, id)
      if (source === null || !sees(actor, source.tenantId)) throw notFound('source', id)
      const { received, refused } = await sourceActivity(pool, source.tenantId, id)
      return { id, received: hoursOf(received), refused: hoursOf(refused) }
    },
    /** The same: what went to a destination. */
    async destination(id: string): Promise<DestinationActivity> {
      const destination = await findDestination(pool, id)
      if (destination === null || !sees(actor, destination.tenantId)) throw notFound('destination', id)
      const { delivered, failed } = await destinationActivity(pool, destination.tenantId, id)
      return { id, delivered: hoursOf(delivered), failed: hoursOf(failed) }
    },
    /** What fails and was refused, by cause: the newest last failure first. */
    async issues(tenant: string): Promise<IssueView[]> {
      const { id } = await tenantNamed(pool, actor, tenant)
      const letters = await groupLetters(pool, id, MOST_ISSUES)
      const refusals = await groupRefusals(pool, id, MOST_ISSUES)
      const refused = await groupRefused(pool, id, MOST_ISSUES)
      const failing = await groupFailing(pool, id)
      return [
        ...letters.map(letterIssue),
        ...refusals.map(refusalIssue),
        ...refused.map(refusedIssue),
        ...failing.map(destinationIssue),
      ].sort((a, b) => (a.last_at < b.last_at ? 1 : -1))
    },
  }
}

const MOST_ISSUES = 100

function hoursOf(by_hour: number[]) {
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

function refusedIssue(group: RefusedGroup): IssueView {
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

export type HealthAdmin = ReturnType<typeof healthAdmin>

// Beyond, what waits is not looked through for the tenant's own: on NATS that means to read it.
const MOST_LOOKED_THROUGH = 100_000

/** What is not known is null: a log that is away is no reason to tell nothing. */
async function waitingIn(log: Log, tenantId: number): Promise<{ own: Unread | null; all: Unread | null }> {
  try {
    const all = totalOf(await log.lag({ complete: true }))
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
