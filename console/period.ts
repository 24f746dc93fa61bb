import { dayIn, startOfDayIn } from 'kontor-time-zone'

/** Periods and their comparisons, in days of the tenant's time zone. Pure. */

/** As 2026-11-02. */
type Day = string

/** A span of whole days. It ends now if its last day is today or later. */
export type Period = {
  /** As in addresses: 30d, or 2026-01-01..2026-01-31. */
  name: string
  /** null: since the beginning. */
  from: Day | null
  to: Day
  since: Date | null
  /** The last moment. */
  until: Date
  /** Whether it contains now. */
  isOpen: boolean
}

export type Comparison = 'previous' | 'year' | 'none'

type Shift = { days?: number; months?: number }
type Preset = {
  name: string
  label: string
  /** The first and the last day. */
  span(today: Day): readonly [Day | null, Day]
  /** How far the previous period is back; default: the length of the period. */
  back?: Shift
}

const lastDays = (count: number): Preset => ({
  name: `${count}d`,
  label: `Last ${count} days`,
  span: today => [addDays(today, 1 - count), today],
})

export const PRESETS: readonly Preset[] = [
  { name: 'today', label: 'Today', span: today => [today, today] },
  { name: 'yesterday', label: 'Yesterday', span: today => [addDays(today, -1), addDays(today, -1)] },
  lastDays(7),
  lastDays(30),
  lastDays(90),
  { name: 'month', label: 'This month', span: today => [startOfMonth(today), today], back: { months: 1 } },
  {
    name: 'last_month',
    label: 'Last month',
    span: today => [addMonths(startOfMonth(today), -1), addDays(startOfMonth(today), -1)],
    back: { months: 1 },
  },
  { name: 'quarter', label: 'This quarter', span: today => [startOfQuarter(today), today], back: { months: 3 } },
  {
    name: 'last_quarter',
    label: 'Last quarter',
    span: today => [addMonths(startOfQuarter(today), -3), addDays(startOfQuarter(today), -1)],
    back: { months: 3 },
  },
  { name: 'year', label: 'This year', span: today => [`${today.slice(0, 4)}-01-01`, today], back: { months: 12 } },
  {
    name: '12m',
    label: 'Last 12 months',
    span: today => [addMonths(startOfMonth(today), -11), today],
    back: { months: 12 },
  },
  { name: 'all', label: 'All time', span: today => [null, today] },
]

export const DEFAULT_PERIOD = '30d'
const CUSTOM = /^(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)$/

/** Reads the name of a period. An unknown name is the default. */
export function resolvePeriod(name: string | null, now: Date, zone: string): Period {
  const today = dayIn(zone, now)
  const [, from, to] = CUSTOM.exec(name ?? '') ?? []
  if (from && to && isDay(from) && isDay(to)) {
    const [first, last] = from <= to ? [from, to] : [to, from]
    // A period in the future has nothing to show.
    if (first <= today) return build(`${first}..${last}`, first, last, now, zone)
  }
  const preset = PRESETS.find(each => each.name === name) ?? PRESETS.find(each => each.name === DEFAULT_PERIOD)!
  return build(preset.name, ...preset.span(today), now, zone)
}

function build(name: string, from: Day | null, to: Day, now: Date, zone: string): Period {
  const end = startOfDayIn(zone, addDays(to, 1)).getTime() - 1
  const since = from === null ? null : startOfDayIn(zone, from)
  return { name, from, to, since, until: new Date(Math.min(end, now.getTime())), isOpen: end >= now.getTime() }
}

/** The period to compare with; of a period that is not over, as much as has passed. null: there is none. */
export function comparisonOf(period: Period, comparison: Comparison, zone: string): Period | null {
  if (comparison === 'none' || period.from === null || period.since === null) return null
  const shift = comparison === 'year' ? { months: 12 } : previousShift(period as { from: Day } & Period)
  const move = (day: Day) => addDays(addMonths(day, -(shift.months ?? 0)), -(shift.days ?? 0))
  const from = move(period.from)
  // The whole month before, although it may be shorter or longer.
  const to = isWholeMonths(period) && shift.months ? addDays(move(addDays(period.to, 1)), -1) : move(period.to)
  const end = startOfDayIn(zone, addDays(to, 1)).getTime() - 1
  const until = period.isOpen ? Math.min(end, sameTime(period.until, move, zone)) : end
  return {
    ...{ name: `${from}..${to}`, from, to, since: startOfDayIn(zone, from) },
    ...{ until: new Date(until), isOpen: false },
  }
}

