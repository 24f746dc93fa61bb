import type { Db } from '../../postgres/database.ts'
import { OWN_ACCOUNT } from './merges.ts'

export type ErasedPerson = { customers: string[]; emails: string[] }

/** Accounts with one of these customer ids or e-mail addresses (in lower case). */
export async function listAccounts(db: Db, tenantId: number, person: ErasedPerson): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select account from billing_accounts
     where tenant_id = $1 and (account = any($2) or lower(account) = any($3)) order by account`,
    [tenantId, person.customers, person.emails],
  )
  return rows.map(row => row.account)
}

/** Subscriptions that belong or belonged to these accounts, without those of accounts that are merged into them. */
export async function listSubscriptions(db: Db, tenantId: number, accounts: string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select distinct subscription_id as id from billing_segments where tenant_id = $1 and (
       account = any($2) and not account = any(array(select into_account from billing_account_merges where tenant_id = $1))
       or account = any($3) and ${OWN_ACCOUNT} = any($2))`,
    [tenantId, accounts, await listMergeTargets(db, tenantId, accounts)],
  )
  return rows.map(row => row.id)
}

/** The accounts that these are merged into, and those of them that others are merged into. */
export async function listMergeTargets(db: Db, tenantId: number, accounts: string[]): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select distinct into_account as account from billing_account_merges
     where tenant_id = $1 and (account = any($2) or into_account = any($2)) order by 1`,
    [tenantId, accounts],
  )
  return rows.map(row => row.account)
}

/** Invoices of these subscriptions, and those that contain an identifier of the person. */
export async function listInvoices(
  db: Db,
  tenantId: number,
  person: ErasedPerson,
  subscriptions: string[],
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from billing_invoices where tenant_id = $1
       and (customer = any($2) or lower(customer_email) = any($3) or subscription_id = any($4))`,
    [tenantId, person.customers, person.emails, subscriptions],
  )
  return rows.map(row => row.id)
}

const NAMELESS = `(body::jsonb - 'metadata' #- '{before,metadata}' || '{"customerName": null, "customerEmail": null}')::json`

/** Removes names, e-mail addresses and metadata from all rows of these subscriptions and invoices. */
export async function eraseNames(
  db: Db,
  tenantId: number,
  { customers, subscriptions, invoices }: { customers: string[]; subscriptions: string[]; invoices: string[] },
): Promise<void> {
  // The hashes stay, so that a late repeat of an erased version is not added again.
  await db.query(
    `update billing_versions set body = ${NAMELESS}
     where tenant_id = $1 and (kind = 'subscription' and object_id = any($2) or kind = 'invoice' and object_id = any($3))`,
    [tenantId, subscriptions, invoices],
  )
  await db.query(
    `delete from billing_warnings w where tenant_id = $1
       and (kind = 'subscription' and object_id = any($2) or kind = 'invoice' and object_id = any($3)
         or kind = 'refund' and exists (
           select from billing_versions v
           where v.tenant_id = w.tenant_id and v.kind in ('refund', 'payment') and v.object_id = w.object_id
             and (v.body->>'invoiceId' = any($3) or v.body->>'customer' = any($4))))`,
    [tenantId, subscriptions, invoices, customers],
  )
  // the next derivation starts from the beginning
  await db.query('update billing_subscriptions set checkpoint = null where tenant_id = $1 and id = any($2)', [
    tenantId,
    subscriptions,
  ])
  await db.query(`update billing_segments set body = ${NAMELESS} where tenant_id = $1 and subscription_id = any($2)`, [
    tenantId,
    subscriptions,
  ])
  await db.query(`update billing_invoice_states set body = ${NAMELESS} where tenant_id = $1 and invoice_id = any($2)`, [
    tenantId,
    invoices,
  ])
  await db.query(
    `update billing_invoices set customer_name = null, customer_email = null where tenant_id = $1 and id = any($2)`,
    [tenantId, invoices],
  )
}

