import type { AccountState, SegmentFigures } from '../../domain/billing/account-states.ts'
import type { Movement } from '../../domain/billing/movements.ts'
import type { Acquisition } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { periodOf } from './subscriptions.ts'
import { endText, keyColumns, type ObjectKey, sortedKeys, timeText } from './versions.ts'

export type AccountRow = ObjectKey & { node: number | null; ownAcquisitionId: number; acquisitionId: number }

/** Makes the rows that are missing and locks all of them, in order. */
export async function lockAccounts(db: Db, accounts: ObjectKey[]): Promise<AccountRow[]> {
  const columns = keyColumns(sortedKeys(accounts))
  await queryPrepared(
    db,
    `insert into billing_accounts (tenant_id, account)
     select tenant_id, account from unnest($1::int[], $2::text[]) as k (tenant_id, account)
     order by tenant_id, account collate "C" on conflict do nothing`,
    columns,
  )
  const { rows } = await queryPrepared<{
    tenant_id: number
    account: string
    node: number | null
    own_acquisition_id: number
    acquisition_id: number
  }>(
    db,
    `select a.tenant_id, a.account, a.node, a.own_acquisition_id, a.acquisition_id from billing_accounts a
     join unnest($1::int[], $2::text[]) as k (tenant_id, account) using (tenant_id, account)
     order by a.tenant_id, a.account for update of a`,
    columns,
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    id: row.account,
    node: row.node,
    ownAcquisitionId: row.own_acquisition_id,
    acquisitionId: row.acquisition_id,
  }))
}

export async function updateAccounts(
  db: Db,
  accounts: (ObjectKey & { node: number | null; ownAcquisitionId: number })[],
): Promise<(ObjectKey & { acquisitionId: number })[]> {
  const { rows } = await queryPrepared<{ tenant_id: number; account: string; acquisition_id: number }>(
    db,
    `update billing_accounts a set node = k.node, own_acquisition_id = k.own
     from unnest($1::int[], $2::text[], $3::bigint[], $4::int[]) as k (tenant_id, account, node, own)
     where a.tenant_id = k.tenant_id and a.account = k.account
     returning a.tenant_id, a.account, a.acquisition_id`,
    [
      ...keyColumns(accounts),
      accounts.map(account => account.node),
      accounts.map(account => account.ownAcquisitionId),
    ],
  )
  return rows.map(row => ({ tenantId: row.tenant_id, id: row.account, acquisitionId: row.acquisition_id }))
}

export type AccountSegment = SegmentFigures & {
  tenantId: number
  account: string
  startedAt: number
  acquisitionId: number
}

/** All segments of these accounts, without what is only shown. */
export async function loadAccountSegments(db: Db, accounts: ObjectKey[]): Promise<AccountSegment[]> {
  const { rows } = await queryPrepared<{
    tenant_id: number
    account: string
    subscription_id: string
    valid_from: Date
    valid_to: Date | number
    currency: string
    started_at: Date
    mrr: number
    committed_mrr: number
    acquisition_id: number
    item_rows: number
    items: number
    items_priced: number
    items_excluded: number
  }>(
    db,
    `select s.tenant_id, s.account, s.subscription_id, s.valid_from, s.valid_to, s.currency, s.started_at, s.mrr,
       s.committed_mrr, s.acquisition_id, s.item_rows, s.items, s.items_priced, s.items_excluded
     from billing_segments s
     join unnest($1::int[], $2::text[]) as k (tenant_id, account) using (tenant_id, account)`,
    keyColumns(accounts),
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    account: row.account,
    subscriptionId: row.subscription_id,
    ...periodOf(row),
    currency: row.currency || null,
    startedAt: row.started_at.getTime(),
    mrr: row.mrr,
    committedMrr: row.committed_mrr,
    acquisitionId: row.acquisition_id,
    itemRows: row.item_rows,
    items: row.items,
    pricedItems: row.items_priced,
    excludedItems: row.items_excluded,
  }))
}

/** Rows that are as before stay untouched. */
export async function replaceStates(
  db: Db,
  accounts: ObjectKey[],
  states: (ObjectKey & { state: AccountState; acquisitionId: number })[],
): Promise<void> {
  await queryPrepared(
    db,
    `with wanted as materialized (
       select * from json_populate_recordset(null::billing_account_states, $3)
     ), gone as (
       delete from billing_account_states s using unnest($1::int[], $2::text[]) as k (tenant_id, account)
       where s.tenant_id = k.tenant_id and s.account = k.account and not exists (
         select from wanted w where w.tenant_id = s.tenant_id and w.account = s.account and w.currency = s.currency
           and w.valid_from = s.valid_from)
     )
     insert into billing_account_states as s select * from wanted
     on conflict (tenant_id, account, currency, valid_from) do update set
       valid_to = excluded.valid_to, acquisition_id = excluded.acquisition_id, mrr = excluded.mrr,
       committed_mrr = excluded.committed_mrr, subscriptions = excluded.subscriptions,
       active_subscriptions = excluded.active_subscriptions, item_rows = excluded.item_rows, items = excluded.items,
       items_priced = excluded.items_priced, items_excluded = excluded.items_excluded
     where (s.valid_to, s.acquisition_id, s.mrr, s.committed_mrr, s.subscriptions, s.active_subscriptions,
         s.item_rows, s.items, s.items_priced, s.items_excluded) is distinct from
       (excluded.valid_to, excluded.acquisition_id, excluded.mrr, excluded.committed_mrr, excluded.subscriptions,
        excluded.active_subscriptions, excluded.item_rows, excluded.items, excluded.items_priced,
        excluded.items_excluded)`,
    [
      ...keyColumns(accounts),
      JSON.stringify(
        states.map(({ tenantId, id, state, acquisitionId }) => ({
          tenant_id: tenantId,
          account: id,
          currency: state.currency ?? '',
          valid_from: timeText(state.from),
          valid_to: endText(state.to),
          acquisition_id: acquisitionId,
          mrr: state.mrr,
          committed_mrr: state.committedMrr,
          subscriptions: state.subscriptions,
          active_subscriptions: state.activeSubscriptions,
          item_rows: state.itemRows,
          items: state.items,
          items_priced: state.pricedItems,
          items_excluded: state.excludedItems,
        })),
      ),
    ],
  )
}

