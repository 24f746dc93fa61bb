import type { ComponentChildren } from 'preact'
import { alerts } from '../../api/admin.ts'
import type { Alert, AlertRules, List } from '../../api/types.ts'
import { useFollowed } from '../../components/followed.ts'
import { SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Page, Section } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Ago, Time } from '../../components/time.ts'
import { NONE } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import { RULES, shownValue } from './rules.ts'
import { ThresholdForm } from './threshold-form.ts'

const STATES = [
  ['raised', 'Active'],
  ['all', 'Last 90 days'],
] as const

type Shown = { list: List<Alert>; rules: AlertRules }

const stateOf = (query: URLSearchParams) => (query.get('state') === 'all' ? 'all' : 'raised')
const filterOf = (query: URLSearchParams) => ({ tenant: tenant.peek() ?? '', state: stateOf(query) }) as const

/** What warns by itself, from which value on, and what it has warned of. */
export const page = definePage(
  'alerts',
  async ({ route: { query }, signal }): Promise<Shown> => {
    const [list, rules] = await Promise.all([
      alerts.list(filterOf(query), signal),
      alerts.rules(tenant.peek() ?? '', signal),
    ])
    return { list, rules }
  },
  ({ data, route: { query }, refresh }) => {
    const { list, rules } = useFollowed(data, {
      next: async (before, signal) => ({ ...before, list: await alerts.list(filterOf(query), signal) }),
    })
    return h(
      Page,
      {
        title: 'Alerts',
        lead: 'Kontor evaluates the rules every minute. An alert is raised after two minutes over its threshold, and resolved after three minutes below it.',
      },
      h(SelectFilter, {
        ...{ id: 'state', label: 'Alerts', options: STATES, value: stateOf(query) },
        onChange: state => go(link('alerts', { state: state === 'all' ? state : null })),
      }),
      list.results.length === 0
        ? h(EmptyState, {
            title: stateOf(query) === 'all' ? 'No alerts in the last 90 days.' : 'No active alerts.',
            text: html`To receive alerts, <a href=${link('newDestination')}>create a destination</a> that includes them.`,
          })
        : h(Table<Alert>, {
            ...{ caption: 'Alerts', columns, rows: list.results, keyOf: ({ id }) => id },
            csv: { api: 'admin', path: '/alerts', query: filterOf(query), name: 'alerts' },
          }),
      h(Section, { title: 'Thresholds' }, h(ThresholdForm, { rules, refresh })),
    )
  },
)

const columns: Column<Alert>[] = [
  { label: 'Alert', cell: whatOf, kind: 'text' },
  {
    label: 'State',
    cell: ({ state }) => h(Badge, { text: state, tone: state === 'raised' ? 'bad' : 'good' }),
  },
  { label: 'Raised', cell: ({ raised_at }) => h(Ago, { at: raised_at }) },
  {
    label: 'Value',
    cell: ({ rule, value }) => shownValue(rule, value),
    kind: 'number',
    isMinor: true,
  },
  {
    label: 'Threshold',
    cell: ({ rule, threshold }) => shownValue(rule, threshold),
    kind: 'number',
    isMinor: true,
  },
  {
    label: 'Resolved',
    cell: ({ resolved_at: at }) => (at === null ? NONE : h(Time, { at })),
    isMinor: true,
  },
]

function whatOf({ rule, subject, summary }: Alert): ComponentChildren {
  const href = rule === 'source_silent' && subject ? link('source', { id: subject }) : RULES[rule].href
  return html`<a href=${href}>${summary}</a>`
}