/**
 * The moment of the comparison with which MRR and other levels are compared. If the comparison ends where the period
 * begins, it is that moment, so that the difference is the change within the period.
 */
export function levelTime(period: Period, comparison: Period): Date {
  const isAdjacent = addDays(comparison.to, 1) === period.from
  return isAdjacent ? new Date(period.since!.getTime() - 1) : comparison.until
}

function previousShift({ name, from, to }: Period & { from: Day }): Shift {
  const preset = PRESETS.find(each => each.name === name)
  if (preset?.back) return preset.back
  const months = isWholeMonths({ from, to }) ? countMonths(from, to) : 0
  return months > 0 ? { months } : { days: countDays(from, to) }
}

/** The same time of day on the shifted day. */
function sameTime(at: Date, move: (day: Day) => Day, zone: string): number {
  const day = dayIn(zone, at)
  return startOfDayIn(zone, move(day)).getTime() + (at.getTime() - startOfDayIn(zone, day).getTime())
}

/** The adjacent period of the same length, for stepping back (-1) and forward (1). null: it starts after today. */
export function stepPeriod(period: Period, direction: -1 | 1, today: Day): string | null {
  const { from, to } = period
  if (from === null) return null
  const [months, days] = isWholeMonths({ from, to }) ? [countMonths(from, to), 0] : [0, countDays(from, to)]
  const move = (day: Day) => addDays(addMonths(day, direction * months), direction * days)
  const first = move(from)
  return first > today ? null : `${first}..${addDays(move(addDays(to, 1)), -1)}`
}

export type Step = 'hour' | 'day' | 'week' | 'month'

/** How a plot of the period is divided. `first`: the first day of an unlimited period. */
export function stepOf({ from, to }: Period, first: Day): Step {
  const days = countDays(from ?? first, to)
  return days <= 2 ? 'hour' : days <= 92 ? 'day' : days <= 190 ? 'week' : 'month'
}

/** The start of the step that contains a day. Weeks start on Monday. */
export function startOfStep(day: Day, step: Step): Day {
  if (step === 'month') return startOfMonth(day)
  return step === 'week' ? addDays(day, -((new Date(day).getUTCDay() + 6) % 7)) : day
}

/** The period of one step of a plot, as in addresses. */
export function periodOfStep(day: Day, step: Step): string {
  const last = step === 'month' ? addDays(addMonths(day, 1), -1) : step === 'week' ? addDays(day, 6) : day
  return `${day}..${last}`
}

export function addDays(day: Day, days: number): Day {
  return toDay(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000)
}

/** The 31st becomes the last day of a shorter month. */
export function addMonths(day: Day, months: number): Day {
  const [year, month, date] = day.split('-').map(Number) as [number, number, number]
  const lastDate = new Date(Date.UTC(year, month + months, 0)).getUTCDate()
  return toDay(Date.UTC(year, month - 1 + months, Math.min(date, lastDate)))
}

export function countDays(from: Day, to: Day): number {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / 86_400_000) + 1
}

const countMonths = (from: Day, to: Day) =>
  (Number(to.slice(0, 4)) - Number(from.slice(0, 4))) * 12 + Number(to.slice(5, 7)) - Number(from.slice(5, 7)) + 1
const isWholeMonths = ({ from, to }: { from: Day | null; to: Day }) =>
  from?.endsWith('-01') === true && addDays(to, 1).endsWith('-01')
const startOfMonth = (day: Day): Day => `${day.slice(0, 7)}-01`
const startOfQuarter = (day: Day): Day => addMonths(startOfMonth(day), -((Number(day.slice(5, 7)) - 1) % 3))
const toDay = (at: number): Day => new Date(at).toISOString().slice(0, 10)

/** Years beyond these limits are typing errors, and would overflow. */
function isDay(text: string): boolean {
  const at = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(at) && toDay(at) === text && text >= '1970-01-01' && text <= '2200-01-01'
}
