import type pg from 'pg'
import { NO_LIMITS } from '../domain/tenants/key-limits.ts'
import {
  hashOfSecret,
  hintOf,
  type KeyKind,
  newKey,
  newPublicId,
  SCOPES,
  type Scope,
} from '../domain/tenants/keys.ts'
import type { Role } from '../domain/tenants/roles.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, HOUR_MS, parseTimestamp } from '../domain/time.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { type Destination, listDestinationsMadeWith } from '../store/destinations/destinations.ts'
import { listSourcesMadeWith, type Source } from '../store/inbound/sources.ts'
import {
  type ApiKey,
  expireKey,
  insertKey,
  limitKey,
  listAdminKeys,
  listKeys,
  listKeysEnding,
  listKeysMadeWith,
  lockKey,
  revokeKey,
} from '../store/tenants/keys.ts'
import { type Actor, requireAllTenants, requireRole, sees } from './actor.ts'
import { recordChange } from './audit.ts'
import { disableDestination } from './destinations.ts'
import { AdminError, notFound, refuse } from './error.ts'
import { faultsOfKeyLimits, faultsOfNewKey, given, type KeyLimitsInput, type NewKey } from './new-key.ts'
import { DEFAULT_OVERLAP_HOURS, faultsOfOverlap } from './overlap.ts'
import { disableSource, sourceView } from './sources/sources.ts'
import { tenantNamed } from './tenants.ts'
import type { CreatedKey, KeyView, RevokedKey, RotatedKey } from './views/keys.ts'
import type { SourceView } from './views/sources.ts'

export type KeyAdmin = ReturnType<typeof keyAdmin>

