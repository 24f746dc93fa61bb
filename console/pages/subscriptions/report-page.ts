import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import type { CsvSource } from '../../api/csv.ts'
import { conversions, reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { OverviewReport } from '../../api/types.ts'
import { Form, TextField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Tabs } from '../../components/page.ts'
import { Day } from '../../components/time.ts'
import { DAY_MS, NONE, shortTime } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link, linkWith, type Query, type Route } from '../../router.ts'
import { subscriptionCommand, tokenHint } from '../../samples.ts'
import { currency, rememberCurrency, tenant } from '../../session.ts'

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
  /** An additional filter. */
  filter?: ComponentChildren
  children?: ComponentChildren
}

/** The frame of the reports: tabs and filters. */
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
      run: ({ currency, ...others }) => go(link(name, { ...others, currency: currency.trim().toUpperCase() })),
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

/** Selects the end of a month back to the first with data. The right end is now. */
function MonthSlider({ name, scope }: { name: ReportName; scope: Scope }): VNode | null {
  const first = useFirstDay(scope)?.slice(0, 7) ?? ''
  const months = listMonths('').filter(month => month >= first)
  const back = scope.as_of === '' ? 0 : stepsBack(months, scope.as_of.slice(0, 7))
  const moved = useSignal<number | null>(null)
  const shown = Math.min(moved.value ?? back, months.length - 1)
  const stepOf = (event: Event) => -Number((event.currentTarget as HTMLInputElement).value)
  const move = (event: Event) => {
    moved.value = stepOf(event)
  }
  const choose = (event: Event) => {
    const step = stepOf(event)
    go(link(name, { ...scope, as_of: step === 0 ? '' : monthEnd(months[step]!) }))
  }
  if (months.length < 2) return null
  // The date field may hold any day; then that day is shown.
  const asked = shown === back && scope.as_of !== '' ? scope.as_of.slice(0, 10) : null
  const text = asked ?? (shown === 0 ? 'now' : shortTime(monthStart(months[shown]!), 'month'))
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

/** An earlier month is the left end; a future month is now. */
function stepsBack(months: string[], month: string): number {
  const steps = months.findIndex(each => each <= month)
  return steps === -1 ? months.length - 1 : steps
}

/** Whether there is any subscription data. */
export function hasSubscriptions(report: OverviewReport | null): report is OverviewReport {
  return report !== null && (report.coverage.subscriptions_seen > 0 || report.invoiced.count > 0)
}

/** A past date without data has its own message. */
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

type AccountLinkProps = { customer: string | null; scope: Scope; label?: string | null }

export function AccountLink({ customer, scope, label }: AccountLinkProps): VNode {
  if (!customer) return html`<span>${label ?? NONE}</span>`
  return html`<a href=${link('account', { customer, ...scope })}>${label ?? customer}</a>`
}

/** The parameters of every report; an empty `as_of` means now. */
export type Scope = { currency: string; as_of: string }

/** The currency of the address, else the last one, else that of the newest sale. */
export async function readScope(query: URLSearchParams, signal: AbortSignal): Promise<Scope> {
  const code = query.get('currency') ?? currency.peek() ?? (await findCurrency(signal))
  return { currency: code.toUpperCase(), as_of: query.get('as_of') ?? '' }
}

async function findCurrency(signal: AbortSignal): Promise<string> {
  const sales = await nullOn(403, conversions.list({ limit: 20 }, signal))
  return sales?.results.find(sale => sale.currency)?.currency ?? 'EUR'
}

/** The report; null if there is none. Remembers the currency. */
export async function readReport<Report>(scope: Scope, answer: Promise<Report>): Promise<Report | null> {
  const report = await nullOn(404, answer)
  rememberCurrency(scope.currency)
  return report
}

/** By tenant. Only a known day is cached. */
const known = new Map<string, string>()

/** The day of the first billing event, as 2026-11-02; null while unknown, or without events. */
function useFirstDay({ currency }: Scope): string | null {
  const whose = tenant.value ?? ''
  const first = useSignal(known.get(whose) ?? null)
  useEffect(() => {
    if (known.has(whose)) return
    const left = new AbortController()
    // Without it the slider only goes back further than needed.
    readFirstDay(currency, left.signal).then(
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

async function readFirstDay(currency: string, signal: AbortSignal): Promise<string | null> {
  const { coverage } = await reports.overview({ currency, page_size: 1 }, signal)
  return coverage.first_event_at?.slice(0, 10) ?? null
}

/** Months as they are written in addresses: 2026-11. */

const MAX_MONTHS = 24

/** The month of `asOf` (empty: now) and those before it. */
export function listMonths(asOf: string): string[] {
  const end = asOf === '' ? new Date() : new Date(asOf)
  return Array.from({ length: MAX_MONTHS }, (_, back) =>
    new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  )
}

/** The start of a month in UTC. */
export function monthStart(month: string): Date {
  return new Date(`${month}-01T00:00:00Z`)
}

/** The first day of the next month. */
export function nextMonthStart(month: string): string {
  const at = monthStart(month)
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1)).toISOString().slice(0, 10)
}

/** The last day of a month; for the current month, today. */
function monthEnd(month: string): string {
  const last = new Date(Date.parse(nextMonthStart(month)) - DAY_MS).toISOString().slice(0, 10)
  const today = new Date().toISOString().slice(0, 10)
  return last < today ? last : today
}
