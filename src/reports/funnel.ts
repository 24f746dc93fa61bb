import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type pg from 'pg'
import { type ChannelRule, channelOf } from '../domain/customers/channels.ts'
import {
  type Device,
  type EventColumns,
  type FunnelStep,
  type FunnelTerms,
  findSteps,
  openFunnel,
  type StepEvents,
} from '../domain/customers/funnel.ts'
import { PAGE_VIEWS } from '../domain/identity/attribution.ts'
import { DAY_MS } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import {
  countByOrigin,
  findOtherProfiles,
  type OriginRow,
  readCurrentDays,
  readEventColumns,
  readSaleColumns,
} from '../store/customers/funnel.ts'
import { inSnapshot } from './question.ts'

type FunnelQuestion = {
  steps: FunnelStep[]
  /** The bounds of the first step. Later steps may follow until `withinDays` after it. */
  since: Date
  until: Date
  withinDays: number
  /** Of the first step; null: any. */
  device: Device | null
}

type Step = { people: number; medianSeconds: number | null }
export type Funnel = {
  steps: Step[]
  /** By group, the number of people in each step; null: nothing says where they came from. */
  groups: { name: string | null; people: number[] }[] | null
}

/** A funnel reads at most this number of events per step, so that one question cannot occupy the server. */
export const MAX_FUNNEL_EVENTS = 1_000_000

// Anyone can send any number of sources.
const MAX_GROUPS = 50

/** Null: a step matches too many events. */
export async function funnelReport(
  pool: pg.Pool,
  tenantId: number,
  { steps, since, until, withinDays, device }: FunnelQuestion,
  breakdown: { by: 'channel' | 'source'; rules: readonly ChannelRule[] } | null,
): Promise<Funnel | null> {
  const times = { since: since.getTime(), until: until.getTime(), withinMs: withinDays * DAY_MS }
  const terms = { steps, ...times, pageTypes: PAGE_VIEWS, device }
  return inSnapshot(pool, async db => {
    const count = await countPeople(db, tenantId, terms)
    if (count === null) return null
    const totals = count.totals().map(({ people, medianSeconds }) => ({
      people,
      medianSeconds: medianSeconds === null ? null : Math.round(medianSeconds),
    }))
    if (breakdown === null) return { steps: totals, groups: null }
    const rows = await countByOrigin(db, tenantId, count.lastSteps())
    return { steps: totals, groups: groupByOrigin(rows, steps.length, breakdown) }
  })
}

// Bounds the memory: the events of a longer window are read in portions.
const PORTION_DAYS = 10

/** Null: a step matches too many events. */
async function countPeople(db: Db, tenantId: number, terms: FunnelTerms) {
  const funnel = openFunnel(terms)
  const last = terms.until + terms.withinMs
  for (let since = startOfDay(terms.since); since <= last; since += PORTION_DAYS * DAY_MS) {
    const until = Math.min(since + PORTION_DAYS * DAY_MS, startOfDay(last) + DAY_MS)
    const found = await readSteps(db, tenantId, { since, until }, terms)
    if (found === null) return null
    const unknown = funnel.unknownNodes(...found.days, found.sales)
    const others = unknown.length === 0 ? null : await findOtherProfiles(db, tenantId, unknown)
    for (const node of unknown) funnel.assign(node, others!.has(node) ? others!.get(node)! : node)
    for (const _ of funnel.add(found.days, found.sales)) await yieldToEventLoop()
    if (funnel.matched().some(events => events > MAX_FUNNEL_EVENTS)) return null
  }
  return funnel
}
const startOfDay = (ms: number) => Math.floor(ms / DAY_MS) * DAY_MS

/**
 * The events of some days that are steps, in order: from the columns of the days that are current, and from the events of the
 * others. Null: too many.
 */
async function readSteps(db: Db, tenantId: number, range: { since: number; until: number }, terms: FunnelTerms) {
  const typed = terms.steps.flatMap(step => ('pages' in step ? [] : step.eventType))
  const pageTypes = typed.length < terms.steps.length ? [...terms.pageTypes] : []
  const types = [...new Set([...typed, ...pageTypes])]
  const limit = MAX_FUNNEL_EVENTS * terms.steps.length + 1
  const isCut = ({ times }: EventColumns) => times.length === 4 * limit
  const current = new Map((await readCurrentDays(db, tenantId, range, terms)).map(day => [day.start, day]))
  const days: StepEvents[] = []
  for (let since = range.since; since < range.until; ) {
    const day = current.get(since)
    let until = since + DAY_MS
    while (!day && until < range.until && !current.has(until)) until += DAY_MS
    const events = day ?? (await readEventColumns(db, tenantId, { since, until }, { types, limit, terms }))
    if (!day && isCut(events)) return null
    days.push(findSteps(events, terms))
    since = until
    await yieldToEventLoop()
  }
  const sales = await readSaleColumns(db, tenantId, range, { types: typed, limit, terms })
  return isCut(sales) ? null : { days, sales: findSteps(sales, terms) }
}

/** A person who did a step did all steps before it. */
function groupByOrigin(
  rows: OriginRow[],
  length: number,
  { by, rules }: { by: 'channel' | 'source'; rules: readonly ChannelRule[] },
) {
  const nameOf = ({ source, medium, campaign }: OriginRow) =>
    source === null ? null : by === 'source' ? source : channelOf({ source, medium, campaign }, rules)
  const groups = new Map<string | null, number[]>()
  for (const row of rows) {
    const name = nameOf(row)
    const people = groups.get(name) ?? Array.from({ length }, () => 0)
    for (let step = 0; step <= row.step; step++) people[step]! += row.people
    groups.set(name, people)
  }
  const sorted = [...groups].map(([name, people]) => ({ name, people })).sort((a, b) => b.people[0]! - a.people[0]!)
  return sorted.slice(0, MAX_GROUPS)
}
