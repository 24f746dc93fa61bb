import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import type { CsvSource } from '../../api/csv.ts'
import type { OverviewReport } from '../../api/types.ts'
import { Form, TextField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Tabs } from '../../components/page.ts'
import { Day } from '../../components/time.ts'
import { NONE, shortTime } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import type { Query } from '../../query.ts'
import { link, linkWith, type Route } from '../../router.ts'
import { subscriptionCommand, whereTokensAre } from '../../samples.ts'
import { useFirstDay } from './first-day.ts'
import { dayOf, endOf, monthsUntil } from './months.ts'
import type { Scope } from './report.ts'

const USUAL_CURRENCIES = 'EUR USD GBP CHF DKK NOK SEK PLN CZK CAD AUD NZD JPY INR BRL'.split(' ')

const TABS = [
  { name: 'subscriptions', title: 'Overview' },
  { name: 'movements', title: 'Movements' },
  { name: 'attention', title: 'Attention' },
  { name: 'acquisition', title: 'Acquisition' },
  { name: 'cohorts', title: 'Cohorts' },
  { name: 'excluded', title: 'Excluded' },
] as const

type ReportName = (typeof TABS)[number]['name']
type ReportPageProps = {
  name: ReportName
  scope: Scope
  /** A control of its own beside currency and day. */
  filter?: ComponentChildren
  children?: ComponentChildren
}

/** The frame of the reports: what is asked for, and where one is. */
export function ReportPage({ name, scope, filter, children }: ReportPageProps): VNode {
  const tabs = TABS.map(tab => ({ ...tab, href: link(tab.name, scope) }))
  return h(
    Page,
    { title: 'Subscriptions' },
    h(Tabs, { label: 'Reports', tabs, current: name }),
    h(ScopeForm, { key: `${name} ${scope.currency} ${scope.as_of}`, name, scope }, filter),
    children,
  )
}

function ScopeForm({ name, scope, children }: Omit<ReportPageProps, 'filter'>): VNode {
  return h(
    Form<'currency' | 'as_of'>,
    {
      submit: 'Show',
      layout: 'filter',
      run: ({ currency, ...others }) =>
        go(link(name, { ...others, currency: currency.trim().toUpperCase() })),
    },
    h(TextField, {
      id: 'currency',
      label: 'Currency',
      value: scope.currency,
      list: 'currencies',
      size: 5,
    }),
    h(TextField, { id: 'as_of', label: 'Date', type: 'date', value: scope.as_of.slice(0, 10) }),
    h(MonthSlider, { name, scope }),
    children,
    html`
      <datalist id="currencies">${USUAL_CURRENCIES.map(code => html`<option value=${code} />`)}</datalist>
    `,
  )
}

/** Back through the ends of months, to the first that has data; all the way to the right is now. */
function MonthSlider({ name, scope }: { name: ReportName; scope: Scope }): VNode | null {
  const first = useFirstDay(scope)?.slice(0, 7) ?? ''
  const months = monthsUntil('').filter(month => month >= first)
  const back = scope.as_of === '' ? 0 : stepsBack(months, scope.as_of.slice(0, 7))
  const moved = useSignal<number | null>(null)
  const shown = Math.min(moved.value ?? back, months.length - 1)
  const stepOf = (event: Event) => -Number((event.currentTarget as HTMLInputElement).value)
  const move = (event: Event) => {
    moved.value = stepOf(event)
  }
  const choose = (event: Event) => {
    const step = stepOf(event)
    go(link(name, { ...scope, as_of: step === 0 ? '' : endOf(months[step]!) }))
  }
  if (months.length < 2) return null
  // Any day may have been picked beside it: then that is what is shown.
  const asked = shown === back && scope.as_of !== '' ? scope.as_of.slice(0, 10) : null
  const text = asked ?? (shown === 0 ? 'now' : shortTime(dayOf(months[shown]!), 'month'))
  return html`
    <div class="field slider">
      <label for="months_back">As of <output>${text}</output></label>
      <input
        id="months_back" type="range" min=${1 - months.length} max="0" step="1" value=${-shown}
        aria-valuetext=${text} onInput=${move} onChange=${choose}
      />
    </div>
  `
}

/** A month before all of them is as far back as it goes; one that is still to come is now. */
function stepsBack(months: string[], month: string): number {
  const steps = months.findIndex(each => each <= month)
  return steps === -1 ? months.length - 1 : steps
}

/** Whether anything was ever heard of subscriptions. */
export function hasSubscriptions(report: OverviewReport | null): report is OverviewReport {
  return report !== null && (report.coverage.subscriptions_seen > 0 || report.invoiced.count > 0)
}

/** Of a day in the past that says nothing of today. */
export function NoSubscriptions({ name, scope }: { name: ReportName; scope: Scope }): VNode {
  const first = useFirstDay(scope)
  if (scope.as_of !== '')
    return h(EmptyState, {
      title: 'No data for this date.',
      text: first && html`The first billing event is dated ${h(Day, { at: first })}.`,
      action: html`<a href=${link(name, { ...scope, as_of: '' })}>Show current data</a>`,
    })
  return h(EmptyState, {
    title: 'No subscription data yet.',
    text: 'Connect Stripe as a source, or send subscription and invoice events yourself:',
    command: subscriptionCommand(),
    action: whereTokensAre(),
  })
}

/** A list of a report as a file. */
export function csvOf(report: string, list: string | null, query: Query): CsvSource {
  return { api: 'data', path: `/subscriptions/${report}`, query: { ...query, list }, name: list ?? report }
}

/** The address of another page of one of a report's lists. */
export function pageLink(route: Route, parameter: string): (page: number) => string {
  return page => linkWith(route, { [parameter]: page })
}

type AccountLinkProps = { customer: string | null; scope: Scope; label?: string | null }

export function AccountLink({ customer, scope, label }: AccountLinkProps): VNode {
  if (!customer) return html`<span>${label ?? NONE}</span>`
  return html`<a href=${link('account', { customer, ...scope })}>${label ?? customer}</a>`
}
