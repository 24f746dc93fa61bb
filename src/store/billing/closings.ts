import type { PolicyVersion } from '../../domain/billing/policy.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Acquisition } from '../../domain/billing/types.ts'
import type { Slice } from '../../domain/list-slices.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { toVersion } from './policies.ts'
import { keyColumns, type ObjectKey, sortedKeys } from './rows.ts'

/** A closed month. `number` orders closings by the time when they were made. */
export type Closing = {
  /** 'YYYY-MM' */
  month: string
  number: number
  starts: Date
  ends: Date
  /** Of the time when the month was closed. */
  policy: PolicyVersion
  closedAt: Date
  closedBy: string
}

/** The latest month first. */
export async function listClosings(db: Db, tenantId: number): Promise<Closing[]> {
  const rows = await queryRows<Omit<Closing, 'policy'> & { version: number; policy: string }>(
    db,
    `select to_char(month, 'YYYY-MM') as month, number, starts, ends, policy_version as version, policy,
       closed_at as "closedAt", closed_by as "closedBy"
     from billing_closings where tenant_id = $1 order by month desc`,
    [tenantId],
  )
  return rows.map(({ version, policy, ...closing }) => ({ ...closing, policy: toVersion({ version, policy }) }))
}

/** The caller holds the tenant's profile lock and terms lock, so that no derivation runs meanwhile. */
export async function insertClosing(
  db: Db,
  tenantId: number,
  { month, starts, ends, policy: { version, ...settings }, closedBy }: Omit<Closing, 'number' | 'closedAt'>,
): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_closings (tenant_id, month, starts, ends, policy_version, policy, closed_by)
     values ($1, ($2 || '-01')::date, $3, $4, $5, $6, $7)`,
    [tenantId, month, starts, ends, version, JSON.stringify(settings), closedBy],
  )
}

/** Also deletes its restatements, and the accounts and exchange rates that were kept for it only. */
export async function deleteClosing(db: Db, tenantId: number, { number }: Closing): Promise<void> {
  await queryPrepared(db, 'delete from billing_closings where tenant_id = $1 and number = $2', [tenantId, number])
  await queryPrepared(db, 'delete from billing_restatements where tenant_id = $1 and closing = $2', [tenantId, number])
  await queryPrepared(
    db,
    `delete from billing_closed_accounts a where tenant_id = $1 and not exists (
       select from billing_closings c
       where c.tenant_id = $1 and c.number <= a.closing and c.number > coalesce((
         select max(p.closing) from billing_closed_accounts p
         where p.tenant_id = $1 and p.account = a.account and p.closing < a.closing), 0))`,
    [tenantId],
  )
  await queryPrepared(
    db,
    `delete from billing_closed_rates r where tenant_id = $1 and not exists (
       select from billing_closings c
       where c.tenant_id = $1 and c.number <= r.closing and c.number > coalesce((
         select max(p.closing) from billing_closed_rates p
         where p.tenant_id = $1 and p.currency = r.currency and p.day = r.day and p.closing < r.closing), 0))`,
    [tenantId],
  )
}

/** By tenant, the end of its latest closed month. */
export async function closedUntil(db: Db, tenantIds: Iterable<number>): Promise<Map<number, number>> {
  const rows = await queryRows<{ tenantId: number; ends: Date }>(
    db,
    `select tenant_id as "tenantId", max(ends) as ends from billing_closings
     where tenant_id = any($1) group by tenant_id`,
    [[...new Set(tenantIds)]],
  )
  return new Map(rows.map(({ tenantId, ends }) => [tenantId, ends.getTime()]))
}

/**
 * Keeps these accounts for all closings since they were last kept. The caller has locked them, and changes them afterwards.
 */
export async function keepAccounts(db: Db, accounts: ObjectKey[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_closed_accounts (tenant_id, account, closing, acquisition_id, segments)
     select k.tenant_id, k.account, c.number, coalesce(a.acquisition_id, 0), s.segments
     from unnest($1::int[], $2::text[]) as k (tenant_id, account)
     cross join lateral (
       select max(number) as number, max(ends) as ends from billing_closings where tenant_id = k.tenant_id offset 0) c
     left join billing_accounts a on a.tenant_id = k.tenant_id and a.account = k.account
     cross join lateral (
       select coalesce(json_agg(body order by subscription_id, valid_from), '[]') as segments from billing_segments
       where tenant_id = k.tenant_id and account = k.account and valid_from <= c.ends offset 0) s
     where c.number is not null and not exists (
       select from billing_closed_accounts o
       where o.tenant_id = k.tenant_id and o.account = k.account and o.closing = c.number)`,
    keyColumns(sortedKeys(accounts)),
  )
}

