import type { Acquisition } from '../../domain/billing/types.ts'
import type { NodeKey } from '../../domain/identity/identity.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { ObjectKey } from './keys.ts'

type OfTenant = { tenantId: number; acquisition: Acquisition | null }

/** The ids of these sources, in their order; what is new gets one. null: 0, which is none. */
export async function acquisitionIds(db: Db, acquisitions: OfTenant[]): Promise<number[]> {
  const distinct = new Map(
    acquisitions.flatMap(({ tenantId, acquisition }) =>
      acquisition === null
        ? []
        : [[acquisitionText(tenantId, acquisition), { tenantId, ...acquisition }] as const],
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
 * Accounts of these people that do not say themselves where they came from. With `offset 0` each step goes by its
 * index: no plan depends on what PostgreSQL believes of a tenant that it has not counted yet.
 */
export async function accountsOfPeople(db: Db, people: NodeKey[]): Promise<ObjectKey[]> {
  const { rows } = await queryPrepared<ObjectKey>(
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
  return rows
}

/**
 * How these people first came, by the first touch of everyone whom their profile is known as: one that names a sender
 * before a direct one (see `isEarlierTouch`). Whoever has been erased is not among them.
 */
export async function firstTouches(
  db: Db,
  people: NodeKey[],
): Promise<(NodeKey & { acquisition: Acquisition | null })[]> {
  const { rows } = await queryPrepared<NodeKey & { source: string | null } & Omit<Acquisition, 'source'>>(
    db,
    `select p.tenant_id as "tenantId", p.node, t.source, t.medium, t.campaign
     from unnest($1::int[], $2::bigint[]) as p (tenant_id, node)
     cross join lateral (
       select profile from identities where tenant_id = p.tenant_id and node = p.node offset 0) i
     left join lateral (
       select t.source, t.medium, t.campaign from (
         select node from identities where tenant_id = p.tenant_id and profile = i.profile offset 0) m
       cross join lateral (
         select * from touches where tenant_id = p.tenant_id and node = m.node offset 0) t
       order by t.direct, t.occurred_at, t.event_id limit 1
     ) t on true`,
    [people.map(person => person.tenantId), people.map(person => person.node)],
  )
  return rows.map(({ tenantId, node, source, medium, campaign }) => ({
    tenantId,
    node,
    acquisition: source === null ? null : { source, medium, campaign },
  }))
}
