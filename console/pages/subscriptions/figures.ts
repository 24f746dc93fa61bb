import type { VNode } from 'preact'
import { absolute, isNegative, isZero, negate } from '../../amount.ts'
import type { Movements, OverviewReport } from '../../api/types.ts'
import { ChangeBars } from '../../components/bars.ts'
import { Tiles } from '../../components/page.ts'
import { money, number, plural } from '../../format.ts'
import { h, html } from '../../html.ts'

type ReportProps = { report: OverviewReport }

/** MRR and what stands next to it. */
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

/** How MRR went from what it was to what it is. */
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

/** What was won and lost, as bars. */
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
