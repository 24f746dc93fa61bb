import type { Statement } from '../../domain/billing/account-timeline.ts'
import type { AccountTraits } from '../../domain/billing/dimensions.ts'
import { normalizeCountry } from '../../domain/billing/fields.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { InvoiceVersion, Refund, SubscriptionVersion } from '../../domain/billing/types.ts'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { nearerEnd, type Slice } from '../../domain/list-slices.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { OWN_ACCOUNT } from '../billing/merges.ts'
import { merged, type Scope } from './scope.ts'

/** Accounts with a subscription in the currency, the largest MRR first. `count`: the total number. */
export async function accountSlice(
  db: Db,
  { tenantId, currency, asOf }: Scope,
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

/** Segments of these accounts that are valid at `asOf`, in all currencies. */
export async function segmentsOfAccounts(db: Db, tenantId: number, accounts: string[], asOf: Date): Promise<Segment[]> {
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
  const { rows } = await queryPrepared<{ id: string; body: string }>(
    db,
    `select subscription_id as id, body from billing_segments
     where tenant_id = $1 and subscription_id = any($2) and valid_from <= $3 and valid_to > $3`,
    [tenantId, subscriptions, asOf],
  )
  return new Map(rows.map(({ id, body }) => [id, JSON.parse(body)]))
}

/** All segments at `asOf` except ended ones, in batches. */
export function runningSegments(db: Db, scope: Scope): AsyncGenerator<Segment[]> {
  return segmentsAt(db, scope, `status <> 'canceled'`)
}

/** All segments with MRR at `asOf`, in batches. */
export function countingSegments(db: Db, scope: Scope): AsyncGenerator<Segment[]> {
  return segmentsAt(db, scope, 'mrr > 0')
}

async function* segmentsAt(db: Db, { tenantId, currency, asOf }: Scope, condition: string): AsyncGenerator<Segment[]> {
  for (let after = ''; ; ) {
    const { rows } = await queryPrepared<{ id: string; body: string }>(
      db,
      `select subscription_id as id, body from billing_segments
       where tenant_id = $1 and subscription_id > $2 and currency = $3 and ${condition}
         and valid_from <= $4 and valid_to > $4
       order by subscription_id limit 5000`,
      [tenantId, after, currency, asOf],
    )
    if (rows.length === 0) return
    yield rows.map(row => JSON.parse(row.body))
    after = rows.at(-1)!.id
  }
}

/** Which of these subscriptions and customers have an invoice with an issue. */
export async function withPaymentIssues(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  of: { subscriptions: string[]; customers: string[] },
): Promise<{ subscriptions: Set<string>; customers: Set<string> }> {
  const { rows } = await queryPrepared<{ subscriptionId: string | null; customer: string | null }>(
    db,
    // the issue of an invoice with a known subscription belongs to the subscription
    `select subscription_id as "subscriptionId", null as customer from billing_invoice_states
     where tenant_id = $1 and currency = $2 and issue_from <= $3 and valid_to > $3 and subscription_id = any($4)
     union
     select null, customer from billing_invoice_states i
     where tenant_id = $1 and currency = $2 and issue_from <= $3 and valid_to > $3 and customer = any($5)
       and not exists (select from billing_segments g where g.tenant_id = $1 and g.subscription_id = i.subscription_id
         and g.valid_from <= $3 and g.valid_to > $3)`,
    [tenantId, currency, asOf, of.subscriptions, of.customers],
  )
  return {
    subscriptions: new Set(rows.flatMap(row => row.subscriptionId ?? [])),
    customers: new Set(rows.flatMap(row => row.customer ?? [])),
  }
}

export type AccountFacts = { source: string | null; name: string | null; email: string | null }

/**
 * The acquisition sources of accounts, and their names and e-mail addresses from invoices and contact records: the record
 * with the customer's id, else that of the same profile.
 */
export async function accountFacts(db: Db, tenantId: number, accounts: string[]): Promise<Map<string, AccountFacts>> {
  const { rows } = await queryPrepared<AccountFacts & { account: string; contact: string | null }>(db, ACCOUNT_FACTS, [
    tenantId,
    accounts,
  ])
  return new Map(
    rows.map(({ account, source, name, email, contact }) => {
      const known = contact === null ? null : contactFacts(JSON.parse(contact))
      return [account, { source, name: name ?? known?.name ?? null, email: email ?? known?.email ?? null }]
    }),
  )
}

/**
 * Joins an account (`k.account`, `a.node`) with a value of its contact. `offset 0` makes each step use its index. `r.value` is
 * from the contact with the account's id, otherwise `p.value` is from the first contact of the same profile that has one.
 */
const contactOfAccount = (value: string, isWanted = 'true') => `
left join lateral (
  select ${value} as value from records
  where ${isWanted} and tenant_id = $1 and entity_type = 'contact' and id = k.account and not deleted offset 0
) r on true
left join lateral (
  select c.value from (
    select profile from identities where ${isWanted} and tenant_id = $1 and node = a.node offset 0) i
  cross join lateral (
    select node, kind, value from identities where tenant_id = $1 and profile = i.profile offset 0) m
  cross join lateral (
    select ${value} as value from records
    where tenant_id = $1 and entity_type = 'contact' and id = m.value and not deleted offset 0) c
  where m.kind = 'contact' and c.value is not null order by m.node limit 1
) p on r.value is null`

const ACCOUNT_FACTS = `
select k.account, a.source, n.customer_name as name, e.customer_email as email, coalesce(r.value, p.value) as contact
from unnest($2::text[]) as k (account)
left join lateral (
  select a.node, q.source from billing_accounts a
  left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
  where a.tenant_id = $1 and a.account = k.account offset 0
) a on true
left join lateral (
  select customer_name from billing_invoices
  where tenant_id = $1 and customer = k.account and customer_name is not null order by last_at desc limit 1
) n on true
left join lateral (
  select customer_email from billing_invoices
  where tenant_id = $1 and customer = k.account and customer_email is not null order by last_at desc limit 1
) e on true
${contactOfAccount('data')}`

/** Names of accounts: from their newest segment, then from those of merged accounts, else from `accountFacts`. */
export async function accountNames(db: Db, tenantId: number, accounts: string[]): Promise<Map<string, string>> {
  if (accounts.length === 0) return new Map()
  const { rows } = await queryPrepared<{ account: string; name: string }>(
    db,
    `select distinct on (account) account, body ->> 'customerName' as name from billing_segments
     where tenant_id = $1 and account = any($2) and body ->> 'customerName' is not null
     order by account, (${OWN_ACCOUNT} = account) desc, valid_from desc`,
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

const AT_A_TIME = 5_000

/** All segments that started up to `asOf`, in batches, ordered by subscription and start. */
export async function* allSegments(db: Db, tenantId: number, asOf: Date): AsyncGenerator<Segment[]> {
  let after = { id: '', from: new Date(0), first: true }
  for (;;) {
    const { rows } = await queryPrepared<{ id: string; from: Date; body: string }>(
      db,
      `select subscription_id as id, valid_from as from, body from billing_segments
       where tenant_id = $1 and (subscription_id, valid_from) > ($2, $3::timestamptz) and valid_from <= $4
       order by subscription_id, valid_from limit ${AT_A_TIME}`,
      [tenantId, after.id, after.first ? '-infinity' : after.from, asOf],
    )
    if (rows.length > 0) yield rows.map(row => JSON.parse(row.body))
    if (rows.length < AT_A_TIME) return
    const { id, from } = rows.at(-1)!
    after = { id, from, first: false }
  }
}

/** All segments of these accounts that started up to `asOf`, in batches. */
export async function* segmentsUntil(
  db: Db,
  tenantId: number,
  accounts: string[],
  asOf: Date,
): AsyncGenerator<Segment[]> {
  for (let done = 0; done < accounts.length; done += AT_A_TIME) {
    const { rows } = await queryPrepared<{ body: string }>(
      db,
      // With `account = any($2)`, a generic plan compares every segment with every account: 40,000 with 5,000 in 12.8 s
      // instead of 39 ms.
      `select s.body from unnest($2::text[]) as k (account) cross join lateral (
         select body from billing_segments where tenant_id = $1 and account = k.account and valid_from <= $3 offset 0) s`,
      [tenantId, accounts.slice(done, done + AT_A_TIME), asOf],
    )
    yield rows.map(row => JSON.parse(row.body))
  }
}

/** All accounts with a subscription in the currency at `asOf`, and their MRR. */
export async function accountMrrs(db: Db, { tenantId, currency, asOf }: Scope): Promise<Map<string, number>> {
  const { rows } = await queryPrepared<{ account: string; mrr: number }>(
    db,
    `select account, mrr from billing_account_states
     where tenant_id = $1 and currency = $2 and valid_from <= $3 and valid_to > $3`,
    [tenantId, currency, asOf],
  )
  return new Map(rows.map(({ account, mrr }) => [account, mrr]))
}

const TRAITS = `
select k.account, a.source, a.medium, a.campaign, coalesce(r.value, p.value) as country,
  coalesce(a.acquisition_id, 0) as "acquisitionId"
from unnest($2::text[]) as k (account)
left join lateral (
  select a.node, a.acquisition_id, q.source, q.medium, q.campaign from billing_accounts a
  left join billing_acquisitions q on q.tenant_id = $1 and q.id = a.acquisition_id
  where a.tenant_id = $1 and a.account = k.account offset 0
) a on true
${contactOfAccount(`data ->> 'country'`, '$3::boolean')}`

export type ReportTraits = AccountTraits & { acquisitionId: number }

/** Acquisition sources of accounts, and on request the countries of their contacts. */
export async function reportTraits(
  db: Db,
  tenantId: number,
  accounts: string[],
  withCountry: boolean,
): Promise<Map<string, ReportTraits>> {
  if (accounts.length === 0) return new Map()
  type Row = Omit<ReportTraits, 'acquisition'> & {
    account: string
    source: string | null
    medium: string | null
    campaign: string | null
  }
  const { rows } = await queryPrepared<Row>(db, TRAITS, [tenantId, accounts, withCountry])
  return new Map(
    rows.map(({ account, acquisitionId, country, source, medium, campaign }) => [
      account,
      {
        acquisitionId,
        acquisition: source === null ? null : { source, medium, campaign },
        country: normalizeCountry(country),
      },
    ]),
  )
}

/** The first of these names that belongs to an account or an invoice. */
export async function accountNamed(db: Db, tenantId: number, names: string[]): Promise<string | null> {
  const [only, ...others] = names
  if (others.length === 0) return only ?? null
  const { rows } = await queryPrepared<{ name: string }>(
    db,
    `select name from unnest($2::text[]) with ordinality as n (name, place)
     where exists (select from billing_accounts where tenant_id = $1 and account = n.name)
       or exists (select from billing_invoices where tenant_id = $1 and customer = n.name)
     order by place limit 1`,
    [tenantId, names],
  )
  return rows[0]?.name ?? null
}

/** The account of a subscription at `asOf`, by the first matching id; null: there is none. */
export async function accountOfSubscription(
  db: Db,
  tenantId: number,
  subscriptionIds: string[],
  asOf: Date,
): Promise<string | null> {
  const { rows } = await queryPrepared<{ account: string }>(
    db,
    `select account from billing_segments
     where tenant_id = $1 and subscription_id = any($2) and valid_from <= $3 and valid_to > $3
     order by array_position($2, subscription_id) limit 1`,
    [tenantId, subscriptionIds, asOf],
  )
  return rows[0]?.account ?? null
}

/** Subscriptions that belonged to an account at any time up to `asOf`. */
export async function subscriptionsOfAccount(db: Db, tenantId: number, account: string, asOf: Date): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select distinct subscription_id as id from billing_segments
     where tenant_id = $1 and account = $2 and valid_from <= $3 order by id`,
    [tenantId, account, asOf],
  )
  return rows.map(row => row.id)
}

/** Invoices of these subscriptions and of these customers. */
export async function invoicesOfAccount(
  db: Db,
  tenantId: number,
  customers: string[],
  subscriptions: string[],
  asOf: Date,
): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select id from billing_invoices where tenant_id = $1 and subscription_id = any($3) and first_at <= $4
     union select id from billing_invoices where tenant_id = $1 and customer = any($2) and first_at <= $4`,
    [tenantId, customers, subscriptions, asOf],
  )
  return rows.map(row => row.id)
}

type VersionOf = { subscription: SubscriptionVersion; invoice: InvoiceVersion; refund: Refund }

export async function statementsAbout<Kind extends keyof VersionOf>(
  db: Db,
  tenantId: number,
  kind: Kind,
  ids: string[],
  asOf: Date,
): Promise<Statement<VersionOf[Kind]>[]> {
  if (ids.length === 0) return []
  const { rows } = await queryPrepared<Omit<Statement<string>, 'sourceAt'> & { sourceAt: Date }>(
    db,
    `select object_id as "objectId", event_id as "eventId", event_type as "eventType", source_at as "sourceAt",
       body as version
     from billing_versions
     where tenant_id = $1 and kind = $2 and object_id = any($3) and source_at <= $4
     order by source_at, object_id, event_type`,
    [tenantId, kind, ids, asOf],
  )
  return rows.map(row => ({ ...row, sourceAt: row.sourceAt.getTime(), version: JSON.parse(row.version) }))
}

/** Refunds of these invoices or of these customers. */
export async function refundsOfAccount(
  db: Db,
  tenantId: number,
  customers: string[],
  invoices: string[],
  asOf: Date,
): Promise<(Refund & { eventId: string; eventType: string })[]> {
  const { rows } = await queryPrepared<{ body: string; eventId: string; eventType: string }>(
    db,
    `select r.body, v."eventId", v."eventType" from (
       select id from billing_refunds where tenant_id = $1 and invoice_id = any($3) and counted and created_at <= $4
       union select id from billing_refunds where tenant_id = $1 and customer = any($2) and counted and created_at <= $4
     ) k
     cross join lateral (select id, body from billing_refunds where tenant_id = $1 and id = k.id offset 0) r
     cross join lateral (
       select event_id as "eventId", event_type as "eventType" from billing_versions
       where tenant_id = $1 and kind = 'refund' and object_id = r.id order by source_at desc, event_type limit 1
     ) v`,
    [tenantId, customers, invoices, asOf],
  )
  return rows.map(({ body, ...source }) => ({ ...JSON.parse(body), ...source }))
}
