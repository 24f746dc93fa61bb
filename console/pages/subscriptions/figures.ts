import type { VNode } from 'preact'
import { absolute, isNegative, isZero, negate, toNumber } from '../../amount.ts'
import type { HistoryReport, Movements, OverviewReport } from '../../api/types.ts'
import { ChangeBars } from '../../components/bars.ts'
import { Tiles } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { compact, money, number, plural, type TimeUnit } from '../../format.ts'
import { h, html } from '../../html.ts'

type ReportProps = { report: OverviewReport }

/** MRR, ARR, ARPA and active subscriptions. */
export function Headline({ report }: ReportProps): VNode {
  const { currency, active_subscriptions: active } = report
  return h(Tiles, {
    tiles: [
      {
        label: 'MRR',
        value: money(report.mrr, currency),
        note: `${money(report.committed_mrr, currency)} committed`,
      },
      { label: 'ARR', value: money(report.arr, currency) },
      { label: 'ARPA', value: money(report.arpa, currency), note: 'per paying account' },
      {
        label: 'Active',
        value: number(active),
        note: `${active === 1 ? 'subscription' : 'subscriptions'} of ${plural(report.active_accounts, 'account')}`,
      },
    ],
  })
}

/** The change of MRR in the window. */
export function MovementBars({ report }: ReportProps): VNode {
  const { currency, movements } = report
  const { opening_mrr, closing_mrr, net, window_days } = movements
  const change = `${isNegative(net) ? 'down' : 'up'} ${money(absolute(net), currency)}`
  return html`
    <div>
      <p>
        MRR went from ${money(opening_mrr, currency)} to <strong>${money(closing_mrr, currency)}</strong>:${' '}
        ${isZero(net) ? 'no net change' : change}.
      </p>
      ${h(MovementChanges, { movements, currency, caption: `MRR movements in ${window_days} days` })}
    </div>
  `
}

type ChangesProps = { movements: Omit<Movements, 'window_days'>; currency: string; caption: string }

/** Movements by type, as bars. */
export function MovementChanges({ movements, currency, caption }: ChangesProps): VNode {
  return h(ChangeBars, {
    ...{ caption, currency },
    changes: [
      { label: 'New', amount: movements.new, note: "An account's first increase above 0" },
      { label: 'Expansion', amount: movements.expansion, note: 'An increase for a paying account' },
      {
        label: 'Reactivation',
        amount: movements.reactivation,
        note: 'An increase from 0 for an account that paid before',
      },
      {
        label: 'Contraction',
        amount: negate(movements.contraction),
        note: 'A decrease for an account that keeps paying',
      },
      { label: 'Churn', amount: negate(movements.churn), note: 'A decrease to 0' },
    ],
  })
}

type HistoryProps = { history: HistoryReport; height?: number }

/** Drops the empty time before the first MRR. */
export function withoutLeadingZeros(history: HistoryReport): HistoryReport {
  const { results } = history
  const first = results.findIndex(row => !isZero(row.mrr) || !isZero(row.new) || !isZero(row.churn))
  return { ...history, results: results.slice(Math.max(0, Math.min(first - 1, results.length - 2))) }
}

/** MRR at the end of each interval. */
export function MrrPlot({ history: { results, currency, interval }, height = 200 }: HistoryProps): VNode {
  return h(Plot, {
    title: `MRR in ${currency} by ${interval}`,
    moments: results.map(({ date }) => parseDay(date, interval)),
    series: [{ label: 'MRR', values: results.map(({ mrr }) => toNumber(mrr)) }],
    shown: value => money(value, currency),
    axisShown: compact,
    ...{ unit: timeUnit(interval), height },
  })
}

/** Movements per interval: gains above zero, losses below. */
export function MovementPlot({ history: { results, currency, interval }, height = 240 }: HistoryProps): VNode {
  const gains = ['new', 'expansion', 'reactivation'] as const
  const losses = ['contraction', 'churn'] as const
  return h(Plot, {
    title: `MRR movements in ${currency} by ${interval}`,
    moments: results.map(({ date }) => parseDay(date, interval)),
    series: [
      ...gains.map(kind => ({ label: capitalize(kind), values: results.map(row => toNumber(row[kind])) })),
      ...losses.map(kind => ({
        label: capitalize(kind),
        values: results.map(row => toNumber(negate(row[kind]))),
      })),
    ],
    isStacked: true,
    shown: value => money(value, currency),
    axisShown: compact,
    ...{ unit: timeUnit(interval), height },
  })
}

const capitalize = (kind: string) => kind.charAt(0).toUpperCase() + kind.slice(1)

/** Months are in UTC, days in local time. */
function parseDay(date: string, interval: string): Date {
  return new Date(interval === 'month' ? `${date}T00:00:00Z` : `${date}T00:00:00`)
}

function timeUnit(interval: string): TimeUnit {
  return interval === 'month' ? 'month' : 'day'
}
