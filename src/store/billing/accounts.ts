import type { AccountState, Movement, SegmentFigures } from '../../domain/billing/account.ts'
import type { Cause } from '../../domain/billing/cause.ts'
import type { Acquisition } from '../../domain/billing/types.ts'
import type { NodeKey } from '../../domain/identity/identifiers.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import {
  type DerivedTable,
  endText,
  keyColumns,
  type ObjectKey,
  type OwnerSince,
  replaceRowsSince,
  replacing,
  returningAdded,
  sortedKeys,
  timeText,
  toInstant,
  utcDay,
} from './rows.ts'

/** The acquisition source of an account: from its subscriptions, and from the first touch of its profile. 0: unknown. */
export type AccountRow = ObjectKey & {
  /** The identity node of the account, which leads to its profile. */
  node: number | null
  ownAcquisitionId: number
  touchAcquisitionId: number
  /** When its MRR first exceeded 0. */
  firstPaidAt: number | null
}

/** Creates missing rows and locks all of them, in order. */
export async function lockAccounts(db: Db, accounts: ObjectKey[]): Promise<AccountRow[]> {
  const columns = keyColumns(sortedKeys(accounts))
  await queryPrepared(
    db,
    `insert into billing_accounts (tenant_id, account)
     select tenant_id, account from unnest($1::int[], $2::text[]) as k (tenant_id, account)
     order by tenant_id, account collate "C" on conflict do nothing`,
    columns,
  )
  const rows = await queryRows<Omit<AccountRow, 'firstPaidAt'> & { firstPaidAt: Date | null }>(
    db,
    `select a.tenant_id as "tenantId", a.account as id, a.node, a.own_acquisition_id as "ownAcquisitionId",
       a.touch_acquisition_id as "touchAcquisitionId", a.first_paid_at as "firstPaidAt"
     from billing_accounts a
     join unnest($1::int[], $2::text[]) as k (tenant_id, account) using (tenant_id, account)
     order by a.tenant_id, a.account for update of a`,
    columns,
  )
  return rows.map(row => ({ ...row, firstPaidAt: row.firstPaidAt?.getTime() ?? null }))
}

export async function updateAccounts(db: Db, accounts: AccountRow[]): Promise<void> {
  await queryPrepared(
    db,
    `update billing_accounts a
     set node = k.node, own_acquisition_id = k.own, touch_acquisition_id = k.touch, first_paid_at = k.paid_at
     from unnest($1::int[], $2::text[], $3::bigint[], $4::int[], $5::int[], $6::timestamptz[])
       as k (tenant_id, account, node, own, touch, paid_at)
     where a.tenant_id = k.tenant_id and a.account = k.account`,
    [
      ...keyColumns(accounts),
      accounts.map(account => account.node),
      accounts.map(account => account.ownAcquisitionId),
      accounts.map(account => account.touchAcquisitionId),
      accounts.map(({ firstPaidAt }) => (firstPaidAt === null ? null : timeText(firstPaidAt))),
    ],
  )
}

export type AccountSegment = SegmentFigures & {
  tenantId: number
  account: string
  startedAt: number
  acquisitionId: number
  cause: Cause | null
  eventId: string | null
}

/** Segments of these accounts that end after `since`, without the fields that only reports need. */
export async function loadAccountSegments(db: Db, accounts: OwnerSince[]): Promise<AccountSegment[]> {
  const { rows } = await queryPrepared<StoredSegmentFigures>(
    db,
    `select k.tenant_id as "tenantId", k.account, s.*
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, account, since)
     cross join lateral (
       select subscription_id as "subscriptionId", valid_from as "from", valid_to as "to", currency,
         started_at as "startedAt", mrr, committed_mrr as "committedMrr", acquisition_id as "acquisitionId",
         item_rows as "itemRows", items, items_priced as "pricedItems", items_excluded as "excludedItems", cause,
         event_id as "eventId"
       from billing_segments where tenant_id = k.tenant_id and account = k.account and valid_to > k.since offset 0) s`,
    [...keyColumns(accounts), accounts.map(({ since }) => (since === null ? '-infinity' : timeText(since)))],
  )
  return rows.map(row => ({
    ...row,
    from: row.from.getTime(),
    to: toInstant(row.to),
    startedAt: row.startedAt.getTime(),
    currency: row.currency || null,
  }))
}