/** `acquisition` null: unattributed. */
export type KeptSource = { acquisitionId: number; acquisition: Acquisition | null }

/** The accounts that changed since this closing, with their acquisition source then. */
export async function keptSources(db: Db, tenantId: number, { number }: Closing): Promise<Map<string, KeptSource>> {
  type Row = { account: string; acquisitionId: number; source: string | null } & Omit<Acquisition, 'source'>
  const rows = await queryRows<Row>(
    db,
    `select k.account, k.acquisition_id as "acquisitionId", q.source, q.medium, q.campaign
     from (
       select distinct on (account) account, acquisition_id from billing_closed_accounts
       where tenant_id = $1 and closing >= $2 order by account, closing
     ) k
     left join billing_acquisitions q on q.tenant_id = $1 and q.id = k.acquisition_id`,
    [tenantId, number],
  )
  return new Map(
    rows.map(({ account, acquisitionId, source, medium, campaign }) => [
      account,
      { acquisitionId, acquisition: source === null ? null : { source, medium, campaign } },
    ]),
  )
}

const KEPT_AT_A_TIME = 500

/** The segments of all accounts that changed since the closing, as they were then, in batches. */
export async function* keptSegments(db: Db, tenantId: number, { number }: Closing): AsyncGenerator<Segment[]> {
  for (let after = ''; ; ) {
    const { rows } = await queryPrepared<{ account: string; segments: string }>(
      db,
      `select distinct on (account) account, segments from billing_closed_accounts
       where tenant_id = $1 and closing >= $2 and account > $3 order by account, closing limit ${KEPT_AT_A_TIME}`,
      [tenantId, number, after],
    )
    if (rows.length > 0) yield rows.flatMap(row => JSON.parse(row.segments) as Segment[])
    if (rows.length < KEPT_AT_A_TIME) return
    after = rows.at(-1)!.account
  }
}

/** The same of these accounts. */
export async function keptSegmentsOf(
  db: Db,
  tenantId: number,
  { number }: Closing,
  accounts: string[],
): Promise<Segment[]> {
  const { rows } = await queryPrepared<{ segments: string }>(
    db,
    `select s.segments from unnest($3::text[]) as k (account) cross join lateral (
       select segments from billing_closed_accounts
       where tenant_id = $1 and account = k.account and closing >= $2 order by closing limit 1) s`,
    [tenantId, number, accounts],
  )
  return rows.flatMap(row => JSON.parse(row.segments) as Segment[])
}

/** The MRR of an account at the end of a closed month, and a digest of its movements in it. */
export type ClosedFigures = ObjectKey & { closing: number; currency: string; mrr: number; moved: string | null }

export async function closedFigures(db: Db, accounts: ObjectKey[]): Promise<ClosedFigures[]> {
  return queryRows<ClosedFigures>(
    db,
    `select k.tenant_id as "tenantId", k.account as id, c.number as closing, m.currency, m.mrr, m.moved
     from unnest($1::int[], $2::text[]) as k (tenant_id, account)
     join billing_closings c on c.tenant_id = k.tenant_id
     cross join lateral (
       select currency, (array_agg(mrr_after order by occurred_at desc))[1] as mrr,
         md5(string_agg(concat_ws(' ', extract(epoch from occurred_at), type, mrr_before, mrr_after), ',' order by occurred_at)
           filter (where occurred_at >= c.starts)) as moved
       from billing_movements
       where tenant_id = k.tenant_id and account = k.account and occurred_at < c.ends group by currency) m`,
    keyColumns(accounts),
  )
}

