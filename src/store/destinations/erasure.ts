import { type Db, queryLong } from '../../postgres/database.ts'

/** What the outbox holds of people. Whatever is gone from it is not sent, also where it waits to be. */

/** Messages about these events, and what receivers answered to them. */
export async function deleteEventMessages(db: Db, tenantId: number, eventIds: string[]): Promise<void> {
  const { rowCount } = await db.query('delete from outbox where tenant_id = $1 and id = any($2::uuid[])', [
    tenantId,
    eventIds,
  ])
  if (rowCount === 0) return
  await queryLong(
    db,
    'update delivery_attempts set response = null where tenant_id = $1 and id = any($2::uuid[]) and response is not null',
    [tenantId, eventIds],
  )
}

/** Messages about records, named like contact/ID. */
export async function deleteRecordMessages(db: Db, tenantId: number, objects: string[]): Promise<void> {
  if (objects.length === 0) return
  await queryLong(db, `delete from outbox where tenant_id = $1 and what = 'records' and object = any($2)`, [
    tenantId,
    objects,
  ])
}

/** What makes a sale nobody's, as it is told and archived. */
export const NAMELESS_SALE = `{"visitor": null, "profile_id": null, "contact_id": null, "contact_name": null, "contact_email": null,
  "company_name": null}`

/** Sales are told all the same, as nobody's. */
export async function anonymiseSaleMessages(db: Db, tenantId: number, saleKeys: string[]): Promise<void> {
  await queryLong(
    db,
    `update outbox set data = (data::jsonb || '${NAMELESS_SALE}')::text
     where tenant_id = $1 and what = 'conversions' and object = any(array(
       select id::text from conversions where tenant_id = $1 and sale_key = any($2)))`,
    [tenantId, saleKeys],
  )
}

/** So are the movements of accounts; what was known by an e-mail is not. */
export async function anonymiseMovementMessages(
  db: Db,
  tenantId: number,
  { accounts, emails }: { accounts: string[]; emails: string[] },
): Promise<void> {
  if (accounts.length === 0) return
  await queryLong(
    db,
    `delete from outbox where tenant_id = $1 and what = 'movements' and object = any($2) and lower(object) = any($3)`,
    [tenantId, accounts, emails],
  )
  await queryLong(
    db,
    `update outbox set data = (data::jsonb || '{"customer_name": null}')::text
     where tenant_id = $1 and what = 'movements' and object = any($2)`,
    [tenantId, accounts],
  )
}
