import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { listChanges, listChangesOfTenant, type StoredChange } from '../store/tenants/audit.ts'
import type { Actor } from './actor.ts'
import { refuse } from './error.ts'
import { tenantLimit } from './tenants.ts'
import type { AuditView } from './views/audit.ts'

type AuditQuery = {
  tenant?: string | undefined
  since?: string | undefined
  until?: string | undefined
  limit: number
  before?: { at: Date; id: string } | undefined
}

export type AuditAdmin = ReturnType<typeof auditAdmin>

export function auditAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Newest first. Without a tenant: of all of them, and what concerns the whole installation. */
    async list(query: AuditQuery): Promise<AuditView[]> {
      const page = {
        since: timeOf('since', query.since),
        until: timeOf('until', query.until),
        before: query.before ?? null,
        limit: query.limit,
      }
      const tenantId = await tenantLimit(pool, actor, query.tenant)
      const changes =
        tenantId === null ? await listChanges(pool, page) : await listChangesOfTenant(pool, tenantId, page)
      return changes.map(auditView)
    },
  }
}

function timeOf(name: 'since' | 'until', text: string | undefined): Date | null {
  const at = parseTimestamp(text)
  const message = 'must be an ISO 8601 date-time, for example 2026-01-31T00:00:00Z'
  if (text !== undefined && at === null) refuse([{ pointer: `/${name}`, message }])
  return at
}

function auditView(change: StoredChange): AuditView {
  return {
    id: change.id,
    at: change.at.toISOString(),
    actor: change.actor,
    action: change.action,
    target: change.target,
    tenant: change.tenantId === null ? null : publicTenantId(change.tenantId),
    ip: change.ip,
    request_id: change.requestId,
    before: change.before === null ? null : JSON.parse(change.before),
    after: change.after === null ? null : JSON.parse(change.after),
  }
}
