import type { VNode } from 'preact'
import { absolute, isNegative, isZero, negate, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import type { HistoryReport, Movements, OverviewReport, PaymentIssue } from '../../api/types.ts'
import { ChangeBars } from '../../components/bars.ts'
import { type Tile, Tiles } from '../../components/page.ts'
import { colorClass, Plot } from '../../components/plot.ts'
import { compactMoney, dayRange, money, number, plural, type TimeUnit } from '../../format.ts'
import { h, html } from '../../html.ts'
import type { Period } from '../../period.ts'
import { link, type Query } from '../../router.ts'
import { bucketStart, lastMrr, type MrrHistory, netNewMrr } from '../figures.ts'

/** MRR and net new MRR, each with its change. */
export function mrrTiles({ now, before, mrrBefore }: MrrHistory): Tile[] {
  const { currency } = now
  const shown = (value: Parameters<typeof money>[0]) => money(value, currency)
  return [
    {
      ...{ label: 'MRR', value: shown(lastMrr(now)), href: link('subscriptions') },
      change: mrrBefore === null ? null : { now: lastMrr(now), before: mrrBefore, shown },
      spark: { label: 'MRR over time', values: now.results.map(({ mrr }) => toNumber(mrr)), isLine: true },
    },
    {
      ...{ label: 'Net new MRR', value: shown(netNewMrr(now)), href: link('movements') },
      change: before && { now: netNewMrr(now), before: netNewMrr(before), shown },
      spark: { label: 'Net new MRR over time', values: now.results.map(({ net }) => toNumber(net)) },
    },
  ]
}

/** MRR, ARR, ARPA and active subscriptions at the end of the period, compared with those of the comparison (see `levelTime`). */
export function Headline({ report, before }: { report: OverviewReport; before: OverviewReport | null }): VNode {
  const { currency, active_subscriptions: active } = report
  const shown = (value: Parameters<typeof money>[0]) => money(value, currency)
  const amount = (label: string, name: 'mrr' | 'arr' | 'arpa', note: string | null, href?: string): Tile => ({
    ...{ label, value: shown(report[name]), note, href },
    change: before && { now: report[name], before: before[name], shown },
  })
  return h(Tiles, {
    tiles: [
      amount('MRR', 'mrr', `${shown(report.committed_mrr)} after all scheduled cancellations`, link('movements')),
      amount('ARR', 'arr', 'MRR × 12'),
      amount('ARPA', 'arpa', 'MRR per paying account'),
      {
        ...{ label: 'Paying accounts', value: number(report.active_accounts), note: plural(active, 'subscription') },
        change: before && { now: report.active_accounts, before: before.active_accounts, shown: number },
      },
    ],
  })
}

/** What was lost already needs no attention. */
export const isWrittenOff = (row: PaymentIssue) => isZero(row.mrr_at_risk) && row.issue_type === 'uncollectible'

const MOST_COUNTED = 50

/** `isMore`: there are more than those that were counted. */
export type PaymentIssueCounts = { open: number; writtenOff: number; isMore: boolean }

export async function countPaymentIssues(
  asked: Query & { currency: string },
  signal: AbortSignal,
): Promise<PaymentIssueCounts> {
  const { payment_issues: issues } = await reports.attention({ ...asked, page_size: MOST_COUNTED }, signal)
  const writtenOff = issues.results.filter(isWrittenOff).length
  return { open: issues.results.length - writtenOff, writtenOff, isMore: issues.results.length < issues.count }
}

type Totals = Omit<Movements, 'window_days'>

/** The change of MRR in a period, beside that of the comparison. */
export function MovementSummary(props: {
  totals: Totals
  before: Totals | null
  currency: string
  period: Period
  comparison: Period | null
}): VNode {
  const { totals, before, currency, period, comparison } = props
  const { net, opening_mrr, closing_mrr } = totals
  const how = isZero(net) ? 'unchanged' : `${isNegative(net) ? 'down' : 'up'} ${money(absolute(net), currency)}`
  const range = isZero(net)
    ? ` at ${money(closing_mrr, currency)}`
    : `, from ${money(opening_mrr, currency)} to ${money(closing_mrr, currency)}`
  return html`
    <p>
      ${dayRange(period.from, period.to)}: MRR is <strong>${how}</strong>${range}.${' '}
      ${before && comparison && html`<span class="faint">The change in ${dayRange(comparison.from, comparison.to)} was ${isZero(before.net) ? money(0, currency) : `${isNegative(before.net) ? '−' : '+'}${money(absolute(before.net), currency)}`}.</span>`}
    </p>
    ${h(ChangeBars, {
      ...{ caption: 'MRR movements', currency },
      changes: [
        ...CHANGES.map(({ kind, label, note, isLoss }, index) => ({
          // The colors of the plot above.
          ...{ label, note, href: link('movements'), color: colorClass(index) },
          amount: isLoss ? negate(totals[kind]) : totals[kind],
          before: before && (isLoss ? negate(before[kind]) : before[kind]),
        })),
        ...(totals.fx === undefined
          ? []
          : [{ label: EXCHANGE.label, note: EXCHANGE.note, amount: totals.fx, before: before && (before.fx ?? 0) }]),
      ],
    })}
  `
}

const CHANGES = [
  { kind: 'new', label: 'New', note: "An account's first increase above 0", isLoss: false },
  { kind: 'expansion', label: 'Expansion', note: 'An increase for a paying account', isLoss: false },
  {
    kind: 'reactivation',
    label: 'Reactivation',
    note: 'An increase from 0 for an account that paid before',
    isLoss: false,
  },
  { kind: 'contraction', label: 'Contraction', note: 'A decrease for an account that keeps paying', isLoss: true },
  { kind: 'churn', label: 'Churn', note: 'A decrease to 0', isLoss: true },
] as const

/** Only in the reporting currency. */
const EXCHANGE = { label: 'Exchange rates', note: 'The effect of changed exchange rates alone' }

type HistoryProps = { history: MrrHistory; comparison: Period | null; height?: number }

/** MRR at the end of each interval. */
export function MrrPlot({ history: { now, before }, comparison, height = 220 }: HistoryProps): VNode {
  const { results, currency } = now
  return h(Plot, {
    title: `MRR in ${currency} by ${now.interval}`,
    moments: momentsOf(now),
    series: [
      { label: 'MRR', values: results.map(({ mrr }) => toNumber(mrr)) },
      ...(before && comparison
        ? [
            {
              label: dayRange(comparison.from, comparison.to),
              values: results.map((_, index) => (before.results[index] ? toNumber(before.results[index].mrr) : null)),
              moments: momentsOf(before),
              isAside: true,
            },
          ]
        : []),
    ],
    shown: value => money(value, currency),
    axisShown: compactMoney(currency),
    ...{ unit: unitOf(now), height },
    zoom: zoomOf(now),
  })
}

/** Movements per interval: gains above zero, losses below. A bar opens the accounts behind it. */
export function MovementPlot({ history: { now }, height = 220 }: HistoryProps): VNode {
  const { results, currency } = now
  return h(Plot, {
    title: `MRR movements in ${currency} by ${now.interval}`,
    moments: momentsOf(now),
    series: [
      ...CHANGES.map(({ kind, label, isLoss }) => ({
        label,
        values: results.map(row => toNumber(isLoss ? negate(row[kind]) : row[kind])),
      })),
      ...(results.some(({ fx }) => fx !== undefined)
        ? [{ label: EXCHANGE.label, values: results.map(({ fx }) => toNumber(fx ?? 0)) }]
        : []),
    ],
    isStacked: true,
    shown: value => money(value, currency),
    axisShown: compactMoney(currency),
    ...{ unit: unitOf(now), height },
    zoom: zoomOf(now, link('movements')),
  })
}

const momentsOf = ({ results }: HistoryReport) => results.map(({ date }) => bucketStart(date))
const unitOf = ({ interval }: HistoryReport) => interval as TimeUnit

function zoomOf({ results, interval }: HistoryReport, opens?: string) {
  const days = results.map(({ date }) => date)
  return { days, step: interval as 'day' | 'week' | 'month', ...(opens !== undefined && { opens }) }
}
