import type { VNode } from 'preact'
import type { Amount } from '../../amount.ts'
import type { OverviewReport, RateName } from '../../api/types.ts'
import { type Column, Table } from '../../components/table.ts'
import { money, NONE, number, percent } from '../../format.ts'
import { h, html } from '../../html.ts'

type Rate = { name: RateName; label: string; value: string; formula: string }

const LABELS: Record<RateName, string> = {
  customer_churn_rate: 'Customer churn',
  gross_mrr_churn_rate: 'Gross MRR churn',
  net_mrr_churn_rate: 'Net MRR churn',
  gross_revenue_retention: 'Gross revenue retention',
  net_revenue_retention: 'Net revenue retention',
  quick_ratio: 'Quick ratio',
  ltv: 'Lifetime value',
}

const COLUMNS: Column<Rate>[] = [
  { label: 'Rate', cell: ({ label }) => label },
  { label: 'Value', cell: ({ value }) => value, kind: 'number' },
  {
    label: 'Formula',
    cell: ({ formula }) => html`<span class="faint">${formula}</span>`,
    kind: 'text',
  },
]

/** How fast MRR comes and goes, each with its formula. */
export function RatesTable({ report: { rates, policy, currency } }: { report: OverviewReport }): VNode {
  const names = Object.keys(LABELS) as RateName[]
  return h(Table<Rate>, {
    caption: 'Rates of the last 30 days',
    columns: COLUMNS,
    csv: {
      rows: names.map(name => ({ name, value: rates[name], formula: policy.rates[name] ?? '' })),
      name: 'rates',
    },
    rows: names.map(name => ({
      name,
      label: LABELS[name],
      value: shown(name, rates[name], currency),
      formula: policy.rates[name] ?? '',
    })),
    keyOf: ({ name }) => name,
  })
}

function shown(name: RateName, value: Amount | null, currency: string): string {
  if (value === null) return NONE
  if (name === 'ltv') return money(value, currency)
  return name === 'quick_ratio' ? number(Math.round(Number(value) * 100) / 100) : percent(value)
}
