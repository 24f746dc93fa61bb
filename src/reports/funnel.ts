import { type ChannelRule, channelOf } from '../domain/customers/channels.ts'
import type { Db } from '../postgres/database.ts'
import { type FunnelQuestion, type FunnelRow, funnelCounts } from '../store/customers/funnel.ts'

type Step = { people: number; medianSeconds: number | null }
export type Funnel = {
  steps: Step[]
  /** By group, the number of people in each step; null: nothing says where they came from. */
  groups: { name: string | null; people: number[] }[] | null
}

// Anyone can send any number of sources.
const MAX_GROUPS = 50

/** Null: a step matches too many events. */
export async function funnelReport(
  db: Db,
  tenantId: number,
  question: Omit<FunnelQuestion, 'byOrigin'>,
  breakdown: { by: 'channel' | 'source'; rules: readonly ChannelRule[] } | null,
): Promise<Funnel | null> {
  const rows = await funnelCounts(db, tenantId, { ...question, byOrigin: breakdown !== null })
  if (rows === null) return null
  const steps = question.steps.map((_, i) => {
    const row = rows.find(({ step, isTotal }) => isTotal && step === i)
    return { people: row?.people ?? 0, medianSeconds: row ? Math.round(row.medianSeconds) : null }
  })
  if (breakdown === null) return { steps, groups: null }
  const { by, rules } = breakdown
  const nameOf = ({ source, medium, campaign }: FunnelRow) =>
    source === null ? null : by === 'source' ? source : channelOf({ source, medium, campaign }, rules)
  const groups = new Map<string | null, number[]>()
  for (const row of rows) {
    if (row.isTotal) continue
    const name = nameOf(row)
    const people = groups.get(name) ?? question.steps.map(() => 0)
    people[row.step]! += row.people
    groups.set(name, people)
  }
  const sorted = [...groups].map(([name, people]) => ({ name, people })).sort((a, b) => b.people[0]! - a.people[0]!)
  return { steps, groups: sorted.slice(0, MAX_GROUPS) }
}
