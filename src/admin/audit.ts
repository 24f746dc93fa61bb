import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { newEntryId } from '../domain/ids.ts'
import { Nullable, NullableText, Timestamp, Uuid } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { endIn, UTC } from '../domain/time-zone.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { Db } from '../postgres/database.ts'
import { insertChange, listChanges, listChangesOfTenant, type StoredChange } from '../store/tenants/audit.ts'
import { type Actor, resolveTenantFilter } from './actor.ts'
import { throwIfInvalid } from './error.ts'

/** A change as operators see it, without secrets. Only the fields that differ are stored. */
type Change = {
  /** noun.verb */
  action: string
  target: string | null
  /** null: the whole installation */
  tenantId: number | null
  before?: object | null
  after?: object | null
}

/** Records the change in the transaction that makes it. A change without differences is not recorded. */
export async function recordChange(tx: Db, actor: Actor, change: Change): Promise<void> {
  const { action, target, tenantId } = change
  const { before, after } = difference(change.before ?? null, change.after ?? null)
  if (before && after && Object.keys(after).length === 0) return
  await insertChange(tx, {
    id: newEntryId(Date.now()),
    actor: actor.name,
    action,
    target,
    tenantId,
    ip: actor.ip,
    requestId: actor.requestId,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  })
}

/** Differs in every change, so it is left out. */
const IGNORED_FIELD = 'updated_at'

function difference(before: object | null, after: object | null) {
  if (before === null || after === null) return { before, after }
  const old = before as Record<string, unknown>
  const now = after as Record<string, unknown>
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(
    name => name !== IGNORED_FIELD && !isDeepStrictEqual(old[name], now[name]),
  )
  const only = (values: Record<string, unknown>) => Object.fromEntries(names.map(name => [name, values[name] ?? null]))
  return { before: only(old), after: only(now) }
}

type AuditQuery = {
  tenant?: string | undefined
  since?: string | undefined
  until?: string | undefined
  limit: number
  before?: { at: Date; id: string } | undefined
}

export function auditAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Newest first. Without a tenant: the changes of all tenants and of the installation. */
    async list(query: AuditQuery): Promise<AuditView[]> {
      const page = {
        since: parseTime('since', query.since),
        until: parseTime('until', query.until),
        before: query.before ?? null,
        limit: query.limit,
      }
      const tenantId = await resolveTenantFilter(pool, actor, query.tenant)
      const changes =
        tenantId === null ? await listChanges(pool, page) : await listChangesOfTenant(pool, tenantId, page)
      return changes.map(auditView)
    },
  }
}

function parseTime(name: 'since' | 'until', text: string | undefined): Date | null {
  const at = name === 'since' ? parseTimestamp(text) : endIn(UTC, text)
  const message = `must be ${TIME_FORMAT}`
  if (text !== undefined && at === null) throwIfInvalid([{ pointer: `/${name}`, message }])
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

const AuditedState = Nullable(
  Type.Unsafe<object>(Type.Object({}, { description: 'Only fields that differ, without secrets' })),
)

export const AuditView = Type.Object(
  {
    id: Uuid,
    at: Timestamp,
    actor: Type.String({
      description: 'A key id, user: or oidc: and the console user, cli: and the command line user, or system',
    }),
    action: Type.String({ description: 'noun.verb' }),
    target: Nullable(
      Type.String({
        description: 'The id of the changed object; for an erasure, a hash that does not reveal the person',
      }),
    ),
    tenant: Nullable(Type.String({ description: 'null: the whole installation' })),
    ip: NullableText,
    request_id: NullableText,
    before: AuditedState,
    after: AuditedState,
  },
  {
    title: 'AuditEntry',
    description: 'One change by a user, a key or the command line',
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300004',
        at: '2026-01-31T09:30:00.000Z',
        actor: 'key_4fTzQ9aXw2LmN8pB',
        action: 'source.disable',
        target: 'src_4fTzQ9aXw2LmN8pB',
        tenant: 'ten_1',
        ip: '203.0.113.7',
        request_id: 'req_8sT2kQ',
        before: { enabled: true },
        after: { enabled: false },
      },
    ],
  },
)
export type AuditView = Static<typeof AuditView>
