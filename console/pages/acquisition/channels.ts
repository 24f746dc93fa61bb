import type { ComponentChildren, VNode } from 'preact'
import { customers } from '../../api/data.ts'
import type { Channel } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Tabs, type Tile, Tiles } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { DAY_MS, number, percent, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { hrefWithView } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import type { Period } from '../../period.ts'
import { link } from '../../router.ts'
import { keyHint, trackCommand } from '../../samples.ts'
import { isAdmin } from '../../session.ts'
import { currency, isReporting, readComparison, readPeriod } from '../../view.ts'
import { amountsText, channelName } from '../customers.ts'

const TABS = [
  { name: 'channels', title: 'Channels', href: link('channels') },
  { name: 'payers', title: 'Customers by month', href: link('payers') },
  { name: 'funnel', title: 'Funnel', href: link('funnel') },
]

/** The frame of all pages. */
export function AcquisitionPage(props: {
  name: 'channels' | 'payers' | 'funnel'
  lead: string
  children?: ComponentChildren
}): VNode {
  const { name, lead, children } = props
  return h(Page, { title: 'Acquisition', lead }, h(Tabs, { label: 'Reports', tabs: TABS, current: name }), children)
}

export const MAX_DAYS = 400

/** The bounds of a period, at most as long as the server allows. */
export function boundsOf({ since, until }: Period): { since: string; until: string } {
  const first = new Date(until.getTime() - MAX_DAYS * DAY_MS)
  return { since: (since === null || since < first ? first : since).toISOString(), until: until.toISOString() }
}

type Bounds = ReturnType<typeof boundsOf>

export const channelsPage = definePage(
  'channels',
  async ({ signal }) => {
    const period = readPeriod()
    const comparison = readComparison(period)
    const bounds = boundsOf(period)
    const [now, before] = await Promise.all([
      customers.channels(bounds, signal),
      comparison && customers.channels(boundsOf(comparison), signal),
    ])
    return { bounds, rows: now.results, before: before?.results ?? null }
  },
  ({ data: { bounds, rows, before } }) =>
    h(
      AcquisitionPage,
      {
        name: 'channels',
        lead: `Where new visitors of this period came from, and how many of them became customers. At most the last ${MAX_DAYS} days of the period are counted.`,
      },
      rows.length === 0 ? h(NoVisitors, {}) : h(Channels, { bounds, rows, before }),
    ),
)

type ChannelsProps = { bounds: Bounds; rows: Channel[]; before: Channel[] | null }

function Channels({ bounds, rows, before }: ChannelsProps): VNode {
  const [total, earlier] = [sum(rows), before && sum(before)]
  const tile = (label: string, name: Count, note: string | null): Tile => ({
    ...{ label, value: number(total[name]), note },
    change: earlier && { now: total[name], before: earlier[name], shown: number },
  })
  const ofIdentified = (name: Count) => `${percent(rate(total[name], total.identified))} of identified people`
  const hasTrials = total.trials > 0 || (earlier?.trials ?? 0) > 0
  return html`
    ${h(Tiles, {
      tiles: [
        tile('New visitors', 'visitors', null),
        tile('Identified', 'identified', identifiedNote(rows)),
        hasTrials && tile('Trials', 'trials', ofIdentified('trials')),
        { ...tile('Customers', 'customers', ofIdentified('customers')), href: link('customers', { ...bounds }) },
      ],
    })}
    ${h(Table<Channel>, {
      caption: 'Channels',
      columns: channelColumns(bounds, hasTrials),
      // The best channel first.
      rows: rows.toSorted((a, b) => (b.customers ?? 0) - (a.customers ?? 0)),
      rowKey: ({ channel }) => String(channel),
      csv: { api: 'data', path: '/channels', query: bounds, name: 'channels' },
    })}
    <p class="faint">
      Each person counts once, in the channel of their first visit. Identified people have a user id, an e-mail address, a contact record or a purchase. ${otherCurrenciesNote(rows)}Add rules for your own channels in
      ${' '}${isAdmin.value ? html`<a href=${link('settings')}>Settings</a>` : html`<a href="/docs/guides/customers#channels">the policy of the tenant</a>`}.
    </p>
  `
}

type Count = 'visitors' | 'identified' | 'trials' | 'customers'
const COUNTS = ['visitors', 'identified', 'trials', 'customers'] as const

function sum(rows: Channel[]): Record<Count, number> {
  const total = (name: Count) => rows.reduce((all, row) => all + (row[name] ?? 0), 0)
  return Object.fromEntries(COUNTS.map(name => [name, total(name)])) as Record<Count, number>
}

function rate(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

/** People without a channel were imported, or came before Kontor: they are no share of the visitors. */
function identifiedNote(rows: Channel[]): string {
  const visited = sum(rows.filter(({ channel }) => channel !== null))
  const others = sum(rows).identified - visited.identified
  const share = rate(visited.identified, visited.visitors)
  const parts = [
    share !== null && `${plural(visited.identified, 'new visitor')} (${percent(share)})`,
    others > 0 && `${share === null ? '' : 'plus '}${plural(others, 'person', 'people')} without a visit`,
  ]
  return parts.filter(Boolean).join(', ')
}

/** The amounts of the selected currency; with converted reports, those of all currencies, because they are not converted here. */
function shownAmounts(amounts: Channel['revenue']): string {
  const code = currency.value
  const own = Object.entries(amounts ?? {}).filter(([each]) => isReporting.value || each === code)
  return amountsText(Object.fromEntries(own), code)
}

function otherCurrenciesNote(rows: Channel[]): string {
  const code = currency.value
  const used = rows.flatMap(({ revenue, mrr }) => [...Object.keys(revenue ?? {}), ...Object.keys(mrr ?? {})])
  const others = [...new Set(used)].filter(each => each !== code)
  return others.length === 0 || isReporting.value ? '' : `Amounts in ${others.join(', ')} are not included. `
}

function channelColumns(bounds: Bounds, hasTrials: boolean): Column<Channel>[] {
  const step = (label: string, name: Count, of: Count): Column<Channel> => ({
    label,
    cell: row =>
      html`<span class="pair">${number(row[name])} <span class="faint">${shareOf(row, name, of)}</span></span>`,
    kind: 'number',
  })
  return [
    { label: 'Channel', cell: row => h(ChannelLink, { row, bounds }), kind: 'long' },
    { label: 'New visitors', cell: ({ visitors }) => number(visitors), kind: 'number' },
    step('Identified', 'identified', 'visitors'),
    ...(hasTrials ? [step('Trials', 'trials', 'identified')] : []),
    step('Customers', 'customers', 'identified'),
    {
      label: 'Visitor-to-customer rate',
      cell: ({ visitors, customers }) =>
        visitors === 0 ? '–' : h(ShareBar, { share: Math.min(1, customers / visitors) }),
      kind: 'number',
    },
    { label: 'Revenue', cell: ({ revenue }) => shownAmounts(revenue), kind: 'number' },
    { label: 'MRR', cell: ({ mrr }) => shownAmounts(mrr), kind: 'number' },
  ]
}

/** Without a rate where it would exceed 100 %: imported people have no visit. */
function shareOf(row: Channel, name: Count, of: Count): string {
  const share = rate(row[name] ?? 0, row[of] ?? 0)
  return share === null || share > 1 ? '' : percent(share)
}

/** The people behind the numbers. */
function ChannelLink({ row: { channel, identified }, bounds }: { row: Channel; bounds: Bounds }): VNode {
  const name = channelName(channel)
  if (identified === 0) return html`<span>${name}</span>`
  return html`<a href=${link('customers', { channel: channel ?? 'unattributed', ...bounds })}>${name}</a>`
}

function NoVisitors(): VNode {
  const { name } = readPeriod()
  if (name !== '12m' && name !== 'all')
    return h(EmptyState, {
      title: 'No new visitors in this period.',
      text: 'Page views with a referrer or UTM parameters show where people came from.',
      action: html`<a class="button" href=${hrefWithView({ period: '12m' })}>Show the last 12 months</a>`,
    })
  return h(EmptyState, {
    title: 'No visitors yet.',
    text: 'Page views with a referrer or UTM parameters show where people came from.',
    command: trackCommand(),
    action: keyHint('tracking'),
  })
}
