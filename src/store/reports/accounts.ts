import type { Segment } from '../../domain/billing/timeline.ts'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { nearerEnd, type Slice } from '../../domain/slices.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { merged } from './merged.ts'

/** Accounts with a subscription in the currency, the largest MRR first. `count`: how many there are. */
export async function accountSlice(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
  slice: Slice,
  count: number,
): Promise<string[]> {
  const { offset, limit, backwards } = nearerEnd(slice, count)
  if (limit === 0) return []
  const order = backwards ? 'mrr, account desc' : 'mrr desc, account'
  const { rows } = await queryPrepared<{ account: string }>(
    db,
    `select account from ${merged(
      [
        `select account, mrr from billing_account_states
         where tenant_id = $1 and currency = $2 and valid_to = 'infinity' and valid_from <= $3`,
        `select account, mrr from billing_account_states
         where tenant_id = $1 and currency = $2 and valid_to < 'infinity' and valid_to > $3 and valid_from <= $3`,
      ],
      order,
      '$4',
      '$5',
    )}`,
    [tenantId, currency, asOf, offset, limit],
  )
  const accounts = rows.map(row => row.account)
  return backwards ? accounts.reverse() : accounts
}

/** The segments of these accounts that hold at `asOf`, in all currencies. */
export async function segmentsOfAccounts(
  db: Db,
  tenantId: number,
  accounts: string[],
  asOf: Date,
): Promise<Segment[]> {
  const { rows } = await queryPrepared<{ body: string }>(
    db,
    `select body from billing_segments
     where tenant_id = $1 and account = any($2) and valid_from <= $3 and valid_to > $3
     order by account, subscription_id`,
    [tenantId, accounts, asOf],
  )
  return rows.map(row => JSON.parse(row.body))
}

export async function segmentsOfSubscriptions(
  db: Db,
  tenantId: number,
  subscriptions: string[],
  asOf: Date,
): Promise<Map<string, Segment>> {
  if (subscriptions.length === 0) return new Map()
  const { rows } = await queryPrepared<{ subscription_id: string; body: string }>(
    db,
    `select subscription_id, body from billing_segments
     where tenant_id = $1 and subscription_id = any($2) and valid_from <= $3 and valid_to > $3`,
    [tenantId, subscriptions, asOf],
  )
  return new Map(rows.map(row => [row.subscription_id, JSON.parse(row.body)]))
}

/** Everyone's segments at `asOf`, but for ended ones, in portions. */
export async function* runningSegments(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
): AsyncGenerator<Segment[]> {
  for (let after = ''; ; ) {
    const { rows } = await queryPrepared<{ subscription_id: string; body: string }>(
      db,
      `select subscription_id, body from billing_segments
       where tenant_id = $1 and subscription_id > $2 and currency = $3 and status <> 'canceled'
         and valid_from <= $4 and valid_to > $4
       order by subscription_id limit 5000`,
      [tenantId, after, currency, asOf],
    )
    if (rows.length === 0) return
    yield rows.map(row => JSON.parse(row.body))
    after = rows.at(-1)!.subscription_id
  }
}

/** Which of these subscriptions and customers have an invoice that something is wrong with. */
export async function withPaymentIssues(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
  of: { subscriptions: string[]; customers: string[] },
): Promise<{ subscriptions: Set<string>; customers: Set<string> }> {
  const { rows } = await queryPrepared<{ subscription_id: string | null; customer: string | null }>(
    db,
    `select subscription_id, customer from billing_invoice_states
     where tenant_id = $1 and currency = $2 and issue_from <= $3 and valid_to > $3 and subscription_id = any($4)
     union
     select subscription_id, customer from billing_invoice_states
     where tenant_id = $1 and currency = $2 and issue_from <= $3 and valid_to > $3 and customer = any($5)`,
    [tenantId, currency, asOf, of.subscriptions, of.customers],
  )
  return {
    subscriptions: new Set(rows.flatMap(row => row.subscription_id ?? [])),
    // an invoice that names a subscription is that one's issue, whoever pays
    customers: new Set(rows.flatMap(row => (row.subscription_id === null ? (row.customer ?? []) : []))),
  }
}

export type AccountFacts = { source: string | null; name: string | null; email: string | null }

/**
 * Where accounts came from, and what invoices and contact records call them: the record with the customer's id, else
 * that of the same profile.
 */
export async function accountFacts(
  db: Db,
  tenantId: number,
  accounts: string[],
): Promise<Map<string, AccountFacts>> {
  const { rows } = await queryPrepared<{
    account: string
    source: string | null
    invoice_name: string | null
    invoice_email: string | null
    contact: string | null
  }>(
    db,
    `select k.account, q.source, n.customer_name as invoice_name, e.customer_email as invoice_email,
       coalesce(r.data, p.data) as contact
     from unnest($2::text[]) as k (account)
     left join billing_accounts a on a.tenant_id = $1 and a.account = k.account
     left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
     left join lateral (
       select customer_name from billing_invoices
       where tenant_id = $1 and customer = k.account and customer_name is not null order by last_at desc limit 1
     ) n on true
     left join lateral (
       select customer_email from billing_invoices
       where tenant_id = $1 and customer = k.account and customer_email is not null order by last_at desc limit 1
     ) e on true
     left join records r on r.tenant_id = $1 and r.entity_type = 'contact' and r.id = k.account and not r.deleted
     left join lateral (
       select r.data from identities i
       join identities c on c.tenant_id = $1 and c.profile = i.profile and c.kind = 'contact'
       join records r on r.tenant_id = $1 and r.entity_type = 'contact' and r.id = c.value and not r.deleted
       where i.tenant_id = $1 and i.node = a.node order by c.node limit 1
     ) p on true`,
    [tenantId, accounts],
  )
  return new Map(
    rows.map(row => {
      const contact = row.contact === null ? null : contactFacts(JSON.parse(row.contact))
      return [
        row.account,
        {
          source: row.source,
          name: row.invoice_name ?? contact?.name ?? null,
          email: row.invoice_email ?? contact?.email ?? null,
        },
      ]
    }),
  )
}

/** What accounts are called: by the newest of their segments, else as `accountFacts` knows them. */
export async function accountNames(
  db: Db,
  tenantId: number,
  accounts: string[],
): Promise<Map<string, string>> {
  if (accounts.length === 0) return new Map()
  const { rows } = await queryPrepared<{ account: string; name: string }>(
    db,
    `select distinct on (account) account, body ->> 'customerName' as name from billing_segments
     where tenant_id = $1 and account = any($2) and body ->> 'customerName' is not null
     order by account, valid_from desc`,
    [tenantId, accounts],
  )
  const names = new Map(rows.map(row => [row.account, row.name]))
  const nameless = accounts.filter(account => !names.has(account))
  if (nameless.length === 0) return names
  for (const [account, { name }] of await accountFacts(db, tenantId, nameless)) {
    if (name !== null) names.set(account, name)
  }
  return names
}
