import type { Db } from '../../postgres/database.ts'

/** The number of tenants and of records that are not deleted. */
export async function countTenantsAndRecords(db: Db): Promise<{ tenants: number; records: number }> {
  const { rows } = await db.query<{ tenants: number; records: number }>(
    `select (select count(*) from tenants) as tenants, (select count(*) from records where not deleted) as records`,
  )
  return rows[0]!
}
