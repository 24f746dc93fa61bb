import type { KeyKind, Scope } from '../../domain/tenants/keys.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export type ApiKey = {
  id: string
  tenantId: number | null
  kind: KeyKind
  hint: string
  scopes: Scope[]
  /** A tracking key that only servers have: it may say who is who. */
  server: boolean
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  lastUsedAt: Date | null
}

const COLUMNS = `id, tenant_id as "tenantId", kind, hint, scopes, server, created_at as "createdAt", expires_at as "expiresAt",
  revoked_at as "revokedAt", last_used_at as "lastUsedAt"`

export async function insertKey(
  db: Db,
  key: {
    id: string
    tenantId: number | null
    kind: KeyKind
    hash: Buffer
    hint: string
    scopes: Scope[]
    server: boolean
    expiresAt: Date | null
  },
): Promise<ApiKey> {
  const { rows } = await db.query<ApiKey>(
    `insert into api_keys (id, tenant_id, kind, hash, hint, scopes, server, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8) returning ${COLUMNS}`,
    [key.id, key.tenantId, key.kind, key.hash, key.hint, key.scopes, key.server, key.expiresAt],
  )
  return rows[0]!
}

export async function findKeyByHash(db: Db, hash: Buffer): Promise<ApiKey | null> {
  const { rows } = await queryPrepared<ApiKey>(db, `select ${COLUMNS} from api_keys where hash = $1`, [hash])
  return rows[0] ?? null
}

/** Keys of a tenant; null lists the admin keys. */
export async function listKeys(db: Db, tenantId: number | null): Promise<ApiKey[]> {
  const { rows } = await db.query<ApiKey>(
    `select ${COLUMNS} from api_keys where tenant_id is not distinct from $1 order by created_at, id`,
    [tenantId],
  )
  return rows
}

/** Nobody else changes the key until the caller's transaction ends. */
export async function lockKey(db: Db, id: string): Promise<ApiKey | null> {
  const { rows } = await db.query<ApiKey>(`select ${COLUMNS} from api_keys where id = $1 for update`, [id])
  return rows[0] ?? null
}

/** Returns null where there is no such key; revoking twice keeps the first time. */
export async function revokeKey(db: Db, id: string): Promise<ApiKey | null> {
  const { rows } = await db.query<ApiKey>(
    `update api_keys set revoked_at = coalesce(revoked_at, now()) where id = $1 returning ${COLUMNS}`,
    [id],
  )
  return rows[0] ?? null
}

export async function touchKeys(db: Db, uses: { id: string; at: Date }[]): Promise<void> {
  await db.query(
    `update api_keys k set last_used_at = u.at from unnest($1::text[], $2::timestamptz[]) as u (id, at)
     where k.id = u.id and (k.last_used_at is null or k.last_used_at < u.at)`,
    [uses.map(use => use.id), uses.map(use => use.at)],
  )
}
