import type { Identifier, IdentifierKind } from '../../domain/identity/identity.ts'
import type { Cause, Link } from '../../domain/identity/linking.ts'
import type { Db } from '../../postgres/database.ts'
export type FoundIdentifier = Identifier & { node: number; profile: number }

/** Finds active identifiers by value, of any of these kinds. */
export async function findIdentifiers(
  db: Db,
  tenantId: number,
  wanted: { kinds: IdentifierKind[]; values: string[] },
): Promise<FoundIdentifier[]> {
  const { rows } = await db.query<FoundIdentifier>(
    `select kind, value, node, profile from identities
     where tenant_id = $1 and (kind, value) in (select * from unnest($2::text[], $3::text[])) and retired_at is null
     order by kind, value`,
    [tenantId, wanted.kinds, wanted.values],
  )
  return rows
}

/** The current profile: for a merged profile, the one it was merged into. Null if unknown. */
export async function findCurrentProfile(db: Db, tenantId: number, profile: number): Promise<number | null> {
  const { rows } = await db.query<{ profile: number; isThere: boolean }>(
    `with recursive way as (
       select $2::bigint as profile, 0 as step
       union all
       select taken.profile, way.step + 1 from way
       cross join lateral (
         select j.profile from identity_merges j
         where j.tenant_id = $1 and j.from_profile = way.profile and j.undone_at is null order by j.id desc limit 1
       ) taken
       where way.step < 1000 and not exists (select from identities where tenant_id = $1 and profile = way.profile)
     )
     select profile, exists (select from identities where tenant_id = $1 and profile = way.profile) as "isThere"
     from way order by step desc limit 1`,
    [tenantId, profile],
  )
  return rows[0]?.isThere ? rows[0].profile : null
}

export type ProfileIdentifier = Identifier & {
  node: number
  firstSeenAt: Date
  retiredAt: Date | null
  trusted: boolean
  /** Why it belongs to this profile. Null for the profile's first identifier. */
  cause: Cause | null
  joinedAt: Date | null
}

/** All identifiers of a profile, each with its first link to others. */
export async function listIdentifiers(db: Db, tenantId: number, profile: number): Promise<ProfileIdentifier[]> {
  const { rows } = await db.query<
    Omit<ProfileIdentifier, 'cause'> & { causeKind: Cause['kind'] | null; causeId: string | null }
  >(
    `select i.kind, i.value, i.node, i.first_seen_at as "firstSeenAt", i.retired_at as "retiredAt", i.trusted,
       j.cause as "causeKind", j.cause_id as "causeId", j.merged_at as "joinedAt"
     from identities i
     left join (
       select distinct on (node) n.node, j.cause, j.cause_id, j.merged_at
       from identity_merges j cross join unnest(j.nodes) as n (node)
       where j.tenant_id = $1 and j.undone_at is null and n.node = any(
         array(select node from identities where tenant_id = $1 and profile = $2))
         and (j.profile = $2 or j.profile = any(${MERGED_INTO}))
       order by n.node, j.id
     ) j on j.node = i.node
     where i.tenant_id = $1 and i.profile = $2 order by i.node`,
    [tenantId, profile],
  )
  return rows.map(({ causeKind, causeId, ...name }) => ({
    ...name,
    cause: causeKind === null ? null : { kind: causeKind, id: causeId! },
  }))
}

// Profiles that were merged into this one, and itself.
const MERGED_INTO = `array(
  with recursive merged as (
    select $2::bigint as profile
    union
    select j.from_profile from merged m
    join identity_merges j on j.tenant_id = $1 and j.profile = m.profile and j.undone_at is null
  ) select profile from merged)`

/** The active links between two nodes of this profile. */
export async function loadLinks(db: Db, tenantId: number, profile: number): Promise<Link[]> {
  const { rows } = await db.query<Link>(
    `select j.id, coalesce(j.node, j.from_profile) as node, coalesce(j.other, j.profile) as other, j.profile,
       j.from_profile as "fromProfile"
     from identity_merges j
     join identities a on a.tenant_id = $1 and a.node = coalesce(j.node, j.from_profile) and a.profile = $2
     join identities b on b.tenant_id = $1 and b.node = coalesce(j.other, j.profile) and b.profile = $2
     where j.tenant_id = $1 and j.profile = any(${MERGED_INTO}) and j.undone_at is null order by j.id`,
    [tenantId, profile],
  )
  return rows
}

