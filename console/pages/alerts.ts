import { useSignal } from '@preact/signals'
import { dayIn } from 'kontor-time-zone'
import type { ComponentChildren, VNode } from 'preact'
import { toNumber } from '../amount.ts'
import { alerts, tenants } from '../api/admin.ts'
import { reports } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { Alert, AlertRules, List, RuleName } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { ActionButton, Form, type FormValues, SelectFilter, TextField } from '../components/form.ts'
import { useLiveData } from '../components/live-data.ts'
import { Badge, EmptyState, ProblemArea } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Ago, Time } from '../components/time.ts'
import { NONE, number, percent, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { addDays } from '../period.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { currency, timeZone } from '../view.ts'

const STATES = [
  ['raised', 'Active'],
  ['all', 'Last 90 days'],
] as const

/** `values`: by rule, the value now; those that only the server knows are absent. */
type Shown = { list: List<Alert>; rules: AlertRules; values: Values }
type Values = Partial<Record<RuleName, number>>

const readState = (query: URLSearchParams) => (query.get('state') === 'all' ? 'all' : 'raised')
const filterOf = (query: URLSearchParams) => ({ tenant: tenant.peek() ?? '', state: readState(query) }) as const

/** Alerts and the thresholds of their rules. */
export const alertsPage = definePage(
  'alerts',
  async ({ route: { query }, signal }): Promise<Shown> => {
    const [list, rules, values] = await Promise.all([
      alerts.list(filterOf(query), signal),
      alerts.rules(tenant.peek() ?? '', signal),
      readValues(signal),
    ])
    return { list, rules, values }
  },
  ({ data, route: { query }, refresh }) => {
    const { list, rules, values } = useLiveData(data, {
      next: async (before, signal) => ({ ...before, list: await alerts.list(filterOf(query), signal) }),
    })
    return h(
      Page,
      {
        title: 'Alerts',
        lead: 'Kontor evaluates the rules every minute. An alert is raised after two minutes over its threshold, and resolved after three minutes below it.',
      },
      h(SelectFilter, {
        ...{ id: 'state', label: 'Alerts', options: STATES, value: readState(query) },
        onChange: state => go(link('alerts', { state: state === 'all' ? state : null })),
      }),
      list.results.length === 0
        ? h(EmptyState, {
            title: readState(query) === 'all' ? 'No alerts in the last 90 days.' : 'No active alerts.',
            text: html`To receive alerts, <a href=${link('newDestination')}>create a destination</a> that includes them.`,
          })
        : h(Table<Alert>, {
            ...{ caption: 'Alerts', columns, rows: list.results, rowKey: ({ id }) => id },
            csv: { api: 'admin', path: '/alerts', query: filterOf(query), name: 'alerts' },
          }),
      h(Section, { title: 'Thresholds' }, h(ThresholdForm, { rules, values, refresh })),
    )
  },
)

const columns: Column<Alert>[] = [
  { label: 'Alert', cell: alertCell, kind: 'text' },
  {
    label: 'State',
    cell: ({ state }) => h(Badge, { text: state, tone: state === 'raised' ? 'bad' : 'good' }),
  },
  { label: 'Raised', cell: ({ raised_at }) => h(Ago, { at: raised_at }) },
  {
    label: 'Value',
    cell: ({ rule, value }) => formatValue(rule, value),
    kind: 'number',
  },
  {
    label: 'Threshold',
    cell: ({ rule, threshold }) => formatValue(rule, threshold),
    kind: 'number',
  },
  {
    label: 'Resolved',
    cell: ({ resolved_at: at }) => (at === null ? NONE : h(Time, { at })),
  },
]

function alertCell({ rule, subject, summary }: Alert): ComponentChildren {
  const href = rule === 'source_silent' && subject ? link('source', { id: subject }) : RULES[rule].href
  return html`<a href=${href}>${summary}</a>`
}

const WEEK_DAYS = 7

/** Today's values, to compare thresholds with. */
async function readValues(signal: AbortSignal): Promise<Values> {
  const zone = timeZone.peek()
  const from = addDays(dayIn(zone, new Date()), -WEEK_DAYS)
  const [health, history] = await Promise.all([
    tenants.health(tenant.peek() ?? '', signal),
    nullOn(403, reports.history({ currency: currency.peek(), interval: 'day', from }, signal)),
  ])
  const oldest = health.waiting?.oldest_at ?? null
  const [before, now] = [history?.results[0]?.mrr, history?.results.at(-1)?.mrr].map(mrr => toNumber(mrr ?? 0))
  return {
    lag: oldest === null ? 0 : Math.max(0, (Date.now() - Date.parse(oldest)) / 1000),
    dead_letters: health.dead_letters.open,
    ...(before! > 0 && { mrr_drop: Math.max(0, (before! - now!) / before!) }),
  }
}

type ThresholdProps = { rules: AlertRules; values: Values; refresh(): Promise<void> }

function ThresholdForm({ rules, values: current, refresh }: ThresholdProps): VNode {
  const problem = useSignal<unknown>(null)
  const set = async (change: Parameters<typeof alerts.setRules>[1], message: string) => {
    await alerts.setRules(tenant.peek() ?? '', change)
    toast(message)
    await refresh()
  }
  const save = async (values: FormValues<RuleName>) => {
    const typed = RULE_NAMES.map(rule => [rule, parseThreshold(rule, values[rule])] as const)
    // Unchanged rules are not sent, so that they keep following the defaults.
    const changed = typed.filter(([rule, value]) => value !== rules[rule])
    if (changed.length > 0) await set(Object.fromEntries(changed), 'Saved')
  }
  const reset = () => set(Object.fromEntries(RULE_NAMES.map(rule => [rule, 'default'])), 'Reset to defaults')
  return html`
    <p class="faint">An alert is raised when a value reaches its threshold. Leave a threshold empty to turn its rule off.</p>
    ${h(ProblemArea, { problem })}
    ${h(
      Form<RuleName>,
      {
        ...{ key: JSON.stringify(rules), submit: 'Save', layout: 'stacked', run: save },
        aside: h(ActionButton, { label: 'Reset to defaults', run: reset, problem, kind: 'quiet' }),
      },
      RULE_NAMES.map(rule =>
        h(TextField, {
          ...{ id: rule, label: RULES[rule].label, value: toInput(rule, rules[rule]) },
          ...{ placeholder: 'off', hint: describeRule(rule, current[rule]) },
        }),
      ),
    )}
  `
}

function describeRule(rule: RuleName, value: number | undefined): string {
  return value === undefined ? RULES[rule].means : `Now: ${formatValue(rule, value)}. ${RULES[rule].means}`
}

type RuleText = {
  label: string
  means: string
  unit: 'seconds' | 'share' | 'count' | 'times'
  /** The page that shows the cause. */
  href: string
}

const RULES: Record<RuleName, RuleText> = {
  lag: {
    label: 'Lag in seconds',
    means: 'How long the oldest accepted request has been waiting to be processed.',
    unit: 'seconds',
    href: link('overview'),
  },
  refused_share: {
    label: 'Rejected webhooks in %',
    means: 'Share of the webhook requests with valid credentials in the last hour. Applies from ten rejected requests.',
    unit: 'share',
    href: link('issues'),
  },
  dead_letters: {
    label: 'Dead letters',
    means: 'Number of dead letters that are neither replayed nor resolved.',
    unit: 'count',
    href: link('deadLetters'),
  },
  source_silent: {
    label: 'Silent source, multiple of its longest gap',
    means: 'Time since the last event, relative to the longest gap of the previous week. Applies from ten minutes.',
    unit: 'times',
    href: link('sources'),
  },
  mrr_drop: {
    label: 'Lost MRR in %',
    means: 'Compared with the MRR of seven days ago, per currency.',
    unit: 'share',
    href: link('movements'),
  },
}

const RULE_NAMES = Object.keys(RULES) as RuleName[]

function formatValue(rule: RuleName, value: number): string {
  const { unit } = RULES[rule]
  if (unit === 'share') return percent(value)
  if (unit === 'seconds') return plural(Math.round(value), 'second')
  return unit === 'times' ? `${number(Math.round(value * 10) / 10)} ×` : number(value)
}

/** Shares are entered in %. `parseThreshold` is the inverse. */
function toInput(rule: RuleName, value: number | null): string {
  if (value === null) return ''
  return String(RULES[rule].unit === 'share' ? Number((value * 100).toPrecision(12)) : value)
}

function parseThreshold(rule: RuleName, typed: string): number | null {
  const number = typed.trim()
  const text = number.endsWith('%') ? number.slice(0, -1).trim() : number
  if (text === '') return null
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value)))
    throw new Error(`${RULES[rule].label}: enter a number above 0, or leave it empty to turn the rule off.`)
  if (RULES[rule].unit === 'share' && value > 100) throw new Error(`${RULES[rule].label}: enter at most 100 %.`)
  return RULES[rule].unit === 'share' ? Number((value / 100).toPrecision(12)) : value
}
