import type pg from 'pg'
import type { Fault } from '../domain/fault.ts'
import {
  hashOfSecret,
  hintOf,
  KEY_KINDS,
  type KeyKind,
  newKey,
  newPublicId,
  SCOPES,
  type Scope,
} from '../domain/tenants/keys.ts'
import { ROLES, type Role } from '../domain/tenants/roles.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, parseTimestamp } from '../domain/time.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { listSourcesMadeWith, type Source } from '../store/inbound/sources.ts'
import {
  type ApiKey,
  insertKey,
  listAdminKeys,
  listKeys,
  listKeysMadeWith,
  lockKey,
  revokeKey,
} from '../store/tenants/keys.ts'
import { type Actor, requireAllTenants, requireRole, sees } from './actor.ts'
import { recordChange } from './audit.ts'
import { notFound, refuse } from './error.ts'
import { disableSource, sourceView } from './sources.ts'
import { tenantNamed } from './tenants.ts'
import type { CreatedKey, KeyView, RevokedKey, SourceView } from './views.ts'

export type NewKey = {
  /** Of an admin key: the only one that it sees. */
  tenant?: string | null | undefined
  kind: string
  /** Default: all of them for a private key; the other kinds have none. */
  scopes?: string[] | undefined
  /** Of a tracking key: it stays on servers, and may therefore alias and merge people. */
  server?: boolean | undefined
  /** Of an admin key; default: admin. */
  role?: string | undefined
  expires_at?: string | null | undefined
}

export type KeyAdmin = ReturnType<typeof keyAdmin>

export function keyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create(input: NewKey): Promise<CreatedKey> {
      const now = new Date()
      if (!isOwnReadKey(input, now)) requireRole(actor, 'admin')
      refuse(faultsOf(input, now))
      if (!input.tenant) requireAllTenants(actor)
      const tenantId = input.tenant ? (await tenantNamed(pool, actor, input.tenant)).id : null
      const scopes = input.kind === 'private' ? ((input.scopes as Scope[]) ?? [...SCOPES]) : []
      const key: KeyFacts = {
        tenantId,
        kind: input.kind as KeyKind,
        scopes: [...new Set(scopes)],
        server: input.server ?? false,
        role: input.kind === 'admin' ? ((input.role as Role) ?? 'admin') : null,
        expiresAt: input.expires_at ? parseTimestamp(input.expires_at) : null,
      }
      return inTransaction(pool, tx => makeKey(tx, actor, key))
    },
    /** Without a tenant: the admin keys. */
    async list(tenant: string | null): Promise<KeyView[]> {
      const keys =
        tenant === null
          ? await listAdminKeys(pool)
          : await listKeys(pool, (await tenantNamed(pool, actor, tenant)).id)
      return keys.filter(({ tenantId }) => sees(actor, tenantId)).map(keyView)
    },
    /**
     * Tells what was made with the key and is still good, also by keys that it made; `withMade` ends that too: keys are
     * revoked, sources disabled.
     */
    async revoke(id: string, { withMade = false } = {}): Promise<RevokedKey> {
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !sees(actor, key.tenantId)) throw notFound('key', id)
        if (key.createdBy !== actor.name) requireRole(actor, 'admin')
        const made = await madeWith(tx, actor, id)
        const revoked = await endKey(tx, actor, key)
        if (!withMade)
          return { ...revoked, made: madeView(made.keys.map(keyView), made.sources.map(sourceView)) }
        const keys: KeyView[] = []
        for (const other of made.keys) keys.push(await endKey(tx, actor, other))
        const sources = await Promise.all(made.sources.map(source => disableSource(tx, actor, source.id)))
        return {
          ...revoked,
          made: madeView(
            keys,
            sources.filter(source => source !== null),
          ),
        }
      })
    },
  }
}

const OWN_READ_KEY_MS = DAY_MS

/** Whoever may see everything in the console may make a key for it that reads the same, for a day. */
function isOwnReadKey({ kind, scopes, expires_at }: NewKey, now: Date): boolean {
  const end = parseTimestamp(expires_at)
  return (
    kind === 'private' &&
    scopes !== undefined &&
    scopes.every(scope => scope.endsWith(':read')) &&
    end !== null &&
    end.getTime() <= now.getTime() + OWN_READ_KEY_MS
  )
}

