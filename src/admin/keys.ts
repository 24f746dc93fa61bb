import type pg from 'pg'
import { Nullable, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { isNetwork, MAX_NETWORKS, NETWORKS } from '../domain/tenants/addresses.ts'
import { DEFAULT_OVERLAP_HOURS } from '../domain/tenants/credentials.ts'
import {
  hashOfSecret,
  hintOf,
  KEY_KINDS,
  type KeyKind,
  KeyLimits,
  NO_LIMITS,
  newKey,
  newPublicId,
  ROLES,
  type Role,
  SCOPES,
  type Scope,
  validateLimits,
} from '../domain/tenants/keys.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, HOUR_MS, parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { ValidationError } from '../domain/validation-error.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { type Destination, listDestinationsCreatedWith } from '../store/destinations/destinations.ts'
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
import { type Actor, CreatedBy, canSee, requireAllTenants, requireRole, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { disableDestination } from './destinations.ts'
import { AdminError, notFound, throwIfInvalid } from './error.ts'
import { isPrintable, validateOverlap } from './settings.ts'
import { disableSource, type SourceView, sourceView } from './sources.ts'
export function keyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create(input: NewKey): Promise<CreatedKey> {
      const now = await databaseNow(pool)
      if (!isOwnReadKey(input, now)) requireRole(actor, 'admin')
      throwIfInvalid(validateNewKey(input, now))
      if (!input.tenant) requireAllTenants(actor)
      const tenantId = input.tenant ? (await requireTenant(pool, actor, input.tenant)).id : null
      const scopes = input.kind === 'private' ? ((input.scopes as Scope[]) ?? [...SCOPES]) : []
      const key: KeyProperties = {
        tenantId,
        kind: input.kind as KeyKind,
        name: input.name?.trim() || null,
        scopes: [...new Set(scopes)],
        server: input.server ?? false,
        role: input.kind === 'admin' ? ((input.role as Role) ?? 'admin') : null,
        allowedAddresses: [...new Set(input.allowed_addresses ?? [])],
        limits: { ...NO_LIMITS, ...givenLimits(input) },
        expiresAt: input.expires_at ? parseTimestamp(input.expires_at) : null,
      }
      return inTransaction(pool, tx => createKey(tx, actor, key))
    },
    /** Without a tenant: the admin keys. */
    async list(tenant: string | null): Promise<KeyView[]> {
      const keys =
        tenant === null
          ? await listAdminKeys(pool)
          : await listKeys(pool, (await requireTenant(pool, actor, tenant)).id)
      const now = await databaseNow(pool)
      return keys.filter(({ tenantId }) => canSee(actor, tenantId)).map(key => keyView(key, now))
    },
    /** Active keys of all visible tenants that expire within 14 days. */
    async expiringSoon(): Promise<KeyView[]> {
      const now = await databaseNow(pool)
      const keys = await listKeysEnding(pool, now, new Date(now.getTime() + EXPIRES_SOON_MS))
      return keys.filter(key => canSee(actor, key.tenantId) && expiresSoon(key, now)).map(key => keyView(key, now))
    },
    /** Changes the limits of a tracking key. Absent fields stay unchanged. */
    async update(id: string, input: KeyLimitsInput): Promise<KeyView> {
      requireRole(actor, 'admin')
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !canSee(actor, key.tenantId)) throw notFound('key', id)
        throwIfInvalid(validateKeyLimits(key.kind, input))
        const limits = { ...key.limits, ...givenLimits(input) }
        const changed = await limitKey(tx, id, limits)
        const change = { target: id, tenantId: key.tenantId, before: key.limits, after: limits }
        await recordChange(tx, actor, { action: 'key.update', ...change })
        return keyView(changed!, await databaseNow(tx))
      })
    },
    /** Creates a key with the same properties. The old key expires after the overlap, or earlier if it was due to. */
    async rotate(id: string, { overlapHours = DEFAULT_OVERLAP_HOURS } = {}): Promise<RotatedKey> {
      requireRole(actor, 'admin')
      throwIfInvalid(validateOverlap(overlapHours))
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !canSee(actor, key.tenantId)) throw notFound('key', id)
        return replaceKey(tx, actor, key, overlapHours)
      })
    },
    /**
     * Returns what was created with the key and is still active, including objects created with keys that this key created.
     * `withMade` also revokes those keys and disables those sources and destinations.
     */
    async revoke(id: string, { withMade = false } = {}): Promise<RevokedKey> {
      return inTransaction(pool, async tx => {
        const key = await lockKey(tx, id)
        if (key === null || !canSee(actor, key.tenantId)) throw notFound('key', id)
        if (key.createdBy !== actor.name) requireRole(actor, 'admin')
        const created = await listCreatedWith(tx, actor, id)
        const revoked = await revokeKeyRecorded(tx, actor, key)
        const destinations = created.destinations.map(({ id, tenantId, name }) => ({
          ...{ id, tenant: publicTenantId(tenantId), name, enabled: !withMade },
        }))
        if (!withMade) {
          const { sources } = created
          const now = await databaseNow(tx)
          const keys = created.keys.map(key => keyView(key, now))
          return { ...revoked, made: createdView(keys, sources.map(sourceView), destinations) }
        }
        const keys: KeyView[] = []
        for (const other of created.keys) keys.push(await revokeKeyRecorded(tx, actor, other))
        const sources = await Promise.all(created.sources.map(source => disableSource(tx, actor, source.id)))
        for (const { id } of destinations) await disableDestination(tx, actor, id, null)
        return {
          ...revoked,
          made: createdView(
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

/** Every role may create a read-only private key that expires within a day, to read with a program. */
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

async function listCreatedWith(
  tx: Db,
  actor: Actor,
  id: string,
): Promise<{ keys: ApiKey[]; sources: Source[]; destinations: Destination[] }> {
  const keys = (await listKeysMadeWith(tx, id, await databaseNow(tx))).filter(key => canSee(actor, key.tenantId))
  const makers = [id, ...keys.map(key => key.id)]
  const isSeen = ({ tenantId }: { tenantId: number }) => canSee(actor, tenantId)
  return {
    keys,
    sources: (await listSourcesMadeWith(tx, makers)).filter(isSeen),
    destinations: (await listDestinationsCreatedWith(tx, makers)).filter(isSeen),
  }
}

type CreatedObjects = RevokedKey['made']

function createdView(
  keys: KeyView[],
  sources: SourceView[],
  destinations: CreatedObjects['destinations'],
): CreatedObjects {
  const shown = sources.map(({ id, tenant, name, enabled }) => ({ id, tenant, name, enabled }))
  return { keys, sources: shown, destinations }
}

export async function revokeKeyRecorded(tx: Db, actor: Actor, key: ApiKey): Promise<KeyView> {
  const { id, tenantId } = key
  const revoked = await revokeKey(tx, id)
  if (revoked === null) throw notFound('key', id)
  const view = keyView(revoked, await databaseNow(tx))
  const before = { revoked_at: key.revokedAt?.toISOString() ?? null }
  const after = { revoked_at: view.revoked_at }
  await recordChange(tx, actor, { action: 'key.revoke', target: id, tenantId, before, after })
  return view
}

async function replaceKey(tx: Db, actor: Actor, key: ApiKey, overlapHours: number): Promise<RotatedKey> {
  const now = await databaseNow(tx)
  if (isEnded(key, now))
    throw new AdminError('conflict', 'key_not_active', 'This key is revoked or has expired: create a new one.')
  const lifetimeMs = key.expiresAt === null ? null : key.expiresAt.getTime() - key.createdAt.getTime()
  const expiresAt = lifetimeMs === null ? null : new Date(now.getTime() + lifetimeMs)
  const { created, secret } = await storeKey(tx, actor, { ...key, expiresAt })
  const overlapEnd = new Date(now.getTime() + overlapHours * HOUR_MS)
  const end = key.expiresAt && key.expiresAt < overlapEnd ? key.expiresAt : overlapEnd
  await expireKey(tx, key.id, end)
  await recordChange(tx, actor, {
    action: 'key.rotate',
    target: key.id,
    tenantId: key.tenantId,
    before: { expires_at: key.expiresAt?.toISOString() ?? null, replaced_by: null },
    after: { expires_at: end.toISOString(), replaced_by: created.id },
  })
  return { ...keyView(created, now), key: secret, previous: { id: key.id, expires_at: end.toISOString() } }
}

/** The properties of a key without its secret. */
type KeyProperties = Pick<
  ApiKey,
  'tenantId' | 'kind' | 'name' | 'scopes' | 'server' | 'role' | 'allowedAddresses' | 'limits' | 'expiresAt'
>

export async function createKey(tx: Db, actor: Actor, key: KeyProperties): Promise<CreatedKey> {
  const { created, secret } = await storeKey(tx, actor, key)
  const after = keyView(created, await databaseNow(tx))
  await recordChange(tx, actor, { action: 'key.create', target: created.id, tenantId: key.tenantId, after })
  return { ...after, key: secret }
}

async function storeKey(tx: Db, actor: Actor, key: KeyProperties): Promise<{ created: ApiKey; secret: string }> {
  const secret = newKey(key.kind)
  const created = await insertKey(tx, {
    ...key,
    id: newPublicId('key'),
    hash: hashOfSecret(secret),
    hint: hintOf(secret),
    createdBy: actor.name,
  })
  return { created, secret }
}

function isEnded({ revokedAt, expiresAt }: ApiKey, now: Date): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= now)
}

// A key that was created for less than this is meant to be short-lived: it causes no warning.
const EXPIRES_SOON_MS = 14 * DAY_MS

/** Whether the key should be replaced now. */
function expiresSoon(key: ApiKey, now: Date): boolean {
  if (key.expiresAt === null || isEnded(key, now)) return false
  const end = key.expiresAt.getTime()
  return end - now.getTime() <= EXPIRES_SOON_MS && end - key.createdAt.getTime() > EXPIRES_SOON_MS
}

function keyView(key: ApiKey, now: Date): KeyView {
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
    name: key.name,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    expires_soon: expiresSoon(key, now),
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  }
}

/** The input for a new key, not validated yet. */
type NewKey = {
  /** For an admin key: the only tenant that it can access. */
  tenant?: string | null | undefined
  kind: string
  /** What the key is for. */
  name?: string | null | undefined
  /** Default: all scopes for a private key. Other kinds have none. */
  scopes?: string[] | undefined
  /** For a tracking key that only servers use: it may alias and merge people. */
  server?: boolean | undefined
  /** For an admin key; default: admin. */
  role?: string | undefined
  expires_at?: string | null | undefined
  /** For a private or admin key: the addresses and networks from which it is accepted. Default: all. */
  allowed_addresses?: string[] | undefined
} & KeyLimitsInput

/** Limits of a tracking key. On creation an absent limit means no limit; on update it stays unchanged. */
type KeyLimitsInput = { [Name in keyof KeyLimits]?: KeyLimits[Name] | undefined }

const LIMITS = ['origins', 'event_types', 'rate_limit'] as const

function validateKeyLimits(kind: string, input: KeyLimitsInput): ValidationError[] {
  if (kind === 'tracking') return validateLimits(givenLimits(input))
  const named = LIMITS.filter(name => input[name] !== undefined)
  return named.map(name => ({ pointer: `/${name}`, message: 'is not allowed: only tracking keys have this limit' }))
}

/** The limits that are present in the input. */
function givenLimits(input: KeyLimitsInput): Partial<KeyLimits> {
  return Object.fromEntries(LIMITS.flatMap(name => (input[name] === undefined ? [] : [[name, input[name]]])))
}

const MAX_NAME = 100

/** Returns all validation errors. */
function validateNewKey(input: NewKey, now: Date): ValidationError[] {
  const errors: ValidationError[] = []
  const reject = (pointer: string, message: string) => errors.push({ pointer, message })
  if (!KEY_KINDS.includes(input.kind as KeyKind)) reject('/kind', `must be one of ${KEY_KINDS.join(', ')}`)
  if (input.kind !== 'admin' && !input.tenant) reject('/tenant', 'is required: the id or name of a tenant')
  if (input.scopes && input.kind !== 'private' && KEY_KINDS.includes(input.kind as KeyKind))
    reject('/scopes', `is not allowed: only private keys have scopes`)
  else if (input.scopes?.length === 0) reject('/scopes', 'must contain at least one scope')
  for (const [index, scope] of (input.scopes ?? []).entries())
    if (!SCOPES.includes(scope as Scope))
      reject(`/scopes/${index}`, `${JSON.stringify(scope)} is not a scope; the scopes are ${SCOPES.join(', ')}`)
  if (input.server && input.kind !== 'tracking')
    reject('/server', 'is not allowed: only a tracking key can be a server key')
  if (input.role !== undefined && input.kind !== 'admin') reject('/role', 'is not allowed: only admin keys have a role')
  else if (input.role !== undefined && !ROLES.includes(input.role as Role))
    reject('/role', `must be one of ${ROLES.join(', ')}`)
  if ((input.name ?? '').trim().length > MAX_NAME || !isPrintable(input.name ?? ''))
    reject('/name', `must have at most ${MAX_NAME} printable characters`)
  const networks = input.allowed_addresses ?? []
  if (networks.length > 0 && input.kind === 'tracking')
    reject('/allowed_addresses', 'is not allowed for a tracking key, because browsers use it from any IP address')
  else if (networks.length > MAX_NETWORKS || !networks.every(isNetwork))
    reject('/allowed_addresses', `must be ${NETWORKS}`)
  errors.push(...validateKeyLimits(input.kind, input))
  if (input.expires_at) {
    const at = parseTimestamp(input.expires_at)
    if (at === null) reject('/expires_at', `must be ${TIME_FORMAT}`)
    else if (at <= now) reject('/expires_at', 'must be in the future')
  }
  return errors
}

const KEY_EXAMPLE = {
  id: 'key_4fTzQ9aXw2LmN8pB',
  kind: 'private',
  scopes: ['orders:read', 'orders:write'],
  server: false,
  role: null,
  allowed_addresses: [],
  origins: [],
  event_types: [],
  rate_limit: null,
  tenant: 'ten_1',
  hint: '…x7Qe',
  name: 'warehouse export',
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  expires_at: null,
  expires_soon: false,
  revoked_at: null,
  last_used_at: null,
}
const keyFields = {
  id: Type.String(),
  kind: Type.Enum([...KEY_KINDS]),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  server: Type.Boolean({
    description:
      'A server key: a tracking key whose events create verified links between identifiers and can merge people',
  }),
  role: Nullable(Type.Enum([...ROLES], { description: 'The role of an admin key' })),
  allowed_addresses: Type.Array(Type.String(), {
    description: 'Addresses and networks from which the key is accepted; empty: all',
  }),
  ...KeyLimits.properties,
  tenant: Nullable(Type.String({ description: 'null: an admin key with access to all tenants' })),
  hint: Type.String({ description: 'The last characters of the key' }),
  name: Nullable(Type.String({ description: 'What the key is for' })),
  created_by: CreatedBy,
  created_at: Timestamp,
  expires_at: NullableTimestamp,
  expires_soon: Type.Boolean({ description: 'The key expires within 14 days: replace it' }),
  revoked_at: NullableTimestamp,
  last_used_at: NullableTimestamp,
}

export const KeyView = Type.Object(keyFields, {
  title: 'Key',
  description: 'A key without its value',
  examples: [KEY_EXAMPLE],
})
export type KeyView = Static<typeof KeyView>

/** The only response that contains the key itself. */
export const CreatedKey = Type.Object(
  { ...keyFields, key: Type.String({ description: 'The key itself, shown only once' }) },
  {
    title: 'CreatedKey',
    description: 'A key with its value, which is shown only once',
    examples: [{ ...KEY_EXAMPLE, key: 'private-9f…' }],
  },
)
export type CreatedKey = Static<typeof CreatedKey>

export const RotatedKey = Type.Object(
  {
    ...CreatedKey.properties,
    previous: Type.Object(
      { id: Type.String(), expires_at: Timestamp },
      { description: 'The replaced key and when it expires' },
    ),
  },
  {
    title: 'RotatedKey',
    description: 'The new key, and when the previous one expires',
    examples: [
      {
        ...KEY_EXAMPLE,
        key: 'private-9f…',
        previous: { id: 'key_7dTzQ9aXw2LmN8pA', expires_at: '2026-02-01T09:30:00.000Z' },
      },
    ],
  },
)
export type RotatedKey = Static<typeof RotatedKey>

const CreatedObject = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    name: Type.String(),
    enabled: Type.Boolean(),
  },
  { title: 'CreatedObject', description: 'A source or destination that was created with a key' },
)

/** Includes objects that were created with the key, or with keys that it created, and were active when it was revoked. */
export const RevokedKey = Type.Object(
  {
    ...keyFields,
    made: Type.Object(
      {
        keys: Type.Array(KeyView),
        sources: Type.Array(CreatedObject),
        destinations: Type.Array(CreatedObject),
      },
      { description: 'What was created with the key and was active' },
    ),
  },
  {
    title: 'RevokedKey',
    description: 'A revoked key, and what was created with it',
    examples: [
      { ...KEY_EXAMPLE, revoked_at: '2026-01-31T09:30:00.000Z', made: { keys: [], sources: [], destinations: [] } },
    ],
  },
)
export type RevokedKey = Static<typeof RevokedKey>
