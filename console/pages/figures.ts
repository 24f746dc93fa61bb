import { dayIn, startOfDayIn } from 'kontor-time-zone'
import { type Amount, isZero, sumAmounts, toNumber } from '../amount.ts'
import { conversions, events, reports } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { HistoryReport, SeriesRow } from '../api/types.ts'
import type { Tile } from '../components/page.ts'
import type { Series, Zoom } from '../components/plot.ts'
import { dayRange } from '../format.ts'
import { countDays, levelTime, type Period, type Step, stepOf } from '../period.ts'
import { matchSteps, plotStart, readPortions, type Steps, seriesQuery, toSteps } from '../series.ts'
import { currency, isReporting, REPORTING, readComparison, readPeriod, reportCurrency, timeZone } from '../view.ts'

/** One number over the period, and over the comparison. null: not known. */
export type Course = { now: Steps; before: Steps | null }

/** The period of the bar, its comparison and its division. */
export type Frame = { period: Period; comparison: Period | null; step: Step }

export function readFrame(): Frame {
  const period = readPeriod()
  return { period, comparison: readComparison(period), step: stepOf(period, plotStart(timeZone.peek())) }
}

/** Reads a series of the whole period. */
export function readFrameSeries<Answer extends { results: SeriesRow[] }>(
  { period, step }: Frame,
  read: (query: ReturnType<typeof seriesQuery>) => Promise<Answer>,
): Promise<Answer> {
  const zone = timeZone.peek()
  return readPortions(seriesQuery(period, step, startOfDayIn(zone, plotStart(zone))), zone, read)
}

/** Reads a series for the period and for the comparison. null: the key may not read it. */
async function readBoth<Answer extends { results: SeriesRow[] }>(
  { period, comparison, step }: Frame,
  read: (query: ReturnType<typeof seriesQuery>) => Promise<Answer>,
): Promise<{ now: Answer; before: Answer | null } | null> {
  const zone = timeZone.peek()
  const first = startOfDayIn(zone, plotStart(zone))
  const [now, before] = await Promise.all([
    nullOn(403, readPortions(seriesQuery(period, step, first), zone, read)),
    comparison ? nullOn(403, readPortions(seriesQuery(comparison, step, first, period.isOpen), zone, read)) : null,
  ])
  return now && { now, before }
}

function course(
  both: { now: { results: SeriesRow[] }; before: { results: SeriesRow[] } | null } | null,
  step: Step,
  amountIn: (row: SeriesRow) => Amount | null,
): Course | null {
  if (both === null) return null
  const steps = (rows: SeriesRow[]) => toSteps(rows, { step, zone: timeZone.peek(), amountIn })
  return { now: steps(both.now.results), before: both.before && steps(both.before.results) }
}

export async function readConversionCourses(
  frame: Frame,
  signal: AbortSignal,
  eventType: string | null = null,
): Promise<{ count: Course | null; revenue: Course | null; others: Map<string, Amount> }> {
  const converted = isReporting.peek() && { currency: REPORTING }
  const both = await readBoth(frame, query =>
    conversions.series({ ...query, ...(eventType && { event_type: eventType }), ...converted }, signal),
  )
  const code = currency.peek()
  const others = new Map<string, Amount>()
  for (const { amounts = {} } of (both?.now.results as SeriesRow[]) ?? [])
    for (const [each, amount] of Object.entries(amounts))
      if (each !== code) others.set(each, sumAmounts([others.get(each) ?? 0, amount]))
  return {
    count: course(both, frame.step, ({ count }) => count),
    revenue: course(both, frame.step, ({ amounts }) => amounts?.[code] ?? null),
    others,
  }
}

export async function readEventCourse(
  frame: Frame,
  eventType: string | null,
  signal: AbortSignal,
): Promise<Course | null> {
  const both = await readBoth(frame, query =>
    events.series({ ...query, ...(eventType && { event_type: eventType }) }, signal),
  )
  return course(both, frame.step, ({ count }) => count)
}

/** Visitors are distinct: the total is not the sum of the steps. */
export async function readVisitorCourse(frame: Frame, signal: AbortSignal): Promise<Course | null> {
  const both = await readBoth(frame, query => events.visitors(query, signal))
  const found = course(both, frame.step, ({ count }) => count)
  // Distinct visitors of several portions cannot be added up.
  const isLong = frame.period.from === null || countDays(frame.period.from, frame.period.to) > 1_400
  if (!found || !both || isLong) return null
  return {
    now: { ...found.now, total: both.now.total },
    before: found.before && both.before && { ...found.before, total: both.before.total },
  }
}

/** `mrrBefore`: the MRR to compare with (see `levelTime`). */
export type MrrHistory = { now: HistoryReport; before: HistoryReport | null; mrrBefore: Amount | null }

/** MRR and its movements, by day, week or month. null: the key may not read them, or there are none. */
export async function readMrr({ period, comparison, step }: Frame, signal: AbortSignal): Promise<MrrHistory | null> {
  const zone = timeZone.peek()
  const read = ({ from, to, until, isOpen }: Period, isCut: boolean) =>
    nullOn(
      403,
      reports.history(
        {
          currency: reportCurrency.peek(),
          interval: step === 'hour' ? 'day' : step,
          from: from ?? plotStart(zone),
          ...(isOpen ? {} : isCut ? { as_of: until.toISOString() } : { to, as_of: until.toISOString() }),
        },
        signal,
      ),
    )
  const level = comparison && { ...comparison, from: comparison.to, until: levelTime(period, comparison) }
  const [now, before, last] = await Promise.all([
    read(period, false),
    comparison && read(comparison, period.isOpen),
    level && read(level, false),
  ])
  return now && { now, before, mrrBefore: last && lastMrr(last) }
}

export const lastMrr = ({ results }: HistoryReport): Amount => results.at(-1)?.mrr ?? 0
export const netNewMrr = ({ results }: HistoryReport): Amount => sumAmounts(results.map(({ net }) => net))
export const hasMrr = ({ results }: HistoryReport) => results.some(({ mrr, churn }) => !isZero(mrr) || !isZero(churn))

/** A tile with the total of a course. */
export function courseTile(
  label: string,
  { now, before }: Course,
  { shown, href }: { shown(value: Amount): string; href?: string },
): Tile {
  return {
    ...{ label, href, value: shown(now.total) },
    change: before && { now: now.total, before: before.total, shown },
    spark: { label: `${label} over time`, values: now.values.map(toNumber), isLine: now.values.length > 45 },
  }
}

/** The line of the period, and a faint one of the comparison. */
export function courseSeries(label: string, { now, before }: Course, { comparison, step }: Frame): Series[] {
  const line = { label, values: now.values.map(toNumber) }
  if (!before || !comparison) return [line]
  const matches = matchSteps(now, before, step, timeZone.peek())
  const aside = {
    label: dayRange(comparison.from, comparison.to),
    values: matches.map(index => (before.values[index] === undefined ? null : toNumber(before.values[index]))),
    moments: matches.map(index => before.moments[index]),
    isAside: true,
  }
  return [line, aside]
}

/** Hours are the finest step, so they do not open a period. */
export function courseZoom({ now }: Course, step: Step, opens?: string): Zoom | undefined {
  return step === 'hour' ? undefined : { days: now.days, step, ...(opens !== undefined && { opens }) }
}

/** The start of a bucket of a history, in the tenant's time zone. */
export const bucketStart = (date: string): Date => startOfDayIn(timeZone.peek(), date)
export const today = (): string => dayIn(timeZone.peek(), new Date())