export type NewRestatement = ObjectKey & {
  closing: number
  currency: string
  amount: number
  eventId: string | null
  receivedAt: Date
}

export async function addRestatements(db: Db, rows: NewRestatement[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_restatements (tenant_id, account, closing, currency, amount, event_id, received_at)
     select * from unnest($1::int[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[])`,
    [
      ...keyColumns(rows),
      rows.map(row => row.closing),
      rows.map(row => row.currency),
      rows.map(row => row.amount),
      rows.map(row => row.eventId),
      rows.map(row => row.receivedAt),
    ],
  )
}

/** `amount`: in minor units. */
export type Restatement = {
  month: string
  customer: string
  currency: string
  amount: number
  eventId: string | null
  receivedAt: Date
}

/** The latest first. `month`: only this one. */
export async function listRestatements(
  db: Db,
  tenantId: number,
  month: string | null,
  { offset, limit }: Slice,
): Promise<Restatement[]> {
  return queryRows<Restatement>(
    db,
    `select to_char(c.month, 'YYYY-MM') as month, r.account as customer, r.currency, r.amount, r.event_id as "eventId",
       r.received_at as "receivedAt"
     from billing_restatements r
     join billing_closings c on c.tenant_id = r.tenant_id and c.number = r.closing
     where r.tenant_id = $1 and ($2::text is null or to_char(c.month, 'YYYY-MM') = $2)
     order by r.number desc offset $3 limit $4`,
    [tenantId, month, offset, limit],
  )
}

/** By closing, the number of its restatements. */
export async function countRestatements(db: Db, tenantId: number): Promise<Map<number, number>> {
  const rows = await queryRows<{ closing: number; count: number }>(
    db,
    'select closing, count(*) as count from billing_restatements where tenant_id = $1 group by closing',
    [tenantId],
  )
  return new Map(rows.map(({ closing, count }) => [closing, count]))
}

const KEPT_OWN_ACCOUNT = `coalesce(s.segment ->> 'customer', s.segment ->> 'customerEmail', s.segment ->> 'subscriptionId')`

/**
 * Removes names, e-mail addresses and metadata of these subscriptions and accounts from `kept`, accounts that were kept. Amounts stay.
 */
export async function eraseKeptNames(
  db: Db,
  tenantId: number,
  { kept, accounts, subscriptions }: { kept: string[]; accounts: string[]; subscriptions: string[] },
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_closed_accounts set segments = (
       select coalesce(json_agg(case
         when s.segment ->> 'subscriptionId' = any($4) or ${KEPT_OWN_ACCOUNT} = any($3)
         then (s.segment - 'metadata') || '{"customerName": null, "customerEmail": null}' else s.segment end order by s.n), '[]')
       from jsonb_array_elements(segments::jsonb) with ordinality as s (segment, n))
     where tenant_id = $1 and account = any($2)`,
    [tenantId, kept, accounts, subscriptions],
  )
}

/** Renames an account that was kept, also in `kept`, the accounts that it is or was merged into. */
export async function renameKept(
  db: Db,
  tenantId: number,
  { account, newName, kept }: { account: string; newName: string; kept: string[] },
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_closed_accounts set account = case when account = $2 then $3 else account end, segments = (
       select coalesce(json_agg(s.segment
         || case when s.segment ->> 'account' = $2 then jsonb_build_object('account', $3::text) else '{}' end
         || case when ${KEPT_OWN_ACCOUNT} = $2 then jsonb_build_object('customer', $3::text) else '{}' end
         order by s.n), '[]')
       from jsonb_array_elements(segments::jsonb) with ordinality as s (segment, n))
     where tenant_id = $1 and account = any($4)`,
    [tenantId, account, newName, [account, ...kept]],
  )
  await queryPrepared(db, 'update billing_restatements set account = $3 where tenant_id = $1 and account = $2', [
    tenantId,
    account,
    newName,
  ])
}
