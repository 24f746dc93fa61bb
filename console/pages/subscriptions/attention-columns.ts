import type { VNode } from 'preact'
import type { Amount } from '../../amount.ts'
import type { Cancellation, PaymentIssue, Renewal, UpcomingBilling } from '../../api/types.ts'
import { Badge } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, plural, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import type { Scope } from './report.ts'
import { AccountLink } from './report-page.ts'

type AttentionColumns = {
  paymentIssues: Column<PaymentIssue>[]
  cancellations: Column<Cancellation>[]
  renewals: Column<Renewal>[]
  upcomingBilling: Column<UpcomingBilling>[]
}

export function attentionColumns(scope: Scope): AttentionColumns {
  const amount = (value: Amount | null) => money(value, scope.currency)
  const account = {
    label: 'Account',
    cell: ({ customer }: { customer: string | null }) => h(AccountLink, { customer, scope }),
    kind: 'long' as const,
  }
  const subscription = {
    label: 'Subscription',
    cell: ({ subscription_id }: { subscription_id: string }) => html`<code>${subscription_id}</code>`,
    kind: 'long' as const,
    isMinor: true,
  }
  return {
    paymentIssues: [
      account,
      { label: 'Issue', cell: row => h(Issue, { row }), kind: 'text' },
      { label: 'Amount due', cell: row => amount(row.amount_remaining ?? row.amount_due), kind: 'number' },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), kind: 'number', isMinor: true },
      {
        label: 'Invoice',
        cell: row => text(row.invoice_number ?? row.invoice_id),
        kind: 'long',
        isMinor: true,
      },
      { label: 'Due date', cell: row => h(Day, { at: row.due_at }), isMinor: true },
      { label: 'Next attempt', cell: row => h(Day, { at: row.next_payment_attempt_at }), isMinor: true },
    ],
    cancellations: [
      account,
      { label: 'End date', cell: row => dueOn(row.cancels_at, row.days_until) },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), kind: 'number' },
      { label: 'Reason', cell: row => (row.reason ? words(row.reason) : NONE), kind: 'long', isMinor: true },
      subscription,
    ],
    renewals: [
      account,
      { label: 'Renewal date', cell: row => dueOn(row.renews_at, row.days_until) },
      { label: 'Amount', cell: row => amount(row.renewal_amount), kind: 'number' },
      { label: 'Term', cell: row => plural(row.interval_count, row.interval), isMinor: true },
      { label: 'MRR', cell: row => amount(row.mrr), kind: 'number', isMinor: true },
      subscription,
    ],
    upcomingBilling: [
      account,
      { label: 'Billing date', cell: row => dueOn(row.bills_at, row.days_until) },
      {
        label: 'Estimate',
        cell: row => `${amount(row.estimated_amount)}${row.includes_metered ? ' + usage' : ''}`,
        kind: 'number',
      },
      { label: 'Note', cell: row => (row.is_trial_conversion ? 'end of trial' : ''), isMinor: true },
      { label: 'Collection method', cell: row => lowerWords(text(row.collection_method)), isMinor: true },
      subscription,
    ],
  }
}

function dueOn(at: string, daysUntil: number): VNode {
  const distance = daysUntil === 0 ? 'today' : `in ${plural(daysUntil, 'day')}`
  return html`<span>${h(Day, { at })} <span class="faint">${distance}</span></span>`
}

function Issue({ row }: { row: PaymentIssue }): VNode {
  const { issue_type, failure_message, days_overdue, attempt_count } = row
  const more = [
    failure_message?.replace(/\.$/, ''),
    days_overdue && `${plural(days_overdue, 'day')} overdue`,
    attempt_count && plural(attempt_count, 'attempt'),
  ].filter(Boolean)
  return html`
    ${h(Badge, { text: words(issue_type), tone: 'bad' })}
    ${more.length > 0 && html`<span class="reason faint">${more.join(' · ')}</span>`}
  `
}