export type MovementRow = ObjectKey & {
  currency: string
  movement: Movement
  firstAt: number
  firstMrr: number
  previousAt: number | null
  payingSince: number
  acquisitionId: number
}

/** Rows that are as before stay untouched. */
export async function replaceMovements(
  db: Db,
  accounts: ObjectKey[],
  movements: MovementRow[],
): Promise<void> {
  await queryPrepared(
    db,
    `with wanted as materialized (
       select * from json_populate_recordset(null::billing_movements, $3)
     ), gone as (
       delete from billing_movements m using unnest($1::int[], $2::text[]) as k (tenant_id, account)
       where m.tenant_id = k.tenant_id and m.account = k.account and not exists (
         select from wanted w where w.tenant_id = m.tenant_id and w.account = m.account and w.currency = m.currency
           and w.occurred_at = m.occurred_at)
     )
     insert into billing_movements as m select * from wanted
     on conflict (tenant_id, account, currency, occurred_at) do update set
       type = excluded.type, mrr_before = excluded.mrr_before, mrr_after = excluded.mrr_after,
       first_at = excluded.first_at, first_mrr = excluded.first_mrr, previous_at = excluded.previous_at,
       paying_since = excluded.paying_since,       acquisition_id = excluded.acquisition_id, changes = excluded.changes
     where (m.type, m.mrr_before, m.mrr_after, m.first_at, m.first_mrr, m.previous_at, m.paying_since, m.acquisition_id,
         m.changes::text) is distinct from
       (excluded.type, excluded.mrr_before, excluded.mrr_after, excluded.first_at, excluded.first_mrr,
        excluded.previous_at, excluded.paying_since, excluded.acquisition_id, excluded.changes::text)`,
    [
      ...keyColumns(accounts),
      JSON.stringify(
        movements.map(({ tenantId, id, currency, movement, ...row }) => ({
          tenant_id: tenantId,
          currency,
          account: id,
          occurred_at: timeText(movement.at),
          type: movement.type,
          mrr_before: movement.before,
          mrr_after: movement.after,
          first_at: timeText(row.firstAt),
          first_mrr: row.firstMrr,
          previous_at: row.previousAt === null ? '-infinity' : timeText(row.previousAt),
          paying_since: timeText(row.payingSince),
          acquisition_id: row.acquisitionId,
          changes: movement.changes,
        })),
      ),
    ],
  )
}

/** The ids of these sources, in their order; what is new gets one. null: 0, which is none. */
export async function acquisitionIds(
  db: Db,
  acquisitions: { tenantId: number; acquisition: Acquisition | null }[],
): Promise<number[]> {
  const text = (one: { tenantId: number; acquisition: Acquisition | null }) =>
    JSON.stringify([
      one.tenantId,
      one.acquisition?.source,
      one.acquisition?.medium,
      one.acquisition?.campaign,
    ])
  const distinct = new Map(
    acquisitions.flatMap(one => (one.acquisition === null ? [] : [[text(one), one] as const])),
  )
  if (distinct.size === 0) return acquisitions.map(() => 0)
  const given = [...distinct.values()]
  const columns = [
    given.map(one => one.tenantId),
    given.map(one => one.acquisition!.source),
    given.map(one => one.acquisition!.medium),
    given.map(one => one.acquisition!.campaign),
  ]
  const rows = await ensureAcquisitions(db, columns)
  const ids = new Map(given.map((one, i) => [text(one), rows[i]!]))
  return acquisitions.map(one => (one.acquisition === null ? 0 : ids.get(text(one))!))
}

const KEY = `md5(json_build_array(source, medium, campaign)::text)::uuid`

async function ensureAcquisitions(db: Db, columns: unknown[][]): Promise<number[]> {
  const input = `unnest($1::int[], $2::text[], $3::text[], $4::text[]) with ordinality
    as i (tenant_id, source, medium, campaign, n)`
  const find = `select a.id from (select *, ${KEY} as key from ${input}) i
    left join billing_acquisitions a using (tenant_id, key) order by i.n`
  const found = await queryPrepared<{ id: number | null }>(db, find, columns)
  if (found.rows.every(row => row.id !== null)) return found.rows.map(row => row.id!)
  await queryPrepared(
    db,
    `insert into billing_acquisitions (tenant_id, key, source, medium, campaign)
     select tenant_id, ${KEY}, source, medium, campaign from ${input} order by 1, 2 on conflict do nothing`,
    columns,
  )
  const all = await queryPrepared<{ id: number }>(db, find, columns)
  return all.rows.map(row => row.id)
}
