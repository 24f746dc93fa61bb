import type { Db } from '../../postgres/database.ts'

/** People who came in a window, grouped by their channel. */
export type ChannelCounts = {
  channel: string | null
  people: number
  /** Those with a touch. The others were imported, or came before Kontor. */
  visitors: number
  trials: number
  customers: number
  /** JSON text: by currency, revenue in major units and MRR in minor units. */
  amounts: string | null
}

type Window = { since: Date; until: Date }

/** Customers and leads. */
export async function customersByChannel(db: Db, tenantId: number, { since, until }: Window): Promise<ChannelCounts[]> {
  const { rows } = await db.query<ChannelCounts>(
    `with arrived as materialized (
       select profile, channel, trialed, customer_since from customers
       where tenant_id = $1 and acquired_at >= $2 and acquired_at <= $3
     ), amounts as (
       select channel, json_object_agg(currency, json_build_object('revenue', revenue::text, 'mrr', mrr)) as amounts from (
         select a.channel, m.currency, sum(m.revenue) as revenue, sum(m.mrr)::bigint as mrr from arrived a
         join customer_amounts m on m.tenant_id = $1 and m.profile = a.profile group by 1, 2
       ) sums group by 1
     )
     select a.channel, a.people, a.visitors, a.trials, a.customers, m.amounts from (
       select channel, count(*) as people, count(channel) as visitors, count(*) filter (where trialed) as trials,
         count(customer_since) as customers
       from arrived group by 1
     ) a left join amounts m on m.channel is not distinct from a.channel`,
    [tenantId, since, until],
  )
  return rows
}

export type OriginCounts = {
  source: string
  medium: string | null
  campaign: string | null
  visitors: number
  identified: number
}

// A tracking key is public: anyone can send any number of sources. The rest is counted as `other`.
const MAX_ORIGINS = 5_000

/** Visitors who are no customers, by the first touch of their profile. */
export async function visitorsByOrigin(
  db: Db,
  tenantId: number,
  { since, until }: Window,
  byCampaign: boolean,
): Promise<OriginCounts[]> {
  const { rows } = await db.query<OriginCounts>(
    `with arrived as materialized (
       select distinct i.profile from touches t
       join identities i on i.tenant_id = $1 and i.node = t.node
       where t.tenant_id = $1 and t.occurred_at >= $2 and t.occurred_at <= $3
     ), origins as (
       select f.source, f.medium, f.campaign, f.identified from arrived a
       cross join lateral (
         select t.source, t.medium, case when $5 then t.campaign end as campaign, t.occurred_at,
           bool_or(m.kind <> 'visitor') over () as identified
         from identities m left join touches t on t.tenant_id = $1 and t.node = m.node
         where m.tenant_id = $1 and m.profile = a.profile
         order by t.direct, t.occurred_at, t.event_id limit 1
       ) f
       where f.occurred_at >= $2 and f.occurred_at <= $3
         and not exists (select from customers c where c.tenant_id = $1 and c.profile = a.profile)
     ), counted as (
       select source, medium, campaign, count(*) as visitors, count(*) filter (where identified) as identified,
         row_number() over (order by count(*) desc, source, medium, campaign) as place
       from origins group by 1, 2, 3
     )
     select source, medium, campaign, visitors, identified from counted where place <= $4
     union all
     select '', null, null, sum(visitors)::bigint, sum(identified)::bigint from counted where place > $4 having count(*) > 0`,
    [tenantId, since, until, MAX_ORIGINS, byCampaign],
  )
  return rows
}