/** Profiles that were merged into this one, in order. */
export async function listMergedProfiles(db: Db, tenantId: number, profile: number): Promise<number[]> {
  const { rows } = await db.query<{ profile: number }>(
    `select j.from_profile as profile from identity_merges j
     where j.tenant_id = $1 and j.profile = any(${MERGED_INTO}) and j.undone_at is null
       and not exists (
         -- a name that moved on was no profile
         select from identities i
         join identities b on b.tenant_id = i.tenant_id and b.kind = i.kind and b.value = i.value and b.node < i.node
         where i.tenant_id = $1 and i.node = j.from_profile and b.retired_at is not null)
     order by j.id`,
    [tenantId, profile],
  )
  return rows.map(row => row.profile)
}

export async function undoLink(db: Db, tenantId: number, id: number): Promise<void> {
  await db.query('update identity_merges set undone_at = now() where tenant_id = $1 and id = $2', [tenantId, id])
}

export async function assignNodes(db: Db, tenantId: number, nodes: number[], profile: number): Promise<void> {
  await db.query(
    'update identities set profile = $3 where tenant_id = $1 and node = any($2::bigint[]) and profile <> $3',
    [tenantId, nodes, profile],
  )
}

export async function updateLinks(
  db: Db,
  tenantId: number,
  links: Pick<Link, 'id' | 'profile' | 'fromProfile'>[],
): Promise<void> {
  await db.query(
    `update identity_merges j set profile = n.profile, from_profile = n.from_profile
     from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as n (id, profile, from_profile)
     where j.tenant_id = $1 and j.id = n.id`,
    [
      tenantId,
      links.map(({ id }) => id),
      links.map(({ profile }) => profile),
      links.map(({ fromProfile }) => fromProfile),
    ],
  )
}

export async function listNodes(db: Db, tenantId: number, profile: number): Promise<number[]> {
  const { rows } = await db.query<{ node: number }>(
    'select node from identities where tenant_id = $1 and profile = $2 order by node',
    [tenantId, profile],
  )
  return rows.map(({ node }) => node)
}

/** The node that an identifier had before it moved to this one, and its profile. */
export async function findPreviousNode(
  db: Db,
  tenantId: number,
  node: number,
): Promise<{ node: number; profile: number } | null> {
  const { rows } = await db.query<{ node: number; profile: number }>(
    `select b.node, b.profile from identities i
     join identities b on b.tenant_id = i.tenant_id and b.kind = i.kind and b.value = i.value and b.node < i.node
     where i.tenant_id = $1 and i.node = $2 and b.retired_at is not null order by b.node desc limit 1`,
    [tenantId, node],
  )
  return rows[0] ?? null
}

