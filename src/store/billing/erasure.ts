import { hash } from 'node:crypto'
import type pg from 'pg'
import { inTransaction } from '../../postgres/database.ts'
import { lockInvoices } from './invoices.ts'
import { lockSubscriptions } from './subscriptions.ts'

export type ErasedPerson = { customers: string[]; emails: string[] }

/**
 * Takes a person's name and e-mail out of the ledger; what was billed stays. An account that was known by its e-mail
 * goes on under a name that says nothing. Returns how many accounts and invoices were changed.
 */
export function anonymiseBilling(pool: pg.Pool, tenantId: number, person: ErasedPerson): Promise<number> {
  return inTransaction(pool, async client => {
    const accounts = await accountsOf(client, tenantId, person)
    const subscriptions = await subscriptionsOf(client, tenantId, accounts)
    const invoices = await invoicesOf(client, tenantId, person, subscriptions)
    const keys = (ids: string[]) => ids.map(id => ({ tenantId, id }))
    if (subscriptions.length > 0) await lockSubscriptions(client, keys(subscriptions), [])
    if (invoices.length > 0) await lockInvoices(client, keys(invoices))
    await eraseNames(client, tenantId, subscriptions, invoices)
    const emails = new Set(person.emails)
    for (const account of accounts) {
      if (emails.has(account.toLowerCase())) await rename(client, tenantId, account)
    }
    await client.query('update billing_accounts set node = null where tenant_id = $1 and account = any($2)', [
      tenantId,
      accounts,
    ])
    return accounts.length + invoices.length
  })
}

async function accountsOf(client: pg.PoolClient, tenantId: number, person: ErasedPerson): Promise<string[]> {
  const { rows } = await client.query<{ account: string }>(
    `select account from billing_accounts
     where tenant_id = $1 and (account = any($2) or lower(account) = any($3)) order by account`,
    [tenantId, person.customers, person.emails],
  )
  return rows.map(row => row.account)
}

async function subscriptionsOf(
  client: pg.PoolClient,
  tenantId: number,
  accounts: string[],
): Promise<string[]> {
  const { rows } = await client.query<{ subscription_id: string }>(
    'select distinct subscription_id from billing_segments where tenant_id = $1 and account = any($2)',
    [tenantId, accounts],
  )
  return rows.map(row => row.subscription_id)
}

async function invoicesOf(
  client: pg.PoolClient,
  tenantId: number,
  person: ErasedPerson,
  subscriptions: string[],
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select id from billing_invoices where tenant_id = $1
       and (customer = any($2) or lower(customer_email) = any($3) or subscription_id = any($4))`,
    [tenantId, person.customers, person.emails, subscriptions],
  )
  return rows.map(row => row.id)
}

const NAMELESS = `(body::jsonb || '{"customerName": null, "customerEmail": null}')::json`

async function eraseNames(
  client: pg.PoolClient,
  tenantId: number,
  subscriptions: string[],
  invoices: string[],
): Promise<void> {
  // The hashes stay: a late repeat of what was erased adds nothing.
  await client.query(
    `update billing_versions set body = ${NAMELESS}
     where tenant_id = $1 and (kind = 'subscription' and object_id = any($2) or kind = 'invoice' and object_id = any($3))`,
    [tenantId, subscriptions, invoices],
  )
  await client.query(
    `update billing_segments set body = ${NAMELESS} where tenant_id = $1 and subscription_id = any($2)`,
    [tenantId, subscriptions],
  )
  await client.query(
    `update billing_invoice_states set body = ${NAMELESS} where tenant_id = $1 and invoice_id = any($2)`,
    [tenantId, invoices],
  )
  await client.query(
    `update billing_invoices set customer_name = null, customer_email = null where tenant_id = $1 and id = any($2)`,
    [tenantId, invoices],
  )
}

/** In all that was said as well: whatever is derived anew comes to the same account. */
async function rename(client: pg.PoolClient, tenantId: number, account: string): Promise<void> {
  const name = `erased-${hash('sha256', `${tenantId} ${account}`, 'hex').slice(0, 16)}`
  const values = [tenantId, account, name]
  await client.query(
    `update billing_versions v set body = (v.body::jsonb || jsonb_build_object('customer', $3::text))::json
     from billing_segments s
     where s.tenant_id = $1 and s.account = $2 and v.tenant_id = $1 and v.kind = 'subscription'
       and v.object_id = s.subscription_id`,
    values,
  )
  await client.query(
    `update billing_segments
     set account = $3, body = (body::jsonb || jsonb_build_object('account', $3::text, 'customer', $3::text))::json
     where tenant_id = $1 and account = $2`,
    values,
  )
  for (const table of ['billing_accounts', 'billing_account_states', 'billing_movements']) {
    await client.query(`update ${table} set account = $3 where tenant_id = $1 and account = $2`, values)
  }
}
