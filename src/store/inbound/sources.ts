import type { SourceType } from '../../domain/events/types.ts'
import type { PresetName } from '../../domain/inbound/presets.ts'
import { DEFAULT_SOURCE_CONFIG, type SourceConfig } from '../../domain/inbound/source-config.ts'
import type { IpMode } from '../../domain/tenants/ip-addresses.ts'
import type { Db } from '../../postgres/database.ts'

/** `hash`: SHA-256 of the token, in hex. */
export type SourceToken = { hash: string; hint: string; expires_at: string | null }
export type SealedSecret = { sealed: string; hint: string; expires_at: string | null }

export type Source = {
  id: string
  tenantId: number
  name: string
  type: SourceType
  preset: PresetName | null
  enabled: boolean
  tokens: SourceToken[]
  signingSecrets: SealedSecret[]
  config: SourceConfig
  /** The setting of its tenant. */
  ipAddresses: IpMode
  /** Until then its requests are stored for `kontor listen`. */
  listenedUntil: Date | null
  createdBy: string | null
  createdAt: Date
  updatedAt: Date
}

type Row = Omit<Source, 'tokens' | 'signingSecrets' | 'config'> & {
  tokens: string
  signingSecrets: string
  config: string
}

const COLUMNS = `id, tenant_id as "tenantId", name, type, preset, enabled, tokens, signing_secrets as "signingSecrets", config,
  (select t.ip_addresses from tenants t where t.id = tenant_id) as "ipAddresses",
  listened_until as "listenedUntil", created_by as "createdBy", created_at as "createdAt", updated_at as "updatedAt"`

export type NewSource = Pick<
  Source,
  'id' | 'tenantId' | 'name' | 'type' | 'preset' | 'enabled' | 'tokens' | 'signingSecrets' | 'config' | 'createdBy'
>

export async function insertSource(db: Db, source: NewSource): Promise<Source> {
  const { rows } = await db.query<Row>(
    `insert into sources (id, tenant_id, name, type, preset, enabled, tokens, signing_secrets, config, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning ${COLUMNS}`,
    [
      source.id,
      source.tenantId,
      source.name,
      source.type,
      source.preset,
      source.enabled,
      JSON.stringify(source.tokens),
      JSON.stringify(source.signingSecrets),
      JSON.stringify(source.config),
      source.createdBy,
    ],
  )
  return toSource(rows[0]!)
}

/** The encrypted signing secrets of all sources and destinations. */
export async function sealedSecrets(db: Db): Promise<{ ownerId: string; sealed: string }[]> {
  const { rows } = await db.query<{ ownerId: string; sealed: string }>(
    `select s.id as "ownerId", secret ->> 'sealed' as sealed
     from sources s, jsonb_array_elements(s.signing_secrets) secret where s.deleted_at is null
     union all
     select d.id, secret ->> 'sealed' from destinations d, jsonb_array_elements(d.secrets) secret where d.deleted_at is null
     order by 1`,
  )
  return rows
}

export async function findSource(db: Db, id: string): Promise<Source | null> {
  return (await findSources(db, [id]))[0]!
}

/** In the order of the ids; null for one that no source has. */
export async function findSources(db: Db, ids: string[]): Promise<(Source | null)[]> {
  const { rows } = await db.query<Row>(`select ${COLUMNS} from sources where id = any($1) and deleted_at is null`, [
    ids,
  ])
  const found = new Map(rows.map(row => [row.id, toSource(row)]))
  return ids.map(id => found.get(id) ?? null)
}

/** Locks the source until the caller's transaction ends. */
export async function lockSource(db: Db, id: string): Promise<Source | null> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from sources where id = $1 and deleted_at is null for update`,
    [id],
  )
  return rows[0] ? toSource(rows[0]) : null
}

export async function listSources(db: Db, tenantId: number): Promise<Source[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from sources where tenant_id = $1 and deleted_at is null order by created_at, id`,
    [tenantId],
  )
  return rows.map(toSource)
}

/** Enabled sources that were created with one of these keys. */
export async function listSourcesMadeWith(db: Db, keyIds: string[]): Promise<Source[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from sources where created_by = any($1) and enabled and deleted_at is null order by created_at, id`,
    [keyIds],
  )
  return rows.map(toSource)
}

/** Returns null if the source does not exist. */
export async function updateSource(
  db: Db,
  id: string,
  changes: Pick<Source, 'name' | 'preset' | 'enabled' | 'tokens' | 'signingSecrets' | 'config'>,
): Promise<Source | null> {
  const { rows } = await db.query<Row>(
    `update sources set name = $2, preset = $3, enabled = $4, tokens = $5, signing_secrets = $6, config = $7, updated_at = now()
     where id = $1 and deleted_at is null returning ${COLUMNS}`,
    [
      id,
      changes.name,
      changes.preset,
      changes.enabled,
      JSON.stringify(changes.tokens),
      JSON.stringify(changes.signingSecrets),
      JSON.stringify(changes.config),
    ],
  )
  return rows[0] ? toSource(rows[0]) : null
}

/** Keeps the row, so that accepted events keep their source's name. */
export async function deleteSource(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'update sources set deleted_at = now(), enabled = false where id = $1 and deleted_at is null',
    [id],
  )
  return rowCount === 1
}

/** JSON columns are read as text. */
function toSource(row: Row): Source {
  return {
    ...row,
    tokens: JSON.parse(row.tokens),
    signingSecrets: JSON.parse(row.signingSecrets),
    config: { ...DEFAULT_SOURCE_CONFIG, ...JSON.parse(row.config) },
  }
}
