import { type Amount, sumOf, toNumber } from '../../amount.ts'
import type { SeriesRow } from '../../api/types.ts'
import type { Series } from '../../components/plot.ts'

const HOUR_MS = 3_600_000
const DAYS = [
  { ago: 0, label: 'Today' },
  { ago: 1, label: 'Yesterday' },
  { ago: 7, label: 'A week ago' },
]

/** Today beside yesterday and the same day of last week, by the hours that clocks here show. */
export type Days = {
  today: Amount
  yesterday: Amount
  weekAgo: Amount
  moments: Date[]
  /** What had come by the end of each hour. */
  series: Series[]
}

/** The beginning of the first day that is compared with. */
export function firstDay(now: Date): Date {
  return dayBefore(now, 7)
}

export function daysOf(rows: SeriesRow[], now: Date, amountIn: (row: SeriesRow) => Amount | null): Days {
  const days = DAYS.map(({ ago, label }) => {
    const hours: Amount[][] = Array.from({ length: 24 }, () => [])
    for (const row of rows) {
      const at = new Date(row.at)
      const value = amountIn(row)
      if (value !== null && at >= dayBefore(now, ago) && at < dayBefore(now, ago - 1))
        hours[at.getHours()]!.push(value)
    }
    const sums = hours.map(sumOf)
    return { label, ago, total: sumOf(sums), sums }
  })
  const start = dayBefore(now, 0).getTime()
  return {
    today: days[0]!.total,
    yesterday: days[1]!.total,
    weekAgo: days[2]!.total,
    moments: Array.from({ length: 24 }, (_, hour) => new Date(start + hour * HOUR_MS)),
    series: days.map(({ label, ago, sums }) => ({
      label,
      isAside: ago > 0,
      values: runningTotals(sums.map(toNumber)).map((total, hour) =>
        ago === 0 && hour > now.getHours() ? null : total,
      ),
    })),
  }
}

/** The currencies that something was sold in, those of most hours first. */
export function currenciesIn(rows: SeriesRow[]): string[] {
  const hours = new Map<string, number>()
  for (const { amounts = {} } of rows)
    for (const currency of Object.keys(amounts)) hours.set(currency, (hours.get(currency) ?? 0) + 1)
  return [...hours].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([currency]) => currency)
}

function dayBefore(now: Date, days: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days)
}

function runningTotals(values: number[]): number[] {
  let total = 0
  return values.map(value => {
    total += value
    return total
  })
}