async function madeWith(tx: Db, actor: Actor, id: string): Promise<{ keys: ApiKey[]; sources: Source[] }> {
  const keys = (await listKeysMadeWith(tx, id, new Date())).filter(key => sees(actor, key.tenantId))
  const sources = await listSourcesMadeWith(tx, [id, ...keys.map(key => key.id)])
  return { keys, sources: sources.filter(source => sees(actor, source.tenantId)) }
}

function madeView(keys: KeyView[], sources: SourceView[]): RevokedKey['made'] {
  return { keys, sources: sources.map(({ id, tenant, name, enabled }) => ({ id, tenant, name, enabled })) }
}

export async function endKey(tx: Db, actor: Actor, key: ApiKey): Promise<KeyView> {
  const { id, tenantId } = key
  const revoked = await revokeKey(tx, id)
  if (revoked === null) throw notFound('key', id)
  const before = { revoked_at: keyView(key).revoked_at }
  const after = { revoked_at: keyView(revoked).revoked_at }
  await recordChange(tx, actor, { action: 'key.revoke', target: id, tenantId, before, after })
  return keyView(revoked)
}

/** What a key is, apart from the key itself. */
export type KeyFacts = Pick<ApiKey, 'tenantId' | 'kind' | 'scopes' | 'server' | 'role' | 'expiresAt'>

export async function makeKey(tx: Db, actor: Actor, key: KeyFacts): Promise<CreatedKey> {
  const secret = newKey(key.kind)
  const id = newPublicId('key')
  const made = await insertKey(tx, {
    id,
    ...key,
    allowedAddresses: [],
    hash: hashOfSecret(secret),
    hint: hintOf(secret),
    createdBy: actor.name,
  })
  const after = keyView(made)
  await recordChange(tx, actor, { action: 'key.create', target: id, tenantId: key.tenantId, after })
  return { ...after, key: secret }
}

function faultsOf(input: NewKey, now: Date): Fault[] {
  const faults: Fault[] = []
  const fault = (pointer: string, message: string) => faults.push({ pointer, message })
  if (!KEY_KINDS.includes(input.kind as KeyKind)) fault('/kind', `must be one of ${KEY_KINDS.join(', ')}`)
  if (input.kind !== 'admin' && !input.tenant) fault('/tenant', 'is required: the id or the name of a tenant')
  if (input.scopes && input.kind !== 'private' && KEY_KINDS.includes(input.kind as KeyKind))
    fault('/scopes', `must be left out: a key of kind ${input.kind} has no scopes`)
  else if (input.scopes?.length === 0) fault('/scopes', 'must name at least one scope')
  for (const [index, scope] of (input.scopes ?? []).entries())
    if (!SCOPES.includes(scope as Scope))
      fault(
        `/scopes/${index}`,
        `${JSON.stringify(scope)} is not a scope; the scopes are ${SCOPES.join(', ')}`,
      )
  if (input.server && input.kind !== 'tracking')
    fault('/server', 'must be left out: only a tracking key can be a server key')
  if (input.role !== undefined && input.kind !== 'admin')
    fault('/role', 'must be left out: only admin keys have a role')
  else if (input.role !== undefined && !ROLES.includes(input.role as Role))
    fault('/role', `must be one of ${ROLES.join(', ')}`)
  if (input.expires_at) {
    const at = parseTimestamp(input.expires_at)
    if (at === null) fault('/expires_at', 'must be an ISO 8601 date-time, for example 2030-01-31T00:00:00Z')
    else if (at <= now) fault('/expires_at', 'must be in the future')
  }
  return faults
}

function keyView(key: ApiKey): KeyView {
  return {
    id: key.id,
    kind: key.kind,
    scopes: key.scopes,
    server: key.server,
    role: key.role,
    tenant: key.tenantId === null ? null : publicTenantId(key.tenantId),
    hint: key.hint,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  }
}
