import { type Db, queryPrepared } from '../../postgres/database.ts'

/** Events of a type, or page views whose path matches a pattern with `*`. */
export type FunnelStep = { eventType: string } | { page: string }

export type FunnelQuestion = {
  steps: FunnelStep[]
  /** The bounds of the first step. Later steps may follow until `withinDays` after it. */
  since: Date
  until: Date
  withinDays: number
  /** Whether to group people by where they came from. */
  byOrigin: boolean
  pageTypes: readonly string[]
}

export type FunnelRow = {
  /** From 0. */
  step: number
  /** All people of the step, or those of one origin. */
  isTotal: boolean
  people: number
  /** From the first step. */
  medianSeconds: number
  source: string | null
  medium: string | null
  campaign: string | null
}

/** A funnel reads at most this number of events per step, so that one question cannot occupy the database. */
export const MAX_FUNNEL_EVENTS = 1_000_000

/** Null: a step matches too many events. One statement; a person is in a step if they did it after all steps before it. */
export async function funnelCounts(db: Db, tenantId: number, question: FunnelQuestion): Promise<FunnelRow[] | null> {
  const { text, values } = funnelStatement(tenantId, question)
  const { rows } = await queryPrepared<FunnelRow & { isComplete: boolean }>(db, text, values)
  return rows.some(row => !row.isComplete) ? null : rows.filter(({ step }) => step !== null)
}

function funnelStatement(
  tenantId: number,
  { steps, since, until, withinDays, byOrigin, pageTypes }: FunnelQuestion,
): { text: string; values: unknown[] } {
  const values: unknown[] = [tenantId, since, until, withinDays, MAX_FUNNEL_EVENTS]
  const add = (value: unknown) => `$${values.push(value)}`
  const types = steps.some(step => 'page' in step) ? add(pageTypes) : ''
  const found = steps.map((step, i) => {
    const until = i === 0 ? '$3' : `$3::timestamptz + $4 * interval '1 day'`
    const window = `tenant_id = $1 and occurred_at >= $2 and occurred_at <= ${until} and node is not null`
    const read =
      'page' in step
        ? // A limit before the filter, so that it bounds what is read.
          `select node, at, id from (
             select node, occurred_at as at, id, payload from events
             where ${window} and not conversion and event_type = any(${types}) limit $5 + 1) e
           where ${PATH} like ${add(likePattern(step.page))}`
        : `select node, occurred_at as at, id from events where ${window} and not conversion and event_type = ${add(step.eventType)}
           union all
           select node, occurred_at, id from conversions where ${window} and listed and conversion_type = $${values.length}
           union all
           select node, occurred_at, id from conversions
           where ${window} and listed and event_type = $${values.length} and event_type <> conversion_type`
    return `found${i} as materialized (select * from (${read}) e limit $5 + 1),
      step${i} as materialized (${i === 0 ? FIRST : nextStep(i)})`
  })
  const places = steps.map((_, i) => i)
  const size = places.map(i => `(select count(*) from found${i}) <= $5`).join(' and ')
  const reached = places.map(
    i => `select ${i} as step, profile, min(extract(epoch from at - start)) as seconds from step${i} group by profile`,
  )
  const text = `with ${found.join(',\n')},
    size as (select ${size} as is_complete),
    origins as (${byOrigin ? ORIGINS : NO_ORIGINS})
    select s.is_complete as "isComplete", g.* from size s left join (
      select r.step, grouping(o.source) = 1 as "isTotal", count(*) as people,
        percentile_cont(0.5) within group (order by r.seconds) as "medianSeconds", o.source, o.medium, o.campaign
      from (${reached.join(' union all ')}) r left join origins o on o.profile = r.profile
      group by grouping sets ((r.step), (r.step, o.source, o.medium, o.campaign))
    ) g on s.is_complete`
  return { text, values }
}

const PERSON = 'join identities i on i.tenant_id = $1 and i.node = e.node'
const FIRST = `select i.profile, e.at, e.id, e.at as start from found0 e ${PERSON}`

/**
 * Of each event, the latest start of the steps before it. Ordered by time and id, so that events of the same time are ordered
 * by their receipt; an event precedes itself, so that it is not two steps.
 */
const nextStep = (i: number) => `
  select profile, at, id, start from (
    select profile, at, id, is_step, max(start) over (
      partition by profile order by at, id, is_step desc rows unbounded preceding) as start
    from (
      select profile, at, id, start, false as is_step from step${i - 1}
      union all
      select i.profile, e.at, e.id, null, true from found${i} e ${PERSON}
    ) both_steps
  ) s where is_step and start is not null and at <= start + $4 * interval '1 day'`

const NO_ORIGINS = `
  select null::bigint as profile, null::text as source, null::text as medium, null::text as campaign where false`

/** The first touch of each person, as for channels. */
const ORIGINS = `
  select p.profile, t.source, t.medium, t.campaign from (select distinct profile from step0) p
  cross join lateral (
    select t.source, t.medium, t.campaign from identities m join touches t on t.tenant_id = $1 and t.node = m.node
    where m.tenant_id = $1 and m.profile = p.profile order by t.direct, t.occurred_at, t.event_id limit 1
  ) t`

// json, not jsonb: it does not convert numbers, of which some are too large. Longer URLs are cut, so that matching is fast.
const URL = `left(coalesce(payload::json ->> 'page', payload::json ->> 'url', payload::json -> 'properties' ->> 'url',
  payload::json -> 'context' -> 'page' ->> 'url', payload::json -> 'properties' ->> 'path',
  payload::json -> 'context' -> 'page' ->> 'path', ''), 2000)`
const PATH = `coalesce(nullif(regexp_replace(regexp_replace(${URL}, '^[a-zA-Z]+://[^/?#]*', ''), '[?#].*$', ''), ''), '/')`

function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')
}
