import type { VNode } from 'preact'
import { isZero, negate, toNumber } from '../../amount.ts'
import type { HistoryReport } from '../../api/types.ts'
import { Plot } from '../../components/plot.ts'
import { compact, money, type TimeUnit } from '../../format.ts'
import { h } from '../../html.ts'

type HistoryProps = { history: HistoryReport; height?: number }

/** From when there was something: the empty time before says nothing. */
export function sinceTheFirst(history: HistoryReport): HistoryReport {
  const { results } = history
  const first = results.findIndex(row => !isZero(row.mrr) || !isZero(row.new) || !isZero(row.churn))
  return { ...history, results: results.slice(Math.max(0, Math.min(first - 1, results.length - 2))) }
}

/** MRR at the end of each stretch of time. */
export function MrrPlot({ history: { results, currency, interval }, height = 200 }: HistoryProps): VNode {
  return h(Plot, {
    title: `MRR in ${currency} by ${interval}`,
    moments: results.map(({ date }) => dayOf(date, interval)),
    series: [{ label: 'MRR', values: results.map(({ mrr }) => toNumber(mrr)) }],
    shown: value => money(value, currency),
    axisShown: compact,
    ...{ unit: unitOf(interval), height },
  })
}

/** What moved MRR in each stretch of time: what was won stands up, what was lost hangs down. */
export function MovementPlot({
  history: { results, currency, interval },
  height = 240,
}: HistoryProps): VNode {
  const gains = ['new', 'expansion', 'reactivation'] as const
  const losses = ['contraction', 'churn'] as const
  return h(Plot, {
    title: `MRR movements in ${currency} by ${interval}`,
    moments: results.map(({ date }) => dayOf(date, interval)),
    series: [
      ...gains.map(kind => ({ label: titleOf(kind), values: results.map(row => toNumber(row[kind])) })),
      ...losses.map(kind => ({
        label: titleOf(kind),
        values: results.map(row => toNumber(negate(row[kind]))),
      })),
    ],
    isStacked: true,
    shown: value => money(value, currency),
    axisShown: compact,
    ...{ unit: unitOf(interval), height },
  })
}

const titleOf = (kind: string) => kind.charAt(0).toUpperCase() + kind.slice(1)

/** Months are shown as such, whatever the zone; days as they are on the calendar here. */
function dayOf(date: string, interval: string): Date {
  return new Date(interval === 'month' ? `${date}T00:00:00Z` : `${date}T00:00:00`)
}

function unitOf(interval: string): TimeUnit {
  return interval === 'month' ? 'month' : 'day'
}
