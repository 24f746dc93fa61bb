import { type Device, type EventColumns, type FunnelTerms, matchSteps } from '../../domain/customers/funnel.ts'
import { type Db, queryRows } from '../../postgres/database.ts'
import { DAY_IS_CURRENT, DEVICE, pathOf, toColumns } from '../events/days.ts'
import { hasId } from '../events/events.ts'

type ColumnsRow = { nodes: Buffer; times: Buffer; kinds: Buffer; kindNames: string }
const COLUMNS = `nodes, times, kinds, kind_names as "kindNames"`

/** A range of time: `until` is not included. */
type Range = { since: number; until: number }

/** The events of the days (UTC) in the range whose columns are current. */
export async function readCurrentDays(
  db: Db,
  tenantId: number,
  { since, until }: Range,
  terms: FunnelTerms,
): Promise<EventColumns[]> {
  const rows = await queryRows<ColumnsRow & { start: Date }>(
    db,
    `select d.day::timestamptz as start, ${COLUMNS} from event_days d
     where d.tenant_id = $1 and d.day >= $2::timestamptz::date and d.day::timestamptz < $3 and d.nodes is not null
       and ${DAY_IS_CURRENT}
     order by d.day`,
    [tenantId, new Date(since), new Date(until)],
  )
  return rows.map(({ start, ...row }) =>
    decode(start.getTime(), row, ([type, path, device]) =>
      matchSteps({ types: [type!], path: path!, device: device as Device, isSale: false }, terms),
    ),
  )
}

/** The events of these types in the range, at most `limit`. PostgreSQL finds the steps: a million pages have a million paths. */
export async function readEventColumns(
  db: Db,
  tenantId: number,
  { since, until }: Range,
  { types, limit, terms }: { types: string[]; limit: number; terms: FunnelTerms },
): Promise<EventColumns> {
  const values: unknown[] = [tenantId, new Date(since), new Date(until), types, limit]
  const add = (value: unknown) => `$${values.push(value)}`
  const pageTypes = terms.steps.some(step => 'pages' in step) ? `${add([...terms.pageTypes])}::text[]` : `'{}'::text[]`
  const bits = terms.steps.map((step, i) => {
    const matches =
      'pages' in step
        ? `event_type = any(${pageTypes}) and path like any(${add(step.pages.map(likePattern))}::text[])`
        : `event_type = ${add(step.eventType)}`
    const isOn = i === 0 && terms.device !== null ? `and device = ${add(terms.device)}` : ''
    return `case when ${matches} ${isOn} then ${1 << i} else 0 end`
  })
  const rows = await queryRows<ColumnsRow>(
    db,
    `select ${COLUMNS} from (${toColumns(
      `select occurred_at, id, node, (${bits.join(' + ')})::text as name, '' as path, '' as device from (
         select occurred_at, id, node, event_type, ${pathOf(pageTypes)} as path,
           ${terms.device === null ? `''` : DEVICE} as device
         from events
         where tenant_id = $1 and occurred_at >= $2 and occurred_at < $3 and not conversion and event_type = any($4)
           and hashtext(event_type) = any(array(select hashtext(type) from unnest($4::text[]) type))
           and node is not null
         limit $5
       ) e`,
      '$2::timestamptz',
    )}) c`,
    values,
  )
  return decode(since, rows[0]!, ([steps]) => Number(steps))
}

function likePattern(pattern: string): string {
  return pattern.replace(/[\\%_]/g, '\\$&').replaceAll('*', '%')
}

