import { parseTenantId, type Tenant } from '../../domain/tenants/tenants.ts'
import type { Db } from '../../postgres/database.ts'

const COLUMNS = `id, name, conversion_types as "conversionTypes", events_floor_days as "eventsFloorDays", ip_addresses as "ipAddresses",
  created_at as "createdAt"`

/** Returns null if the name is in use. */
export async function createTenant(db: Db, name: string): Promise<Tenant | null> {
  const { rows } = await db.query<Tenant>(
    `insert into tenants (name) values ($1) on conflict (name) do nothing returning ${COLUMNS}`,
    [name],
  )
  return rows[0] ?? null
}

export async function listTenants(db: Db): Promise<Tenant[]> {
  const { rows } = await db.query<Tenant>(`select ${COLUMNS} from tenants order by id`)
  return rows
}

/** By id (`ten_7`) or name. An id takes precedence. */
export async function findTenant(db: Db, idOrName: string): Promise<Tenant | null> {
  const { rows } = await db.query<Tenant>(
    `select ${COLUMNS} from tenants where id = $1 or name = $2 order by (id = $1) desc nulls last limit 1`,
    [parseTenantId(idOrName), idOrName],
  )
  return rows[0] ?? null
}

export async function findTenantById(db: Db, id: number): Promise<Tenant | null> {
  const { rows } = await db.query<Tenant>(`select ${COLUMNS} from tenants where id = $1`, [id])
  return rows[0] ?? null
}

/** Locks the tenant until the caller's transaction ends. */
export async function lockTenant(db: Db, id: number): Promise<Tenant | null> {
  const { rows } = await db.query<Tenant>(`select ${COLUMNS} from tenants where id = $1 for update`, [id])
  return rows[0] ?? null
}

export async function updateTenant(
  db: Db,
  { id, conversionTypes, eventsFloorDays, ipAddresses }: Omit<Tenant, 'name' | 'createdAt'>,
): Promise<void> {
  await db.query('update tenants set conversion_types = $2, events_floor_days = $3, ip_addresses = $4 where id = $1', [
    id,
    conversionTypes,
    eventsFloorDays,
    ipAddresses,
  ])
}

/** A setting that the installation stores in its database. */
export async function readSetting(db: Db, name: string): Promise<string | null> {
  const { rows } = await db.query<{ value: string }>('select value from settings where name = $1', [name])
  return rows[0]?.value ?? null
}

export async function writeSetting(db: Db, name: string, value: string): Promise<void> {
  await db.query(
    'insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, value],
  )
}

/** The latest migration applied to this database. Null if there is none. */
export async function newestMigration(db: Db): Promise<string | null> {
  const { rows } = await db.query<{ name: string | null }>('select max(name) as name from schema_migrations')
  return rows[0]?.name ?? null
}

/** Whether records, events or conversions of the tenant are stored. */
export async function hasData(db: Db, tenantId: number): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    `select exists (select from records where tenant_id = $1) or exists (select from events where tenant_id = $1)
       or exists (select from conversions where tenant_id = $1) as has`,
    [tenantId],
  )
  return rows[0]!.has
}

/** The number of tenants and of records that are not deleted. */
export async function countTenantsAndRecords(db: Db): Promise<{ tenants: number; records: number }> {
  const { rows } = await db.query<{ tenants: number; records: number }>(
    `select (select count(*) from tenants) as tenants, (select count(*) from records where not deleted) as records`,
  )
  return rows[0]!
}