type StoredSegmentFigures = Omit<AccountSegment, 'from' | 'to' | 'startedAt' | 'currency'> & {
  from: Date
  to: Date | number
  startedAt: Date
  currency: string
}

/** The daily change of the account figures. */
export const ACCOUNT_FIGURES = [
  'accounts',
  'active_accounts',
  'subscriptions',
  'active_subscriptions',
  'mrr',
  'committed_mrr',
  'item_rows',
  'items',
  'items_priced',
  'items_excluded',
] as const

/** The figures of one row of billing_account_states. */
export const FIGURES_OF_STATE = `1 as accounts, (mrr > 0)::int as active_accounts, subscriptions, active_subscriptions,
  mrr, committed_mrr, item_rows, items, items_priced, items_excluded`

const figures = ACCOUNT_FIGURES.join(', ')
const signedFigures = ACCOUNT_FIGURES.map(figure => `sum(sign * ${figure}) as ${figure}`).join(', ')
const summedFigures = ACCOUNT_FIGURES.map(figure => `sum(${figure})`).join(', ')

/** A state counts from the day it starts to the day it ends. */
export const STATE_EFFECTS = `
, days as materialized (
  select tenant_id, day, currency, acquisition_id, ${signedFigures} from (
    select tenant_id, ${utcDay('valid_from')} as day, currency, acquisition_id, 1 as sign, ${FIGURES_OF_STATE} from new
    union all
    select tenant_id, ${utcDay('valid_to')}, currency, acquisition_id, -1, ${FIGURES_OF_STATE} from new
    where valid_to < 'infinity'
    union all
    select tenant_id, ${utcDay('valid_from')}, currency, acquisition_id, -1, ${FIGURES_OF_STATE} from old
    union all
    select tenant_id, ${utcDay('valid_to')}, currency, acquisition_id, 1, ${FIGURES_OF_STATE} from old
    where valid_to < 'infinity'
  ) changes
  group by tenant_id, day, currency, acquisition_id
), added_to_days as (
  insert into billing_account_days (tenant_id, day, currency, acquisition_id, ${figures})
  select tenant_id, day, currency, acquisition_id, ${figures} from days
)
insert into billing_account_months (tenant_id, month, currency, acquisition_id, ${figures})
select tenant_id, date_trunc('month', day)::date, currency, acquisition_id, ${summedFigures} from days
group by 1, 2, 3, 4`

const STATES: DerivedTable = {
  name: 'billing_account_states',
  owner: 'account',
  key: ['currency', 'valid_from'],
  until: 'valid_to',
  values: [
    'valid_to',
    'acquisition_id',
    'mrr',
    'committed_mrr',
    'subscriptions',
    'active_subscriptions',
    'item_rows',
    'items',
    'items_priced',
    'items_excluded',
  ],
}
const REPLACE_STATES = replacing(STATES, STATE_EFFECTS)

/** Also updates the daily sums. */
export async function replaceStates(
  db: Db,
  accounts: OwnerSince[],
  states: (ObjectKey & { state: AccountState; acquisitionId: number })[],
): Promise<void> {
  const rows = states.map(({ tenantId, id, state, acquisitionId }) => ({
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
  }))
  await replaceRowsSince(db, REPLACE_STATES, accounts, rows)
}

export type MovementRow = ObjectKey & {
  currency: string
  movement: Movement
  firstAt: number
  firstMrr: number
  previousAt: number | null
  acquisitionId: number
}

const MOVEMENT_VALUES = ['type', 'mrr_before', 'mrr_after', 'first_at', 'first_mrr', 'previous_at', 'acquisition_id']
const MOVEMENTS: DerivedTable = {
  name: 'billing_movements',
  owner: 'account',
  key: ['currency', 'occurred_at'],
  until: 'occurred_at',
  values: [...MOVEMENT_VALUES, 'changes'],
  compared: row => `(${MOVEMENT_VALUES.map(column => `${row}.${column}`).join(', ')}, ${row}.changes::text)`,
}
const REPLACE_MOVEMENTS = replacing(MOVEMENTS)
const REPLACE_RETURNING_MOVEMENTS = replacing(MOVEMENTS, returningAdded(MOVEMENTS))

