import { dayIn, startOfDayIn, wallClock } from 'kontor-time-zone'
import { type Amount, sumAmounts } from './amount.ts'
import { addDays, type Period, type Step, startOfStep } from './period.ts'

/** A series divided into the steps of a plot, oldest first. Pure. */
export type Steps = {
  /** The first day of each step; for hours, the day they are on. */
  days: string[]
  moments: Date[]
  values: Amount[]
  total: Amount
}

type Row = { at: string }

/** Adds up the buckets of each step. Steps without a bucket have 0. */
export function toSteps<Each extends Row>(
  rows: Each[],
  { step, zone, amountIn }: { step: Step; zone: string; amountIn(row: Each): Amount | null },
): Steps {
  const sums = new Map<string, { at: Date; day: string; amounts: Amount[] }>()
  for (const row of rows) {
    const at = new Date(row.at)
    const day = dayIn(zone, at)
    const start = startOfStep(day, step)
    const key = step === 'hour' ? row.at : start
    const sum = sums.get(key) ?? { at: step === 'hour' ? at : startOfDayIn(zone, start), day: start, amounts: [] }
    sums.set(key, sum)
    sum.amounts.push(amountIn(row) ?? 0)
  }
  const steps = [...sums.values()]
  const values = steps.map(({ amounts }) => sumAmounts(amounts))
  return {
    days: steps.map(({ day }) => day),
    moments: steps.map(({ at }) => at),
    values,
    total: sumAmounts(values),
  }
}

/**
 * For each step, the index of the step that it is compared with. Hours are compared with the same time of day, also if a clock
 * change removed or repeated an hour in between; -1: the comparison does not have that hour.
 */
export function matchSteps(now: Steps, before: Steps, step: Step, zone: string): number[] {
  if (step !== 'hour') return now.days.map((_, index) => index)
  const timesOf = ({ days, moments }: Steps) =>
    moments.map(at => wallClock(zone, at.getTime()) - Date.parse(`${days[0]}T00:00:00Z`))
  const times = timesOf(before)
  return timesOf(now).map(time => times.indexOf(time))
}

/** The query of a series of a period. The end of a comparison with an open period is exact to the minute. */
export function seriesQuery({ since, until, isOpen }: Period, step: Step, first: Date, isCut = false) {
  return {
    interval: step === 'hour' ? ('hour' as const) : ('day' as const),
    since: (since ?? first).toISOString(),
    ...(!isOpen && { until: until.toISOString(), ...(isCut && { cut: 'true' }) }),
  }
}

/** The first day of a period without a start. Older events of public tracking keys count as of this limit. */
export function plotStart(zone: string): string {
  return addDays(dayIn(zone, new Date()), -3_652)
}

/** A series has at most 1,500 buckets, so a longer one is read in portions of whole days. */
const PORTION_DAYS = 1_400

type SeriesRequest = ReturnType<typeof seriesQuery>

export async function readPortions<Answer extends { results: Row[] }>(
  query: SeriesRequest,
  zone: string,
  read: (query: SeriesRequest) => Promise<Answer>,
): Promise<Answer> {
  const end = query.until ?? new Date().toISOString()
  const starts = [query.since]
  for (;;) {
    const next = startOfDayIn(zone, addDays(dayIn(zone, new Date(starts.at(-1)!)), PORTION_DAYS)).toISOString()
    if (next >= end) break
    starts.push(next)
  }
  const answers = await Promise.all(
    starts.map((since, index) => {
      const after = starts[index + 1]
      return read({ ...query, since, ...(after && { until: new Date(Date.parse(after) - 1).toISOString() }) })
    }),
  )
  return { ...answers[0]!, results: answers.flatMap(({ results }) => results) }
}