/** Removes names and e-mail addresses from the terms of these customers. */
export async function eraseCustomers(db: Db, tenantId: number, { customers, emails }: ErasedPerson): Promise<void> {
  await db.query(
    `update billing_terms set versions = (
       select json_agg(t.term - 'name' - 'email' order by t.n)
       from jsonb_array_elements(versions::jsonb) with ordinality as t (term, n))
     where tenant_id = $1 and kind = 'customer' and (id = any($2) or exists (
       select from jsonb_array_elements(versions::jsonb) as t (term) where lower(t.term->>'email') = any($3)))`,
    [tenantId, customers, emails],
  )
}

/**
 * Also in stored versions, so that a new derivation finds the same account. Figures and sums do not change. `subscriptions`: its
 * own, without those of accounts that are merged into it.
 */
export async function renameAccount(
  db: Db,
  tenantId: number,
  { account, newName, subscriptions }: { account: string; newName: string; subscriptions: string[] },
): Promise<void> {
  const values = [tenantId, account, newName]
  await db.query(
    `update billing_versions set body = (body::jsonb || jsonb_build_object('customer', $2::text))::json
     where tenant_id = $1 and kind = 'subscription' and object_id = any($3)`,
    [tenantId, newName, subscriptions],
  )
  await db.query(
    `update billing_segments set account = case when account = $2 then $3 else account end,
       body = (body::jsonb || case when account = $2 then jsonb_build_object('account', $3::text) else '{}' end
         || case when subscription_id = any($4) then jsonb_build_object('customer', $3::text) else '{}' end)::json
     where tenant_id = $1 and (account = $2 or subscription_id = any($4) and account = (
       select into_account from billing_account_merges where tenant_id = $1 and account = $2))`,
    [...values, subscriptions],
  )
  // invoices and refunds
  const renamed = `(body::jsonb || jsonb_build_object('customer', $3::text))::json`
  await db.query(
    `update billing_versions set body = ${renamed} where tenant_id = $1 and (
       kind = 'invoice' and object_id in (select id from billing_invoices where tenant_id = $1 and customer = $2)
       or kind = 'refund' and object_id in (select id from billing_refunds where tenant_id = $1 and customer = $2))`,
    values,
  )
  await db.query(
    `update billing_invoice_states set customer = $3, body = ${renamed} where tenant_id = $1
       and invoice_id in (select id from billing_invoices where tenant_id = $1 and customer = $2)`,
    values,
  )
  await db.query('update billing_invoices set customer = $3 where tenant_id = $1 and customer = $2', values)
  await db.query(
    `update billing_refunds set customer = $3, body = ${renamed} where tenant_id = $1 and customer = $2`,
    values,
  )
  // discounts of the customer, and the customer
  await db.query(
    `update billing_terms set customer = case when customer = $2 then $3 else customer end, id = case when id = $2 then $3 else id end,
       versions = (
         select json_agg(t.term || case when t.term->>'customer' = $2 then jsonb_build_object('customer', $3::text) else '{}' end
           || case when t.term->>'id' = $2 then jsonb_build_object('id', $3::text) else '{}' end order by t.n)
         from jsonb_array_elements(versions::jsonb) with ordinality as t (term, n))
     where tenant_id = $1 and (customer = $2 or kind = 'customer' and id = $2)`,
    values,
  )
  await db.query('update billing_accounts set account = $3 where tenant_id = $1 and account = $2', values)
  await db.query('update billing_account_states set account = $3 where tenant_id = $1 and account = $2', values)
  await db.query('update billing_movements set account = $3 where tenant_id = $1 and account = $2', values)
  await db.query(
    `update billing_account_merges set account = case when account = $2 then $3 else account end,
       into_account = case when into_account = $2 then $3 else into_account end
     where tenant_id = $1 and (account = $2 or into_account = $2)`,
    values,
  )
}

/** Unlinks these accounts from their people. The acquisition source stays. */
export async function forgetPeople(db: Db, tenantId: number, accounts: string[]): Promise<void> {
  await db.query('update billing_accounts set node = null where tenant_id = $1 and account = any($2)', [
    tenantId,
    accounts,
  ])
}
