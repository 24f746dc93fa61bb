import type { Identifier, IdentifierKind } from '../../domain/identity/identifiers.ts'
import type { Cause } from '../../domain/identity/linking.ts'
import type { Db } from '../../postgres/database.ts'
import { OWN_ACCOUNT } from '../billing/merges.ts'
import { IS_THEIR_SALE } from '../conversions/conversions.ts'

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

/** The user ids and contact ids that a link connects with this node, also those of other profiles. */
export async function findLinkedIdentifiers(db: Db, tenantId: number, node: number): Promise<FoundIdentifier[]> {
  const { rows } = await db.query<FoundIdentifier>(
    `select i.kind, i.value, i.node, i.profile from (
       select a as node from identity_links where tenant_id = $1 and b = $2
       union
       select b from identity_links where tenant_id = $1 and a = $2
     ) l join identities i on i.tenant_id = $1 and i.node = l.node
     where i.kind in ('user', 'contact') and i.retired_at is null order by i.node`,
    [tenantId, node],
  )
  return rows
}

/** The current profile of a profile id, which is the id of a node. Null if unknown. */
export async function findCurrentProfile(db: Db, tenantId: number, profile: number): Promise<number | null> {
  const { rows } = await db.query<{ profile: number }>(
    'select profile from identities where tenant_id = $1 and node = $2',
    [tenantId, profile],
  )
  return rows[0]?.profile ?? null
}

export type ProfileIdentifier = Identifier & {
  node: number
  firstSeenAt: Date
  retiredAt: Date | null
  /** Named by verified input. */
  isVerified: boolean
  /** Why it belongs to this profile: its first link with another identifier, verified ones first. Null if it has none. */
  cause: Cause | null
  linkedAt: Date | null
}

/** All identifiers of a profile. */
export async function listIdentifiers(db: Db, tenantId: number, profile: number): Promise<ProfileIdentifier[]> {
  const { rows } = await db.query<
    Omit<ProfileIdentifier, 'cause'> & { causeKind: Cause['kind'] | null; causeId: string | null }
  >(
    `with own as materialized (
       select node, kind, value, first_seen_at, retired_at, verified from identities
       where tenant_id = $1 and profile = $2
     ), links as (
       select l.* from own join identity_links l on l.tenant_id = $1 and l.a = own.node
       where l.undone_at is null and l.b in (select node from own)
     )
     select own.kind, own.value, own.node, own.first_seen_at as "firstSeenAt", own.retired_at as "retiredAt",
       own.verified as "isVerified", l.cause as "causeKind", l.cause_id as "causeId", l.linked_at as "linkedAt"
     from own left join (
       select distinct on (e.node) e.node, e.cause, e.cause_id, e.linked_at from (
         select a as node, verified, cause, cause_id, linked_at from links
         union all
         select b, verified, cause, cause_id, linked_at from links
       ) e order by e.node, e.verified desc, e.linked_at, e.cause_id
     ) l on l.node = own.node order by own.node`,
    [tenantId, profile],
  )
  return rows.map(({ causeKind, causeId, ...name }) => ({
    ...name,
    cause: causeKind === null ? null : { kind: causeKind, id: causeId! },
  }))
}

export type Claim = {
  /** The identifier of this profile, and that of the other one. */
  own: Identifier
  other: Identifier & { profile: number }
  isVerified: boolean
  cause: Cause
  linkedAt: Date
}

const MAX_CLAIMS = 100

/** Links with identifiers of other profiles, the first 100. They connect nothing. */
export async function listClaims(db: Db, tenantId: number, profile: number): Promise<Claim[]> {
  const { rows } = await db.query<{
    kind: IdentifierKind
    value: string
    otherKind: IdentifierKind
    otherValue: string
    otherProfile: number
    isVerified: boolean
    causeKind: Cause['kind']
    causeId: string
    linkedAt: Date
  }>(
    `with own as materialized (select node, kind, value from identities where tenant_id = $1 and profile = $2)
     select own.kind, own.value, o.kind as "otherKind", o.value as "otherValue", o.profile as "otherProfile",
       l.verified as "isVerified", l.cause as "causeKind", l.cause_id as "causeId", l.linked_at as "linkedAt"
     from (
       select own.node, l.b as other, l.* from own join identity_links l on l.tenant_id = $1 and l.a = own.node
       union all
       select own.node, l.a as other, l.* from own join identity_links l on l.tenant_id = $1 and l.b = own.node
     ) l
     join own on own.node = l.node
     join identities o on o.tenant_id = $1 and o.node = l.other and o.profile <> $2
     where l.undone_at is null and own.kind <> 'visitor' and o.kind <> 'visitor'
     order by l.linked_at, l.cause_id limit ${MAX_CLAIMS}`,
    [tenantId, profile],
  )
  return rows.map(row => ({
    own: { kind: row.kind, value: row.value },
    other: { kind: row.otherKind, value: row.otherValue, profile: row.otherProfile },
    isVerified: row.isVerified,
    cause: { kind: row.causeKind, id: row.causeId },
    linkedAt: row.linkedAt,
  }))
}