/** Counts what an export of the person lists: a sale is theirs by its event, its order, or the contact of the order. */
export async function countProfileData(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<{ events: number; conversions: number }> {
  // There is no index from people to events, because it would make every insert slower.
  const { rows } = await db.query<{ events: number; conversions: number }>(
    `select (select count(*) from events where tenant_id = $1 and node = any($2::bigint[])) as events,
       (select count(*) from conversions
        where tenant_id = $1 and listed
          and (event_node = any($2::bigint[]) or order_node = any($2::bigint[]) or order_contact_id = any($3))
       ) as conversions`,
    [tenantId, nodes, contactIds],
  )
  return rows[0]!
}

type NamedContact = { id: string; profile: number | null; data: string }

/** Contacts whose name, or its last word, starts with the text, with their profiles. */
export async function searchContacts(db: Db, tenantId: number, text: string, limit: number): Promise<NamedContact[]> {
  // A prefix search as a range: from the prefix to the prefix followed by the greatest character, compared by bytes.
  const named = (name: string) => {
    const known = `(tenant_id::text || ' ' || ${name}) collate "C"`
    const wanted = `$1::int::text || ' ' || lower($2)`
    return `(select id, data from records
      where ${known} between ${wanted} and ${wanted} || chr(1114111) and entity_type = 'contact' and not deleted
      order by ${known} limit $3)`
  }
  const { rows } = await db.query<NamedContact>(
    `select distinct on (c.id) c.id, c.data::text as data, i.profile from (
       ${named('contact_name(data)')} union all ${named(`split_part(contact_name(data), ' ', -1)`)}
     ) c left join identities i on i.tenant_id = $1 and i.kind = 'contact' and i.value = c.id and i.retired_at is null
     order by c.id limit $3`,
    [tenantId, text, limit],
  )
  return rows
}

type FoundProfile = Identifier & { profile: number }

/** Active identifiers that start with the text. E-mail addresses are stored in lower case. */
export async function searchProfiles(db: Db, tenantId: number, text: string, limit: number): Promise<FoundProfile[]> {
  const { rows } = await db.query<FoundProfile>(
    `select i.kind, i.value, i.profile
     from unnest(array['email', 'user', 'contact', 'visitor'], array[lower($2), $2, $2, $2]) with ordinality as n (kind, text, place)
     cross join lateral (
       select kind, value, profile from identities
       where tenant_id = $1 and kind = n.kind and value between n.text and n.text || chr(1114111) and retired_at is null
       order by value limit $3
     ) i order by n.place, i.value limit $3`,
    [tenantId, text, limit],
  )
  return rows
}

// The export of a person: rows as JSON text.

/** Their contacts or orders, in the latest version received. */
export async function readRecords(
  db: Db,
  tenantId: number,
  entityType: 'contact' | 'order',
  ids: string[],
): Promise<string[]> {
  return readTexts(
    db,
    `select json_build_object('type', entity_type, 'id', id, 'externalId', external_id, 'sourceUpdatedAt', source_updated_at,
       'data', data)::text as text
     from records where tenant_id = $1 and entity_type = $2 and id = any($3) and not deleted order by id`,
    [tenantId, entityType, ids],
  )
}

/** Conversions of these nodes, and the orders behind them. */
export async function readConversions(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<{ text: string; orderId: string | null }[]> {
  const { rows } = await db.query<{ text: string; orderId: string | null }>(
    `select json_build_object('type', 'conversion', 'id', id, 'occurred_at', occurred_at, 'conversion_type', conversion_type,
       'event_type', event_type, 'source', source, 'source_object_id', object_id,
       'amount', coalesce(order_amount, event_amount),
       'currency', case when order_amount is not null then order_currency else coalesce(event_currency, order_currency) end,
       'visitor', event_visitor, 'contact_id', order_contact_id)::text as text,
       case when order_state = 'live' then order_id end as "orderId"
     from conversions
     where tenant_id = $1 and listed
       and (event_node = any($2::bigint[]) or order_node = any($2::bigint[]) or order_contact_id = any($3))
     order by occurred_at, id`,
    [tenantId, nodes, contactIds],
  )
  return rows
}

/** Their billing accounts, with the current state of their subscriptions and invoices. */
export async function readBilling(
  db: Db,
  tenantId: number,
  { nodes, customers, emails }: { nodes: number[]; customers: string[]; emails: string[] },
): Promise<string[]> {
  return readTexts(
    db,
    `select json_build_object('type', 'billing_account', 'customer', a.account,
       'subscriptions', coalesce((
         select json_agg(json_build_object('id', s.subscription_id, 'status', s.status, 'currency', s.currency, 'body', s.body))
         from (select distinct on (subscription_id) * from billing_segments
               where tenant_id = $1 and account = a.account order by subscription_id, valid_from desc) s), '[]'),
       'invoices', coalesce((
         select json_agg(json_build_object('id', i.id, 'subscription', i.subscription_id, 'customer_name', i.customer_name,
           'customer_email', i.customer_email, 'currency', i.currency, 'last_at', i.last_at) order by i.id)
         from billing_invoices i where i.tenant_id = $1 and i.customer = a.account), '[]'))::text as text
     from billing_accounts a
     where a.tenant_id = $1 and (a.node = any($2::bigint[]) or a.account = any($3) or lower(a.account) = any($4))
     order by a.account`,
    [tenantId, nodes, customers, emails],
  )
}

/** Their touches. */
export async function readTouches(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  return readTexts(
    db,
    `select json_build_object('type', 'touch', 'occurred_at', occurred_at, 'event_id', event_id, 'source', source,
       'medium', medium, 'campaign', campaign, 'direct', direct)::text as text
     from touches where tenant_id = $1 and node = any($2::bigint[]) order by occurred_at, node`,
    [tenantId, nodes],
  )
}

async function readTexts(db: Db, statement: string, values: unknown[]): Promise<string[]> {
  const { rows } = await db.query<{ text: string }>(statement, values)
  return rows.map(({ text }) => text)
}