export function keyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create(input: NewKey): Promise<CreatedKey> {
      const now = new Date()
      if (!isOwnReadKey(input, now)) requireRole(actor, 'admin')
      refuse(faultsOfNewKey(input, now))
      if (!input.tenant) requireAllTenants(actor)
      const tenantId = input.tenant ? (await tenantNamed(pool, actor, input.tenant)).id : null
      const scopes = input.kind === 'private' ? ((input.scopes as Scope[]) ?? [...SCOPES]) : []
      const key: KeyFacts = {
        tenantId,
        kind: input.kind as KeyKind,
        scopes: [...new Set(scopes)],
        server: input.server ?? false,
        role: input.kind === 'admin' ? ((input.role as Role) ?? 'admin') : null,
        allowedAddresses: [...new Set(input.allowed_addresses ?? [])],
        limits: { ...NO_LIMITS, ...given(input) },
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
    /** Those of all tenants that whoever uses them should replace now. */
    async expiringSoon(): Promise<KeyView[]> {
      const now = new Date()
      const keys = await listKeysEnding(pool, now, new Date(now.getTime() + EXPIRES_SOON_MS))
      return keys.filter(key => sees(actor, key.tenantId) && expiresSoon(key, now)).map(keyView)
    },
    /** What a tracking key is for; what is left out stays as it is. */
    async update(id: string, input: KeyLimitsInput): Promise<KeyView> {
      requireRole(actor, 'admin')
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !sees(actor, key.tenantId)) throw notFound('key', id)
        refuse(faultsOfKeyLimits(key.kind, input))
        const limits = { ...key.limits, ...given(input) }
        const changed = await limitKey(tx, id, limits)
        const change = { target: id, tenantId: key.tenantId, before: key.limits, after: limits }
        await recordChange(tx, actor, { action: 'key.update', ...change })
        return keyView(changed!)
      })
    },
    /** The key stays good for the overlap, and not longer than it was going to; the new one is like it. */
    async rotate(id: string, { overlapHours = DEFAULT_OVERLAP_HOURS } = {}): Promise<RotatedKey> {
      requireRole(actor, 'admin')
      refuse(faultsOfOverlap(overlapHours))
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !sees(actor, key.tenantId)) throw notFound('key', id)
        return replaceKey(tx, actor, key, overlapHours)
      })
    },
    /**
     * Tells what was made with the key and is still good, also by keys that it made; `withMade` ends that too: keys are
     * revoked, sources and destinations disabled.
     */
    async revoke(id: string, { withMade = false } = {}): Promise<RevokedKey> {
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !sees(actor, key.tenantId)) throw notFound('key', id)
        if (key.createdBy !== actor.name) requireRole(actor, 'admin')
        const made = await madeWith(tx, actor, id)
        const revoked = await endKey(tx, actor, key)
        const destinations = made.destinations.map(({ id, tenantId, name }) => ({
          ...{ id, tenant: publicTenantId(tenantId), name, enabled: !withMade },
        }))
        if (!withMade) {
          const { keys, sources } = made
          return { ...revoked, made: madeView(keys.map(keyView), sources.map(sourceView), destinations) }
        }
        const keys: KeyView[] = []
        for (const other of made.keys) keys.push(await endKey(tx, actor, other))
        const sources = await Promise.all(made.sources.map(source => disableSource(tx, actor, source.id)))
        for (const { id } of destinations) await disableDestination(tx, actor, id, null)
        return {
          ...revoked,
          made: madeView(
            keys,
            sources.filter(source => source !== null),
            destinations,
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

async function madeWith(
  tx: Db,
  actor: Actor,
  id: string,
): Promise<{ keys: ApiKey[]; sources: Source[]; destinations: Destination[] }> {
  const keys = (await listKeysMadeWith(tx, id, new Date())).filter(key => sees(actor, key.tenantId))
  const makers = [id, ...keys.map(key => key.id)]
  const isSeen = ({ tenantId }: { tenantId: number }) => sees(actor, tenantId)
  return {
    keys,
    sources: (await listSourcesMadeWith(tx, makers)).filter(isSeen),
    destinations: (await listDestinationsMadeWith(tx, makers)).filter(isSeen),
  }
}

type Made = RevokedKey['made']

function madeView(keys: KeyView[], sources: SourceView[], destinations: Made['destinations']): Made {
  const shown = sources.map(({ id, tenant, name, enabled }) => ({ id, tenant, name, enabled }))
  return { keys, sources: shown, destinations }
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

async function replaceKey(tx: Db, actor: Actor, key: ApiKey, overlapHours: number): Promise<RotatedKey> {
  const now = new Date()
  if (hasEnded(key, now))
    throw new AdminError(
      'conflict',
      'key_not_active',
      'This key is revoked or has expired: create a new one.',
    )
  const lifetimeMs = key.expiresAt === null ? null : key.expiresAt.getTime() - key.createdAt.getTime()
  const expiresAt = lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs)
  const { made, secret } = await storeKey(tx, actor, { ...key, expiresAt })
  const overlapEnd = new Date(now.getTime() + overlapHours * HOUR_MS)
  const end = key.expiresAt && key.expiresAt < overlapEnd ? key.expiresAt : overlapEnd
  await expireKey(tx, key.id, end)
  await recordChange(tx, actor, {
    action: 'key.rotate',
    target: key.id,
    tenantId: key.tenantId,
    before: { expires_at: key.expiresAt?.toISOString() ?? null, replaced_by: null },
    after: { expires_at: end.toISOString(), replaced_by: made.id },
  })
  return { ...keyView(made), key: secret, previous: { id: key.id, expires_at: end.toISOString() } }
}

/** What a key is, apart from the key itself. */
type KeyFacts = Pick<
  ApiKey,
  'tenantId' | 'kind' | 'scopes' | 'server' | 'role' | 'allowedAddresses' | 'limits' | 'expiresAt'
>

export async function makeKey(tx: Db, actor: Actor, key: KeyFacts): Promise<CreatedKey> {
  const { made, secret } = await storeKey(tx, actor, key)
  const after = keyView(made)
  await recordChange(tx, actor, { action: 'key.create', target: made.id, tenantId: key.tenantId, after })
  return { ...after, key: secret }
}

async function storeKey(tx: Db, actor: Actor, key: KeyFacts): Promise<{ made: ApiKey; secret: string }> {
  const secret = newKey(key.kind)
  const made = await insertKey(tx, {
    ...key,
    id: newPublicId('key'),
    hash: hashOfSecret(secret),
    hint: hintOf(secret),
    createdBy: actor.name,
  })
  return { made, secret }
}

function hasEnded({ revokedAt, expiresAt }: ApiKey, now: Date): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= now)
}

// A key that was made for less lives shortly by intention.
const EXPIRES_SOON_MS = 14 * DAY_MS

/** Whoever uses it should replace it now. */
function expiresSoon(key: ApiKey, now: Date): boolean {
  if (key.expiresAt === null || hasEnded(key, now)) return false
  const end = key.expiresAt.getTime()
  return end - now.getTime() <= EXPIRES_SOON_MS && end - key.createdAt.getTime() > EXPIRES_SOON_MS
}

function keyView(key: ApiKey): KeyView {
  return {
    id: key.id,
    kind: key.kind,
    scopes: key.scopes,
    server: key.server,
    role: key.role,
    allowed_addresses: key.allowedAddresses,
    ...key.limits,
    tenant: key.tenantId === null ? null : publicTenantId(key.tenantId),
    hint: key.hint,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    expires_soon: expiresSoon(key, new Date()),
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  }
}
