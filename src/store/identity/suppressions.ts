import type { IdentifierKind } from '../../domain/identity/identity.ts'
import { toEntryId } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'

/** The tenants that have suppressions. */
export async function findSuppressingTenants(db: Db, tenantIds: number[]): Promise<Set<number>> {
  const { rows } = await db.query<{ id: number }>(
    `select t.id from unnest($1::int[]) as t (id) where exists (select from suppressions s where s.tenant_id = t.id)`,
    [tenantIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/** The suppressed identifiers among these, by `<tenant> <hex>`. */
export async function findSuppressed(
  db: Db,
  names: { tenantId: number; hash: Buffer }[],
): Promise<Map<string, { kind: IdentifierKind; erasureId: string }>> {
  const { rows } = await db.query<{ text: string; kind: IdentifierKind; erasureId: string }>(
    `select s.tenant_id || ' ' || encode(s.hash, 'hex') as text, s.kind, s.erasure_id as "erasureId"
     from unnest($1::int[], $2::bytea[]) as n (tenant_id, hash)
     join suppressions s on s.tenant_id = n.tenant_id and s.hash = n.hash`,
    [names.map(({ tenantId }) => tenantId), names.map(({ hash }) => hash)],
  )
  return new Map(rows.map(({ text, ...found }) => [text, found]))
}

/** An identifier that is already suppressed keeps its erasure. */
export async function insertSuppressions(
  db: Db,
  tenantId: number,
  erasureId: string,
  names: { kind: IdentifierKind; hash: Buffer }[],
): Promise<void> {
  await db.query(
    `insert into suppressions (tenant_id, erasure_id, kind, hash)
     select $1, $2, n.kind, n.hash from unnest($3::text[], $4::bytea[]) as n (kind, hash)
     on conflict do nothing`,
    [tenantId, erasureId, names.map(({ kind }) => kind), names.map(({ hash }) => hash)],
  )
}

export type LearnedIdentifier = { tenantId: number; erasureId: string; kind: IdentifierKind; hash: Buffer }

/** The limit of learned identifiers per person, as for a profile, so that no one can suppress many others. */
const MAX_LEARNED = 200

/**
 * Visitor ids and other identifiers have separate limits per person. Anyone with a public key can send visitor ids, and
 * these must not use up the limit of the others.
 */
export async function insertLearned(db: Db, names: LearnedIdentifier[]): Promise<void> {
  await db.query(
    `insert into suppressions (tenant_id, erasure_id, kind, hash, learned)
     select n.tenant_id, n.erasure_id, n.kind, n.hash, true
     from (
       select *, row_number() over (partition by n.tenant_id, n.erasure_id, n.kind = 'visitor' order by n.hash) as nth
       from unnest($1::int[], $2::uuid[], $3::text[], $4::bytea[]) as n (tenant_id, erasure_id, kind, hash)
       where not exists (select from suppressions s where s.tenant_id = n.tenant_id and s.hash = n.hash)
     ) as n
     where n.nth + (
       select count(*) from suppressions s
       where s.tenant_id = n.tenant_id and s.erasure_id = n.erasure_id and s.learned
         and (s.kind = 'visitor') = (n.kind = 'visitor')) <= ${MAX_LEARNED}
     on conflict do nothing`,
    [
      names.map(({ tenantId }) => tenantId),
      names.map(({ erasureId }) => erasureId),
      names.map(({ kind }) => kind),
      names.map(({ hash }) => hash),
    ],
  )
}

type SuppressedPerson = {
  tenantId: number
  erasureId: string
  suppressedAt: Date
  names: { kind: IdentifierKind; hash: string }[]
}

/** Newest first. */
export async function listSuppressed(db: Db, tenantId: number, limit: number): Promise<SuppressedPerson[]> {
  const { rows } = await db.query<Omit<SuppressedPerson, 'names'> & { names: string }>(
    `select tenant_id as "tenantId", erasure_id as "erasureId", min(suppressed_at) as "suppressedAt",
       json_agg(json_build_object('kind', kind, 'hash', encode(hash, 'hex')) order by kind, hash)::text as names
     from suppressions where tenant_id = $1 group by tenant_id, erasure_id
     order by min(suppressed_at) desc, erasure_id desc limit $2`,
    [tenantId, limit],
  )
  return rows.map(row => ({ ...row, names: JSON.parse(row.names) }))
}

/** Deletes suppressions by erasure or by identifier. Returns the number of identifiers that are recorded again. */
export async function deleteSuppressed(
  db: Db,
  tenantId: number,
  { erasureId, hash }: { erasureId: string | null; hash: Buffer | null },
): Promise<{ erasureId: string; names: number } | null> {
  const { rows } = await db.query<{ erasureId: string; names: number }>(
    `with gone as (
       delete from suppressions where tenant_id = $1 and erasure_id = coalesce($2::uuid,
         (select erasure_id from suppressions where tenant_id = $1 and hash = $3))
       returning erasure_id
     )
     select erasure_id as "erasureId", count(*)::int as names from gone group by 1`,
    [tenantId, erasureId, hash],
  )
  return rows[0] ?? null
}

export type SuppressionCount = { tenantId: number; events: number; records: number }

/** Ordered by tenant, so that two transactions that count for the same tenants cannot deadlock. */
export async function countSuppressed(db: Db, counts: SuppressionCount[]): Promise<void> {
  const sorted = [...counts].sort((a, b) => a.tenantId - b.tenantId)
  await db.query(
    `insert into suppression_counts as c (tenant_id, events, records, last_at)
     select t.id, t.events, t.records, now() from unnest($1::int[], $2::bigint[], $3::bigint[]) as t (id, events, records)
     on conflict (tenant_id) do update
       set events = c.events + excluded.events, records = c.records + excluded.records, last_at = excluded.last_at`,
    [sorted.map(count => count.tenantId), sorted.map(count => count.events), sorted.map(count => count.records)],
  )
}

export async function loadSuppressionCount(
  db: Db,
  tenantId: number,
): Promise<{ events: number; records: number; lastAt: Date } | null> {
  const { rows } = await db.query<{ events: number; records: number; lastAt: Date }>(
    'select events, records, last_at as "lastAt" from suppression_counts where tenant_id = $1',
    [tenantId],
  )
  return rows[0] ?? null
}

/** Suppressed events and records of all tenants. */
export async function countAllSuppressed(db: Db): Promise<number> {
  const { rows } = await db.query<{ total: number }>(
    'select coalesce(sum(events + records), 0)::bigint as total from suppression_counts',
  )
  return rows[0]!.total
}

/** Deletes their entries from the log, in the transaction that read them. */
export async function deleteFromLog(
  db: Db,
  things: { tenantId: number; id: string; receivedAt: Date }[],
): Promise<void> {
  await db.query(
    `delete from log l using unnest($1::int[], $2::uuid[], $3::timestamptz[]) as e (tenant_id, id, received_at)
     where l.tenant_id = e.tenant_id and l.received_at = e.received_at and l.id = e.id`,
    [
      things.map(({ tenantId }) => tenantId),
      things.map(({ id }) => toEntryId(id)),
      things.map(({ receivedAt }) => receivedAt),
    ],
  )
}