/** With `returnsNew`, returns the new movements. */
export async function replaceMovements(
  db: Db,
  accounts: OwnerSince[],
  movements: MovementRow[],
  returnsNew: boolean,
): Promise<MovementRow[]> {
  const rows = movements.map(({ tenantId, id, currency, movement, ...row }) => ({
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
    acquisition_id: row.acquisitionId,
    changes: movement.changes,
  }))
  const statement = returnsNew ? REPLACE_RETURNING_MOVEMENTS : REPLACE_MOVEMENTS
  const added = await replaceRowsSince<AddedMovement>(db, statement, accounts, rows)
  if (!returnsNew || added.length === 0) return []
  const keys = new Set(
    added.map(row => movementKey(row.tenant_id, row.account, row.currency, row.occurred_at.getTime())),
  )
  return movements.filter(({ tenantId, id, currency, movement }) =>
    keys.has(movementKey(tenantId, id, currency, movement.at)),
  )
}

type AddedMovement = { tenant_id: number; account: string; currency: string; occurred_at: Date }

function movementKey(tenantId: number, account: string, currency: string, at: number): string {
  return JSON.stringify([tenantId, account, currency, at])
}

/** The state of an account in one currency at `since`, and its last movement up to then. */
export type AccountPast = ObjectKey & {
  currency: string | null
  state: AccountState | null
  moved: { at: number; firstAt: number; firstMrr: number } | null
}

/** States that are valid at `since`, and the last movements up to and including it. */
export async function loadAccountPasts(db: Db, accounts: (ObjectKey & { since: number })[]): Promise<AccountPast[]> {
  const columns = [...keyColumns(accounts), accounts.map(({ since }) => timeText(since))]
  const { rows: states } = await queryPrepared<
    ObjectKey & Omit<AccountState, 'from' | 'to' | 'currency'> & { currency: string; from: Date; to: Date | number }
  >(
    db,
    `select k.tenant_id as "tenantId", k.account as id, s.*
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, account, since)
     cross join lateral (
       select currency, valid_from as "from", valid_to as "to", mrr, committed_mrr as "committedMrr", subscriptions,
         active_subscriptions as "activeSubscriptions", item_rows as "itemRows", items, items_priced as "pricedItems",
         items_excluded as "excludedItems"
       from billing_account_states
       where tenant_id = k.tenant_id and account = k.account and valid_from <= k.since and valid_to > k.since offset 0) s`,
    columns,
  )
  const { rows: moved } = await queryPrepared<
    ObjectKey & { currency: string; at: Date; firstAt: Date; firstMrr: number }
  >(
    db,
    `select k.tenant_id as "tenantId", k.account as id, m.*
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, account, since)
     cross join lateral (
       select distinct on (currency) currency, occurred_at as at, first_at as "firstAt", first_mrr as "firstMrr"
       from billing_movements
       where tenant_id = k.tenant_id and account = k.account and occurred_at <= k.since
       order by currency, occurred_at desc) m`,
    columns,
  )
  return [
    ...states.map(({ tenantId, id, currency, from, to, ...figures }) => ({
      ...{ tenantId, id, currency: currency || null, moved: null },
      state: { ...figures, currency: currency || null, from: from.getTime(), to: toInstant(to) },
    })),
    ...moved.map(({ tenantId, id, currency, at, firstAt, firstMrr }) => ({
      ...{ tenantId, id, currency, state: null },
      moved: { at: at.getTime(), firstAt: firstAt.getTime(), firstMrr },
    })),
  ]
}

type OfTenant = { tenantId: number; acquisition: Acquisition | null }

/** The ids of these sources, in order; a new source gets one. null has the id 0. */
export async function acquisitionIds(db: Db, acquisitions: OfTenant[]): Promise<number[]> {
  const distinct = new Map(
    acquisitions.flatMap(({ tenantId, acquisition }) =>
      acquisition === null ? [] : [[acquisitionText(tenantId, acquisition), { tenantId, ...acquisition }] as const],
    ),
  )
  if (distinct.size === 0) return acquisitions.map(() => 0)
  const given = [...distinct.values()]
  const found = await ensureAcquisitions(db, [
    given.map(acquisition => acquisition.tenantId),
    given.map(acquisition => acquisition.source),
    given.map(acquisition => acquisition.medium),
    given.map(acquisition => acquisition.campaign),
  ])
  const ids = new Map([...distinct.keys()].map((text, i) => [text, found[i]!]))
  return acquisitions.map(({ tenantId, acquisition }) =>
    acquisition === null ? 0 : ids.get(acquisitionText(tenantId, acquisition))!,
  )
}

