import type pg from 'pg'
import type { Acquisition } from '../../domain/billing/types.ts'
import { type Db, inTransaction, isConflict } from '../../postgres/database.ts'
import { acquisitionIds } from './accounts.ts'

// A hint's profile may have many members: so many hints at a time keep the transaction short.
const HINTS_AT_A_TIME = 2_000
// Where more arrive than that, nobody is kept waiting for the last of them.
const MAX_ROUNDS = 50

/** Somebody should look where these accounts came from. */
export async function hintAttribution(db: Db, hints: { tenantId: number; node: number }[]): Promise<void> {
  if (hints.length === 0) return
  await db.query(
    `insert into billing_attribution_hints (tenant_id, node) select * from unnest($1::int[], $2::bigint[])`,
    [hints.map(hint => hint.tenantId), hints.map(hint => hint.node)],
  )
}

/** The same for every account that does not say itself where it came from. */
export async function hintAllAttribution(db: Db): Promise<void> {
  await db.query(
    `insert into billing_attribution_hints (tenant_id, node)
     select tenant_id, node from billing_accounts where own_acquisition_id = 0 and node is not null`,
  )
}

/** Follows the hints of a tenant (or of every tenant): reports after this show what was known before it. */
export async function resolveAttribution(pool: pg.Pool, tenantId: number | null): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS && (await hasHints(pool, tenantId)); round++) {
    try {
      await inTransaction(pool, client => resolveSome(client, tenantId))
    } catch (error) {
      // a worker was in the way; the hints are still there
      if (!isConflict(error)) throw error
    }
  }
}

async function hasHints(db: Db, tenantId: number | null): Promise<boolean> {
  const { rows } = await db.query<{ some: boolean }>(
    `select exists (select from billing_attribution_hints where $1::int is null or tenant_id = $1) as some`,
    [tenantId],
  )
  return rows[0]!.some
}

async function resolveSome(client: pg.PoolClient, tenantId: number | null): Promise<void> {
  const { rows } = await client.query<{ tenant_id: number; account: string } & TouchRow>(ACCOUNTS_OF_HINTS, [
    tenantId,
    HINTS_AT_A_TIME,
  ])
  if (rows.length === 0) return
  const ids = await acquisitionIds(
    client,
    rows.map(row => ({ tenantId: row.tenant_id, acquisition: acquisitionOf(row) })),
  )
  await client.query(APPLY, [rows.map(row => row.tenant_id), rows.map(row => row.account), ids])
}

type TouchRow = { source: string | null; medium: string | null; campaign: string | null }

function acquisitionOf({ source, medium, campaign }: TouchRow): Acquisition | null {
  return source === null ? null : { source, medium, campaign }
}

// The first touch of everyone whom an account's profile is known as: one that names a sender before a direct one.
// Accounts are locked in the pipeline's order, so that the two take turns.
const ACCOUNTS_OF_HINTS = `
with taken as (
  select id from billing_attribution_hints where $1::int is null or tenant_id = $1
  order by id limit $2 for update
), hints as (
  delete from billing_attribution_hints h using taken where h.id = taken.id returning h.tenant_id, h.node
), profiles as materialized (
  select distinct i.tenant_id, i.profile from hints h
  join identities i on i.tenant_id = h.tenant_id and i.node = h.node
), members as materialized (
  select i.tenant_id, i.profile, i.node from profiles p
  join identities i on i.tenant_id = p.tenant_id and i.profile = p.profile
), firsts as (
  select distinct on (m.tenant_id, m.profile) m.tenant_id, m.profile, t.source, t.medium, t.campaign
  from members m join touches t on t.tenant_id = m.tenant_id and t.node = m.node
  order by m.tenant_id, m.profile, t.direct, t.occurred_at, t.event_id
)
select a.tenant_id, a.account, f.source, f.medium, f.campaign from members m
join billing_accounts a on a.tenant_id = m.tenant_id and a.node = m.node
left join firsts f on f.tenant_id = m.tenant_id and f.profile = m.profile
order by a.tenant_id, a.account for update of a`

const APPLY = `
with found as (
  select * from unnest($1::int[], $2::text[], $3::int[]) as f (tenant_id, account, id)
), accounts as (
  update billing_accounts a set touch_acquisition_id = f.id from found f
  where a.tenant_id = f.tenant_id and a.account = f.account and a.touch_acquisition_id <> f.id
  returning a.tenant_id, a.account, a.acquisition_id
), movements as (
  update billing_movements m set acquisition_id = a.acquisition_id from accounts a
  where m.tenant_id = a.tenant_id and m.account = a.account and m.acquisition_id <> a.acquisition_id
)
update billing_account_states s set acquisition_id = a.acquisition_id from accounts a
where s.tenant_id = a.tenant_id and s.account = a.account and s.acquisition_id <> a.acquisition_id`
