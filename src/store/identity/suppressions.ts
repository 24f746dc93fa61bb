import type { IdentifierKind } from '../../domain/identity/identifiers.ts'
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

/** `unverifiedOnly`: it suppresses only unverified input, because only unverified input links it to the person. */
export type SuppressedIdentifier = { kind: IdentifierKind; erasureId: string; unverifiedOnly: boolean }

/** The suppressed identifiers among these, by `<tenant> <hex>`. */
export async function findSuppressed(
  db: Db,
  names: { tenantId: number; hash: Buffer }[],
): Promise<Map<string, SuppressedIdentifier>> {
  const { rows } = await db.query<SuppressedIdentifier & { text: string }>(
    `select s.tenant_id || ' ' || encode(s.hash, 'hex') as text, s.kind, s.erasure_id as "erasureId",
       s.unverified_only as "unverifiedOnly"
     from unnest($1::int[], $2::bytea[]) as n (tenant_id, hash)
     join suppressions s on s.tenant_id = n.tenant_id and s.hash = n.hash`,
    [names.map(({ tenantId }) => tenantId), names.map(({ hash }) => hash)],
  )
  return new Map(rows.map(({ text, ...found }) => [text, found]))
}

/** An identifier that is already suppressed keeps its erasure, unless it suppressed only unverified input until now. */
export async function insertSuppressions(
  db: Db,
  tenantId: number,
  erasureId: string,
  names: { kind: IdentifierKind; hash: Buffer; unverifiedOnly: boolean }[],
): Promise<void> {
  await db.query(
    `insert into suppressions as s (tenant_id, erasure_id, kind, hash, unverified_only)
     select distinct on (n.hash) $1::int, $2::uuid, n.kind, n.hash, n.unverified_only
     from unnest($3::text[], $4::bytea[], $5::boolean[]) as n (kind, hash, unverified_only)
     order by n.hash, n.unverified_only
     on conflict (tenant_id, hash) do update set erasure_id = excluded.erasure_id, learned = false, unverified_only = false
       where s.unverified_only and not excluded.unverified_only`,
    [
      ...[tenantId, erasureId, names.map(({ kind }) => kind), names.map(({ hash }) => hash)],
      names.map(({ unverifiedOnly }) => unverifiedOnly),
    ],
  )
}

export type LearnedIdentifier = SuppressedIdentifier & { tenantId: number; hash: Buffer }

/** The limit of learned identifiers per person, as for a profile, so that no one can suppress many others. */
const MAX_LEARNED = 200

/**
 * Visitor ids and other identifiers have separate limits per person, and so have identifiers of unverified input. Anyone
 * with a public tracking key can send visitor ids, and these must not use up the limit of the others.
 */
export async function insertLearned(db: Db, names: LearnedIdentifier[]): Promise<void> {
  await db.query(
    `insert into suppressions as s (tenant_id, erasure_id, kind, hash, learned, unverified_only)
     select n.tenant_id, n.erasure_id, n.kind, n.hash, true, n.unverified_only
     from (
       select *, row_number() over (
         partition by n.tenant_id, n.erasure_id, n.kind = 'visitor', n.unverified_only order by n.hash) as nth
       from (
         select distinct on (n.tenant_id, n.hash) n.*
         from unnest($1::int[], $2::uuid[], $3::text[], $4::bytea[], $5::boolean[])
           as n (tenant_id, erasure_id, kind, hash, unverified_only)
         order by n.tenant_id, n.hash, n.unverified_only
       ) as n
       where not exists (
         select from suppressions s
         where s.tenant_id = n.tenant_id and s.hash = n.hash and (n.unverified_only or not s.unverified_only))
     ) as n
     where n.nth + (
       select count(*) from suppressions s
       where s.tenant_id = n.tenant_id and s.erasure_id = n.erasure_id and s.learned
         and (s.kind = 'visitor') = (n.kind = 'visitor') and s.unverified_only = n.unverified_only) <= ${MAX_LEARNED}
     on conflict (tenant_id, hash) do update set erasure_id = excluded.erasure_id, learned = true, unverified_only = false
       where s.unverified_only and not excluded.unverified_only`,
    [
      names.map(({ tenantId }) => tenantId),
      names.map(({ erasureId }) => erasureId),
      names.map(({ kind }) => kind),
      names.map(({ hash }) => hash),
      names.map(({ unverifiedOnly }) => unverifiedOnly),
    ],
  )
}

type SuppressedPerson = {
  tenantId: number
  erasureId: string
  suppressedAt: Date
  names: { kind: IdentifierKind; hash: string; unverified_only: boolean }[]
}

/** Newest first. */
export async function listSuppressed(db: Db, tenantId: number, limit: number): Promise<SuppressedPerson[]> {
  const { rows } = await db.query<Omit<SuppressedPerson, 'names'> & { names: string }>(
    `select tenant_id as "tenantId", erasure_id as "erasureId", min(suppressed_at) as "suppressedAt",
       json_agg(json_build_object('kind', kind, 'hash', encode(hash, 'hex'), 'unverified_only', unverified_only)
         order by kind, hash)::text as names
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