/** The same for conversions, which count as their conversion type and as the type of their event. */
export async function readSaleColumns(
  db: Db,
  tenantId: number,
  { since, until }: Range,
  { types, limit, terms }: { types: string[]; limit: number; terms: FunnelTerms },
): Promise<EventColumns> {
  const window = 'tenant_id = $1 and occurred_at >= $2 and occurred_at < $3 and listed and node is not null'
  const [first] = terms.steps
  const typeOnDevice = terms.device !== null && 'eventType' in first! ? first.eventType : null
  const columns = `occurred_at, id, node, conversion_type as name, coalesce(event_type, '') as path,
    case when $6 in (conversion_type, event_type) then coalesce((
      select ${DEVICE} from events e
      where e.tenant_id = $1 and e.occurred_at = c.event_occurred_at and ${hasId('c.event_id')}), 'other') else '' end as device`
  const rows = await queryRows<ColumnsRow>(
    db,
    `select ${COLUMNS} from (${toColumns(
      `select * from (
         select ${columns} from conversions c where ${window} and conversion_type = any($4)
         union all
         select ${columns} from conversions c
         where ${window} and event_type = any($4) and event_type <> conversion_type and not conversion_type = any($4)
       ) sales limit $5`,
      '$2::timestamptz',
    )}) c`,
    [tenantId, new Date(since), new Date(until), types, limit, typeOnDevice],
  )
  return decode(since, rows[0]!, ([conversion, event, device]) =>
    matchSteps({ types: [conversion!, event!], path: '', device: device as Device, isSale: true }, terms),
  )
}

/** `stepsOf`: the steps of a kind by its names. */
function decode(
  start: number,
  { kindNames, ...columns }: ColumnsRow,
  stepsOf: (names: string[]) => number,
): EventColumns {
  const names: string[][] = JSON.parse(kindNames)
  return { start, ...columns, stepsOfKind: Uint8Array.from(names, stepsOf) }
}

// node-postgres writes each element separately, which takes longer than the query.
const asArray = (values: number[]) => `{${values.join()}}`

/** Of these nodes, those whose profile has another number, and those without a person (null). */
export async function findOtherProfiles(
  db: Db,
  tenantId: number,
  nodes: number[],
): Promise<Map<number, number | null>> {
  // `= any` scans the index once. A join with unnest searches it for each node, which takes three times as long.
  const rows = await queryRows<{ node: number | null; profile: number }>(
    db,
    `with found as materialized (
       select node, profile from identities where tenant_id = $1 and node = any($2::bigint[])
     )
     select node, profile from found where node <> profile
     union all
     select null, count(*) from found`,
    [tenantId, asArray(nodes)],
  )
  const others = new Map<number, number | null>()
  let known = 0
  for (const { node, profile } of rows) {
    if (node === null) known = profile
    else others.set(node, profile)
  }
  if (known < nodes.length) for (const node of await findNodesOfNoOne(db, tenantId, nodes)) others.set(node, null)
  return others
}

async function findNodesOfNoOne(db: Db, tenantId: number, nodes: number[]): Promise<number[]> {
  const rows = await queryRows<{ node: number }>(
    db,
    `select n.node from unnest($2::bigint[]) as n (node)
     where not exists (select from identities i where i.tenant_id = $1 and i.node = n.node)`,
    [tenantId, asArray(nodes)],
  )
  return rows.map(({ node }) => node)
}

export type OriginRow = {
  /** The last step, from 0. */
  step: number
  people: number
  source: string | null
  medium: string | null
  campaign: string | null
}

/** People by the last step that they did and by their first touch, as for channels. */
export async function countByOrigin(db: Db, tenantId: number, lastSteps: Map<number, number>): Promise<OriginRow[]> {
  return queryRows<OriginRow>(
    db,
    `select p.step, count(*) as people, t.source, t.medium, t.campaign
     from unnest($2::bigint[], $3::int[]) as p (profile, step)
     left join lateral (
       select t.source, t.medium, t.campaign from identities m join touches t on t.tenant_id = $1 and t.node = m.node
       where m.tenant_id = $1 and m.profile = p.profile order by t.direct, t.occurred_at, t.event_id limit 1
     ) t on true
     group by 1, 3, 4, 5`,
    [tenantId, asArray([...lastSteps.keys()]), asArray([...lastSteps.values()])],
  )
}
