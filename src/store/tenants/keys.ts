import type { KeyKind, KeyLimits, Role, Scope } from '../../domain/tenants/keys.ts'
import type { Tenant } from '../../domain/tenants/tenants.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export type ApiKey = {
  id: string
  /** Short, for events. */
  number: number
  tenantId: number | null
  kind: KeyKind
  hint: string
  /** What the key is for. */
  name: string | null
  scopes: Scope[]
  /** A tracking key for servers only, which may link identifiers. */
  server: boolean
  /** Only for admin keys. */
  role: Role | null
  /** Networks that may use the key. An empty list allows all. */
  allowedAddresses: string[]
  /** Only for tracking keys. */
  limits: KeyLimits
  createdBy: string | null
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

const COLUMNS = `id, number, tenant_id as "tenantId", kind, hint, name, scopes, server, role,
  allowed_addresses as "allowedAddresses", limits, created_by as "createdBy", created_at as "createdAt", expires_at as "expiresAt",
  revoked_at as "revokedAt", last_used_at as "lastUsedAt"`

type Row = Omit<ApiKey, 'limits'> & { limits: string }

function keyOf(row: Row): ApiKey {
  return { ...row, limits: JSON.parse(row.limits) as KeyLimits }
}

export async function insertKey(
  db: Db,
  key: {
    id: string
    tenantId: number | null
    kind: KeyKind
    hash: Buffer
    hint: string
    name: string | null
    scopes: Scope[]
    server: boolean
    role: Role | null
    allowedAddresses: string[]
    limits: KeyLimits
    createdBy: string
    expiresAt: Date | null
  },
): Promise<ApiKey> {
  const { rows } = await db.query<Row>(
    `insert into api_keys (id, tenant_id, kind, hash, hint, scopes, server, expires_at, role, allowed_addresses, created_by, limits, name)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) returning ${COLUMNS}`,
    [
      key.id,
      key.tenantId,
      key.kind,
      key.hash,
      key.hint,
      key.scopes,
      key.server,
      key.expiresAt,
      key.role,
      key.allowedAddresses,
      key.createdBy,
      JSON.stringify(key.limits),
      key.name,
    ],
  )
  return keyOf(rows[0]!)
}

/** A key with the settings of its tenant for received events. */
export type KeyOfTenant = ApiKey & OfTenant

type OfTenant = Pick<Tenant, 'eventsFloorDays' | 'ipAddresses'>

export async function findKeyByHash(db: Db, hash: Buffer): Promise<KeyOfTenant | null> {
  return (await findKeysByHash(db, [hash]))[0]!
}

/** In the order of the hashes; null for one that no key has. */
export async function findKeysByHash(db: Db, hashes: Buffer[]): Promise<(KeyOfTenant | null)[]> {
  const { rows } = await queryPrepared<Row & OfTenant & { hash: string }>(
    db,
    `select ${COLUMNS}, encode(hash, 'hex') as hash,
       (select events_floor_days from tenants t where t.id = tenant_id) as "eventsFloorDays",
       coalesce((select ip_addresses from tenants t where t.id = tenant_id), 'keep') as "ipAddresses"
     from api_keys where hash = any($1::bytea[])`,
    [hashes],
  )
  const found = new Map(rows.map(({ hash, ...row }) => [hash, keyOf(row) as KeyOfTenant]))
  return hashes.map(hash => found.get(hash.toString('hex')) ?? null)
}

/** All keys of a tenant, including its admin keys. */
export async function listKeys(db: Db, tenantId: number): Promise<ApiKey[]> {
  const { rows } = await db.query<Row>(`select ${COLUMNS} from api_keys where tenant_id = $1 order by created_at, id`, [
    tenantId,
  ])
  return rows.map(keyOf)
}

/** All admin keys, with and without a tenant. */
export async function listAdminKeys(db: Db): Promise<ApiKey[]> {
  const { rows } = await db.query<Row>(`select ${COLUMNS} from api_keys where kind = 'admin' order by created_at, id`)
  return rows.map(keyOf)
}

/** Valid keys that were created with this key, directly or indirectly. */
export async function listKeysMadeWith(db: Db, id: string, now: Date): Promise<ApiKey[]> {
  const { rows } = await db.query<Row>(
    `with recursive made (made_id) as (
       select id from api_keys where created_by = $1
       union select k.id from api_keys k join made on k.created_by = made_id
     )
     select ${COLUMNS} from api_keys join made on id = made_id
     where id <> $1 and revoked_at is null and (expires_at is null or expires_at > $2) order by created_at, id`,
    [id, now],
  )
  return rows.map(keyOf)
}

/** Locks the key until the caller's transaction ends. */
export async function lockKey(db: Db, id: string): Promise<ApiKey | null> {
  const { rows } = await db.query<Row>(`select ${COLUMNS} from api_keys where id = $1 for update`, [id])
  return rows[0] ? keyOf(rows[0]) : null
}

/** Returns null if the key does not exist. Revoking again keeps the first time. */
export async function revokeKey(db: Db, id: string): Promise<ApiKey | null> {
  const { rows } = await db.query<Row>(
    `update api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1 returning ${COLUMNS}`,
    [id],
  )
  return rows[0] ? keyOf(rows[0]) : null
}

/** Returns null if the key does not exist. */
export async function limitKey(db: Db, id: string, limits: KeyLimits): Promise<ApiKey | null> {
  const { rows } = await db.query<Row>(`update api_keys set limits = $2 where id = $1 returning ${COLUMNS}`, [
    id,
    JSON.stringify(limits),
  ])
  return rows[0] ? keyOf(rows[0]) : null
}

export async function expireKey(db: Db, id: string, at: Date): Promise<void> {
  await db.query('update api_keys set expires_at = $2 where id = $1', [id, at])
}

/** Keys that are valid now and expire until `until`. */
export async function listKeysEnding(db: Db, now: Date, until: Date): Promise<ApiKey[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from api_keys where revoked_at is null and expires_at > $1 and expires_at <= $2 order by expires_at, id`,
    [now, until],
  )
  return rows.map(keyOf)
}

export async function touchKeys(db: Db, uses: { id: string; at: Date }[]): Promise<void> {
  await db.query(
    `update api_keys k set last_used_at = u.at from unnest($1::text[], $2::timestamptz[]) as u (id, at)
     where k.id = u.id and (k.last_used_at is null or k.last_used_at < u.at)`,
    [uses.map(use => use.id), uses.map(use => use.at)],
  )
}
