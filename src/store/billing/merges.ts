import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { keyColumns, keyText, type ObjectKey } from './rows.ts'

export type AccountMerge = { account: string; into: string; mergedAt: Date; mergedBy: string }

/** The latest first. */
export async function listMerges(db: Db, tenantId: number): Promise<AccountMerge[]> {
  return queryRows<AccountMerge>(
    db,
    `select account, into_account as into, merged_at as "mergedAt", merged_by as "mergedBy" from billing_account_merges
     where tenant_id = $1 order by merged_at desc, account`,
    [tenantId],
  )
}

/** The caller holds the tenant's profile lock and terms lock, so that no derivation runs meanwhile. */
export async function insertMerge(
  db: Db,
  tenantId: number,
  { account, into, mergedBy }: Omit<AccountMerge, 'mergedAt'>,
): Promise<void> {
  await queryPrepared(
    db,
    'insert into billing_account_merges (tenant_id, account, into_account, merged_by) values ($1, $2, $3, $4)',
    [tenantId, account, into, mergedBy],
  )
}

export async function deleteMerge(db: Db, tenantId: number, account: string): Promise<void> {
  await queryPrepared(db, 'delete from billing_account_merges where tenant_id = $1 and account = $2', [
    tenantId,
    account,
  ])
}

/** The invoices of the people behind these accounts have changed, and with them their rows in customers. */
export async function noteCustomers(
  db: Db,
  tenantId: number,
  { account, into }: Pick<AccountMerge, 'account' | 'into'>,
): Promise<void> {
  await queryPrepared(
    db,
    'insert into customer_changes (tenant_id, account) select $1, account from unnest($2::text[]) as k (account)',
    [tenantId, [account, into]],
  )
}

/** Of these accounts, the merged ones with their targets, by `keyText`. */
export async function mergeTargets(db: Db, accounts: ObjectKey[]): Promise<Map<string, string>> {
  if (accounts.length === 0) return new Map()
  const { rows } = await queryPrepared<ObjectKey & { into: string }>(
    db,
    `select m.tenant_id as "tenantId", m.account as id, m.into_account as into
     from unnest($1::int[], $2::text[]) as k (tenant_id, account) cross join lateral (
       select * from billing_account_merges where tenant_id = k.tenant_id and account = k.account offset 0) m`,
    keyColumns(accounts),
  )
  return new Map(rows.map(row => [keyText(row), row.into]))
}

/** These customers of invoices, each with the account that reports show it as. */
export async function accountsOfCustomers(
  db: Db,
  tenantId: number,
  customers: (string | null)[],
): Promise<(customer: string) => string> {
  const ids = [...new Set(customers)].filter(id => id !== null)
  const targets = await mergeTargets(
    db,
    ids.map(id => ({ tenantId, id })),
  )
  return customer => targets.get(keyText({ tenantId, id: customer })) ?? customer
}

/** Replaces customers of invoices that are merged into other accounts. */
export async function withAccounts<Row extends { customer: string | null }>(
  db: Db,
  tenantId: number,
  rows: Row[],
): Promise<Row[]> {
  const customers = rows.map(({ customer }) => customer)
  const account = await accountsOfCustomers(db, tenantId, customers)
  return rows.map(row => (row.customer === null ? row : { ...row, customer: account(row.customer) }))
}

/** By account, the customers whose invoices belong to it: itself, and the accounts that are merged into it. */
export async function customersOfAccounts(
  db: Db,
  tenantId: number,
  accounts: string[],
): Promise<Map<string, string[]>> {
  const { rows } = await queryPrepared<{ account: string; into: string }>(
    db,
    `select account, into_account as into from billing_account_merges where tenant_id = $1 and into_account = any($2)
     order by account`,
    [tenantId, accounts],
  )
  const merged = Map.groupBy(rows, ({ into }) => into)
  return new Map(accounts.map(own => [own, [own, ...(merged.get(own) ?? []).map(({ account }) => account)]]))
}

export type KnownAccount = { account: string; isTest: boolean }

/** Of these names, the accounts of a subscription or an invoice. `isTest`: all of its subscriptions are test data. */
export async function findKnownAccounts(db: Db, tenantId: number, names: string[]): Promise<KnownAccount[]> {
  return queryRows<KnownAccount>(
    db,
    `select n.name as account, coalesce(s.is_test, false) as "isTest"
     from unnest($2::text[]) with ordinality as n (name, place)
     left join billing_account_merges m on m.tenant_id = $1 and m.account = n.name
     cross join lateral (
       select count(*) as count, bool_and(status = 'test_mode') as is_test from billing_segments
       where tenant_id = $1 and account = coalesce(m.into_account, n.name)
         and (m.account is null or ${OWN_ACCOUNT} = n.name) offset 0) s
     where s.count > 0 or exists (select from billing_invoices where tenant_id = $1 and customer = n.name)
     order by n.place`,
    [tenantId, names],
  )
}

/** The account of a segment without merges, as `ownAccount` computes it. */
export const OWN_ACCOUNT = `coalesce(body ->> 'customer', body ->> 'customerEmail', subscription_id)`

/** Subscriptions that belong or belonged to an account. */
export async function subscriptionsToMerge(db: Db, tenantId: number, account: string): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `select distinct tenant_id as "tenantId", subscription_id as id from billing_segments
     where tenant_id = $1 and account = $2 order by id`,
    [tenantId, account],
  )
}