function acquisitionText(tenantId: number, { source, medium, campaign }: Acquisition): string {
  return JSON.stringify([tenantId, source, medium, campaign])
}

const INPUT = `(
  select *, md5(json_build_array(source, medium, campaign)::text)::uuid as key
  from unnest($1::int[], $2::text[], $3::text[], $4::text[]) with ordinality
    as i (tenant_id, source, medium, campaign, n)) i`

const FIND = `select a.id from ${INPUT} left join billing_acquisitions a using (tenant_id, key) order by i.n`

async function ensureAcquisitions(db: Db, columns: unknown[][]): Promise<number[]> {
  const found = await queryPrepared<{ id: number | null }>(db, FIND, columns)
  if (found.rows.every(row => row.id !== null)) return found.rows.map(row => row.id!)
  await queryPrepared(
    db,
    `insert into billing_acquisitions (tenant_id, key, source, medium, campaign)
     select tenant_id, key, source, medium, campaign from ${INPUT} order by tenant_id, key on conflict do nothing`,
    columns,
  )
  const all = await queryPrepared<{ id: number }>(db, FIND, columns)
  return all.rows.map(row => row.id)
}

/**
 * Accounts of these people without their own acquisition data. `offset 0` makes each step use its index, so that no plan
 * depends on statistics, which do not cover new tenants.
 */
export async function accountsOfPeople(db: Db, people: NodeKey[]): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `select distinct p.tenant_id as "tenantId", a.account as id
     from unnest($1::int[], $2::bigint[]) as p (tenant_id, node)
     cross join lateral (
       select profile from identities
       where tenant_id = p.tenant_id and node = p.node
         and exists (select from billing_accounts where tenant_id = p.tenant_id and node is not null) offset 0) i
     cross join lateral (
       select node from identities where tenant_id = p.tenant_id and profile = i.profile offset 0) m
     cross join lateral (
       select account from billing_accounts
       where tenant_id = p.tenant_id and node = m.node and own_acquisition_id = 0 offset 0) a`,
    [people.map(person => person.tenantId), people.map(person => person.node)],
  )
}

/**
 * The acquisition source of each of these people that has a profile, by position: the first touch over all nodes of the
 * profile. A touch with a source precedes a direct one. An unverified touch that was received after `paidAt` does not
 * count. Erased people are not included.
 */
export async function firstTouches(
  db: Db,
  people: (NodeKey & { paidAt: number | null })[],
): Promise<{ position: number; tenantId: number; acquisition: Acquisition | null }[]> {
  const { rows } = await queryPrepared<
    { position: number; tenantId: number; source: string | null } & Omit<Acquisition, 'source'>
  >(
    db,
    `select p.position::int - 1 as position, p.tenant_id as "tenantId", t.source, t.medium, t.campaign
     from unnest($1::int[], $2::bigint[], $3::timestamptz[]) with ordinality as p (tenant_id, node, paid_at, position)
     cross join lateral (
       select profile from identities where tenant_id = p.tenant_id and node = p.node offset 0) i
     left join lateral (
       select t.source, t.medium, t.campaign from (
         select node from identities where tenant_id = p.tenant_id and profile = i.profile offset 0) m
       cross join lateral (
         select * from touches
         where tenant_id = p.tenant_id and node = m.node and (kind = 'verified' or received_at <= p.paid_at) offset 0) t
       order by t.direct, t.occurred_at, t.event_id limit 1
     ) t on true`,
    [
      people.map(person => person.tenantId),
      people.map(person => person.node),
      people.map(({ paidAt }) => (paidAt === null ? 'infinity' : timeText(paidAt))),
    ],
  )
  return rows.map(({ position, tenantId, source, medium, campaign }) => ({
    position,
    tenantId,
    acquisition: source === null ? null : { source, medium, campaign },
  }))
}
