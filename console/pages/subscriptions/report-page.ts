import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import type { CsvSource } from '../../api/csv.ts'
import { reports } from '../../api/data.ts'
import type { OverviewReport } from '../../api/types.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Tabs } from '../../components/page.ts'
import { Day } from '../../components/time.ts'
import { NONE } from '../../format.ts'
import { h, html } from '../../html.ts'
import { hrefWithView } from '../../navigation.ts'
import type { Period } from '../../period.ts'
import { link, linkWith, type Query, type Route } from '../../router.ts'
import { subscriptionCommand, tokenHint } from '../../samples.ts'
import { tenant } from '../../session.ts'
import { currency, isReporting, readPeriod, reportCurrency, tenantFacts } from '../../view.ts'

const TABS = [
  { name: 'subscriptions', title: 'Overview' },
  { name: 'movements', title: 'Movements' },
  { name: 'months', title: 'By month' },
  { name: 'forecast', title: 'Forecast' },
  { name: 'revenue', title: 'Recognized revenue' },
  { name: 'attention', title: 'Needs attention' },
  { name: 'acquisition', title: 'MRR by source' },
  { name: 'cohorts', title: 'Cohorts' },
  { name: 'excluded', title: 'Excluded from MRR' },
] as const

type ReportName = (typeof TABS)[number]['name']
type ReportPageProps = {
  name: ReportName
  /** Filters besides those of the bar. */
  filter?: ComponentChildren
  children?: ComponentChildren
}

/** The frame of the reports: tabs and filters. */
export function ReportPage({ name, filter, children }: ReportPageProps): VNode {
  const tabs = TABS.map(tab => ({ ...tab, href: link(tab.name) }))
  return h(
    Page,
    { title: 'Subscriptions' },
    h(Tabs, { label: 'Reports', tabs, current: name }),
    filter && html`<div class="filter">${filter}</div>`,
    children,
  )
}

/** Whether there is any subscription data in the currency; in its only currency, a tenant may have only excluded items. */
export function hasSubscriptions(report: OverviewReport | null): report is OverviewReport {
  if (report === null) return false
  if (report.accounts.count > 0 || report.invoiced.count > 0) return true
  const isOnly = tenantFacts.peek()?.currencies.every(code => code === report.currency) ?? true
  return isOnly && report.coverage.subscriptions_seen > 0
}

/** Names the currencies that have data, and the first date with data: a wrong choice is never a dead end. */
export function NoSubscriptions(): VNode {
  const first = useFirstDay()
  const chosen = currency.value
  const others = isReporting.value ? [] : (tenantFacts.value?.currencies.filter(code => code !== chosen) ?? [])
  if (others.length > 0)
    return h(EmptyState, {
      title: `No subscriptions in ${chosen} in this period.`,
      text: first && html`The first billing event is dated ${h(Day, { at: first })}.`,
      action: html`
        <span class="choices">
          ${others.map(code => html`<a class="button" href=${hrefWithView({ currency: code })}>Show ${code}</a>`)}
          ${!readPeriod().isOpen && html`<a class="button" href=${hrefWithView({ period: null })}>Show current data</a>`}
        </span>
      `,
    })
  if (!readPeriod().isOpen)
    return h(EmptyState, {
      title: 'No data for this period.',
      text: first && html`The first billing event is dated ${h(Day, { at: first })}.`,
      action: html`<a href=${hrefWithView({ period: null })}>Show current data</a>`,
    })
  return h(EmptyState, {
    title: 'No subscription data yet.',
    text: 'Connect Stripe as a source, or send subscription and invoice events yourself:',
    command: subscriptionCommand(),
    action: tokenHint(),
  })
}

/** The CSV source of a report's list. */
export function reportCsv(report: string, list: string | null, query: Query): CsvSource {
  return { api: 'data', path: `/subscriptions/${report}`, query: { ...query, list }, name: list ?? report }
}

/** The address of another page of one of a report's lists. */
export function pageLink(route: Route, parameter: string): (page: number) => string {
  return page => linkWith(route, { [parameter]: page })
}

type AccountLinkProps = { customer: string | null; label?: string | null }

export function AccountLink({ customer, label }: AccountLinkProps): VNode {
  if (!customer) return html`<span>${label ?? NONE}</span>`
  return html`<a href=${link('account', { customer })}>${label ?? customer}</a>`
}

/** The parameters of every report: `currency` may be `reporting`; an empty `as_of` means now. */
export type Scope = { currency: string; as_of: string }

/** A report shows the end of the period. */
export function readScope(): Scope {
  const period = readPeriod()
  return { currency: reportCurrency.peek(), as_of: period.isOpen ? '' : period.until.toISOString() }
}

/** The movements within a period. */
export function windowOf({ from, to, until, isOpen }: Period): { since: string | null; until: string } {
  return { since: from, until: isOpen || from === null ? to : until.toISOString() }
}

/** By tenant. Only a known day is cached. */
const known = new Map<string, string>()

/** The day of the first billing event, as 2026-11-02; null while unknown, or without events. */
function useFirstDay(): string | null {
  const whose = tenant.value ?? ''
  const first = useSignal(known.get(whose) ?? null)
  useEffect(() => {
    if (known.has(whose)) return
    const left = new AbortController()
    // Without it the empty state only says less.
    readFirstDay(left.signal).then(
      day => {
        if (day === null || left.signal.aborted) return
        known.set(whose, day)
        first.value = day
      },
      () => {},
    )
    return () => left.abort()
  }, [whose])
  return known.get(whose) ?? first.value
}

async function readFirstDay(signal: AbortSignal): Promise<string | null> {
  const { coverage } = await reports.overview({ currency: reportCurrency.peek(), page_size: 1 }, signal)
  return coverage.first_event_at?.slice(0, 10) ?? null
}