/** Former ids of this profile: those of its nodes, of visitor ids only the first. */
export async function listMergedProfiles(db: Db, tenantId: number, profile: number): Promise<number[]> {
  const { rows } = await db.query<{ node: number }>(
    `select i.node from identities i
     where i.tenant_id = $1 and i.profile = $2 and i.node <> $2
       and (i.kind <> 'visitor' or not exists (
         select from identities b
         where b.tenant_id = $1 and b.kind = 'visitor' and b.value = i.value and b.node < i.node and b.retired_at is null)
       and not exists (
         select from identities b
         where b.tenant_id = $1 and b.kind = 'visitor' and b.value = i.value and b.node < i.node and b.retired_at is not null))
     order by i.node`,
    [tenantId, profile],
  )
  return rows.map(row => row.node)
}

export async function listNodes(db: Db, tenantId: number, profile: number): Promise<number[]> {
  const { rows } = await db.query<{ node: number }>(
    'select node from identities where tenant_id = $1 and profile = $2 order by node',
    [tenantId, profile],
  )
  return rows.map(({ node }) => node)
}

/** Counts what the lists show as this person's. An export and an erasure are stricter about sales (IS_THEIR_SALE). */
export async function countProfileData(
  db: Db,
  tenantId: number,
  nodes: number[],
): Promise<{ events: number; conversions: number }> {
  const { text, values } = profileCounts(tenantId, nodes)
  const { rows } = await db.query<{ events: number; conversions: number }>(text, values)
  return rows[0]!
}

/** The statement. Exported so that a test can check its plan. */
export function profileCounts(tenantId: number, nodes: number[]) {
  const text = `
    select (select count(*) from events where tenant_id = $1 and node = any($2::bigint[])) as events,
      (select count(*) from conversions where tenant_id = $1 and listed and node = any($2::bigint[])) as conversions`
  return { text, values: [tenantId, nodes] }
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

type SaleText = { text: string; orderId: string | null }

/** The conversions that the lists show as this person's, and the orders behind them. */
export function readListedConversions(db: Db, tenantId: number, nodes: number[]): Promise<SaleText[]> {
  return readSaleTexts(db, 'node = any($2::bigint[])', [tenantId, nodes])
}

/** The conversions that belong to the person, and the orders behind them, for an export. */
export function readOwnConversions(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<SaleText[]> {
  return readSaleTexts(db, IS_THEIR_SALE, [tenantId, nodes, contactIds])
}

async function readSaleTexts(db: Db, condition: string, values: unknown[]): Promise<SaleText[]> {
  const { rows } = await db.query<SaleText>(
    `select json_build_object('type', 'conversion', 'id', id, 'occurred_at', occurred_at, 'conversion_type', conversion_type,
       'event_type', event_type, 'source', source, 'source_object_id', object_id,
       'amount', coalesce(order_amount, event_amount),
       'currency', case when order_amount is not null then order_currency else coalesce(event_currency, order_currency) end,
       'visitor', visitor, 'contact_id', order_contact_id)::text as text,
       case when order_state = 'live' then order_id end as "orderId"
     from conversions
     where tenant_id = $1 and listed and ${condition}
     order by occurred_at, id`,
    values,
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
               where tenant_id = $1 and account = coalesce(m.into_account, a.account) and ${OWN_ACCOUNT} = a.account
               order by subscription_id, valid_from desc) s), '[]'),
       'invoices', coalesce((
         select json_agg(json_build_object('id', i.id, 'subscription', i.subscription_id, 'customer_name', i.customer_name,
           'customer_email', i.customer_email, 'currency', i.currency, 'last_at', i.last_at) order by i.id)
         from billing_invoices i where i.tenant_id = $1 and i.customer = a.account), '[]'))::text as text
     from billing_accounts a
     left join billing_account_merges m on m.tenant_id = $1 and m.account = a.account
     where a.tenant_id = $1 and (a.node = any($2::bigint[]) or a.account = any($3) or lower(a.account) = any($4))
     order by a.account`,
    [tenantId, nodes, customers, emails],
  )
}

/** Their newest events since then, with type, time and payload. */
export async function readNewestEvents(db: Db, tenantId: number, newest: NewestEvents): Promise<string[]> {
  const { text, values } = newestEvents(tenantId, newest)
  return readTexts(db, text, values)
}

type NewestEvents = { nodes: number[]; since: Date; limit: number }

/** The statement. Exported so that a test can check its plan. */
export function newestEvents(tenantId: number, { nodes, since, limit }: NewestEvents) {
  const text = `
    select json_build_object('type', 'event', 'id', id, 'event_type', event_type, 'occurred_at', occurred_at,
      'source', source, 'payload', payload::json)::text as text
    from events where tenant_id = $1 and occurred_at >= $3 and node = any($2::bigint[])
    order by occurred_at desc, id desc limit $4`
  return { text, values: [tenantId, nodes, since, limit] }
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
