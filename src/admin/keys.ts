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
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { type ApiKey, insertKey, listKeys, lockKey, revokeKey } from '../store/tenants/keys.ts'
import { type Actor, recordChange } from './audit.ts'
import { notFound, refuse } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { CreatedKey, KeyView } from './views.ts'

export type NewKey = {
  tenant?: string | null | undefined
  kind: string
  /** Default: all of them for a private key; the other kinds have none. */
  scopes?: string[] | undefined
  /** Of a tracking key: it stays on servers, and may therefore alias and merge people. */
  server?: boolean | undefined
  expires_at?: string | null | undefined
}

export type KeyAdmin = ReturnType<typeof keyAdmin>

export function keyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create(input: NewKey): Promise<CreatedKey> {
      refuse(faultsOf(input, new Date()))
      const tenantId = input.kind === 'admin' ? null : (await tenantNamed(pool, input.tenant ?? '')).id
      const scopes = input.kind === 'private' ? ((input.scopes as Scope[]) ?? [...SCOPES]) : []
      const expiresAt = input.expires_at ? parseTimestamp(input.expires_at) : null
      const server = input.server ?? false
      const key = { tenantId, kind: input.kind as KeyKind, scopes: [...new Set(scopes)], server, expiresAt }
      return inTransaction(pool, tx => makeKey(tx, actor, key))
    },
    /** Without a tenant: the admin keys. */
    async list(tenant: string | null): Promise<KeyView[]> {
      const tenantId = tenant === null ? null : (await tenantNamed(pool, tenant)).id
      return (await listKeys(pool, tenantId)).map(keyView)
    },
    async revoke(id: string): Promise<KeyView> {
      return inTransaction(pool, async tx => {
        const key = await endKey(tx, actor, id)
        if (key === null) throw notFound('key', id)
        return key
      })
    },
  }
}

/** Returns null where there is no such key. */
export async function endKey(tx: Db, actor: Actor, id: string): Promise<KeyView | null> {
  const key = await lockKey(tx, id)
  const revoked = key && (await revokeKey(tx, id))
  if (!revoked) return null
  const { tenantId } = key
  const before = { revoked_at: keyView(key).revoked_at }
  const after = { revoked_at: keyView(revoked).revoked_at }
  await recordChange(tx, actor, { action: 'key.revoke', target: id, tenantId, before, after })
  return keyView(revoked)
}

export async function makeKey(
  tx: Db,
  actor: Actor,
  key: { tenantId: number | null; kind: KeyKind; scopes: Scope[]; server?: boolean; expiresAt: Date | null },
): Promise<CreatedKey> {
  const secret = newKey(key.kind)
  const id = newPublicId('key')
  const made = await insertKey(tx, {
    id,
    server: false,
    ...key,
    hash: hashOfSecret(secret),
    hint: hintOf(secret),
  })
  const after = keyView(made)
  await recordChange(tx, actor, { action: 'key.create', target: id, tenantId: key.tenantId, after })
  return { ...after, key: secret }
}

function faultsOf(input: NewKey, now: Date): Fault[] {
  const faults: Fault[] = []
  const fault = (pointer: string, message: string) => faults.push({ pointer, message })
  if (!KEY_KINDS.includes(input.kind as KeyKind)) fault('/kind', `must be one of ${KEY_KINDS.join(', ')}`)
  if (input.kind === 'admin' && input.tenant)
    fault('/tenant', 'must be left out: an admin key belongs to no tenant')
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
    tenant: key.tenantId === null ? null : publicTenantId(key.tenantId),
    hint: key.hint,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  }
}
