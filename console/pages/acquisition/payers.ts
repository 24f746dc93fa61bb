import { startOfDayIn } from 'kontor-time-zone'
import type { VNode } from 'preact'
import { customers } from '../../api/data.ts'
import type { Channel } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { CsvButton } from '../../components/table.ts'
import { number, percent, plural, shortTime } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { addMonths, periodOfStep } from '../../period.ts'
import { link } from '../../router.ts'
import { timeZone } from '../../view.ts'
import { channelName } from '../customers.ts'
import { bucketStart, today } from '../figures.ts'
import { AcquisitionPage } from './channels.ts'

const SPANS = [
  ['6', '6 months'],
  ['12', '12 months'],
] as const

/** The people who came in one month. */
type Cohort = { month: string; since: string; until: string; rows: Channel[] }

/** Of the people who came in each month, how many pay today, by channel. */
export const payersPage = definePage(
  'payers',
  async ({ route: { query }, signal }) => {
    const span = query.get('span') === '12' ? '12' : '6'
    const zone = timeZone.peek()
    const first = addMonths(`${today().slice(0, 7)}-01`, 1 - Number(span))
    const months = Array.from({ length: Number(span) }, (_, index) => addMonths(first, index)).toReversed()
    const cohorts = await Promise.all(
      months.map(async (month): Promise<Cohort> => {
        const end = Math.min(startOfDayIn(zone, addMonths(month, 1)).getTime() - 1, Date.now())
        const bounds = { since: startOfDayIn(zone, month).toISOString(), until: new Date(end).toISOString() }
        return { month, ...bounds, rows: (await customers.channels(bounds, signal)).results }
      }),
    )
    return { span, cohorts }
  },
  ({ data: { span, cohorts } }) =>
    h(
      AcquisitionPage,
      { name: 'payers', lead: 'People by the month of their first visit, and how many of them have paid since.' },
      html`<div class="filter">
        ${h(SelectField, {
          ...{ id: 'span', label: 'Months', options: SPANS, value: span },
          onChange: chosen => go(link('payers', { span: chosen })),
        })}
      </div>`,
      cohorts.every(({ rows }) => rows.length === 0)
        ? h(EmptyState, {
            title: 'No visitors in these months.',
            action: html`<a href=${link('connect', { sender: 'browser' })}>Connect a website</a>`,
          })
        : h(PayerTable, { cohorts }),
    ),
)

const MOST_CHANNELS = 7
const sum = (rows: Channel[], name: 'visitors' | 'customers') => rows.reduce((all, row) => all + row[name], 0)

function PayerTable({ cohorts }: { cohorts: Cohort[] }): VNode {
  const channels = largestChannels(cohorts)
  const rows = cohorts.map(cohort => ({
    month: cohort.month.slice(0, 7),
    people: sum(cohort.rows, 'visitors'),
    customers: sum(cohort.rows, 'customers'),
    ...Object.fromEntries(channels.map(channel => [channelName(channel), payersIn(cohort, channel)])),
  }))
  return html`
    <p class="faint">Each cell shows how many people became customers, and their share of all people who came in that month through that channel. People who came in recent months have had less time to buy.</p>
    <p class="sideways faint">Scroll the table sideways to see all channels.</p>
    <div class="scroller" role="region" aria-label="Customers by month of arrival" tabindex="0">
      <table class="heat">
        <caption class="unseen">Customers by month of arrival and channel</caption>
        <thead>
          <tr>
            <th scope="col">Month</th>
            <th scope="col" class="number">People</th>
            <th scope="col" class="number">Customers</th>
            ${channels.map(channel => html`<th scope="col" class="number">${channelName(channel)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${cohorts.map(cohort => cohortRow(cohort, channels))}
        </tbody>
      </table>
    </div>
    <p class="more">${h(CsvButton, { csv: { rows, name: 'customers-by-month' } })}</p>
  `
}

/** By paying people, the most first. */
function largestChannels(cohorts: Cohort[]): (string | null)[] {
  const payers = new Map<string | null, number>()
  for (const { channel, customers: paying } of cohorts.flatMap(({ rows }) => rows))
    payers.set(channel, (payers.get(channel) ?? 0) + paying)
  const ranked = [...payers].filter(([, paying]) => paying > 0).toSorted(([, a], [, b]) => b - a)
  return ranked.slice(0, MOST_CHANNELS).map(([channel]) => channel)
}

const payersIn = ({ rows }: Cohort, channel: string | null) => rows.find(row => row.channel === channel)?.customers ?? 0

function cohortRow(cohort: Cohort, channels: (string | null)[]): VNode {
  const { month, rows, since, until } = cohort
  const name = shortTime(bucketStart(month), 'month')
  const [people, paying] = [sum(rows, 'visitors'), sum(rows, 'customers')]
  return html`
    <tr key=${month}>
      <th scope="row" class="whole"><a href=${link('channels', { period: periodOfStep(month, 'month') })}>${name}</a></th>
      <td class="number">${number(people)}</td>
      ${payerCell(paying, people, link('customers', { since, until }), `${plural(paying, 'customer')} of ${name}`)}
      ${channels.map(channel => {
        const row = rows.find(each => each.channel === channel)
        const href = link('customers', { since, until, channel: channel ?? 'unattributed' })
        const label = `${plural(row?.customers ?? 0, 'customer')} of ${name}, ${channelName(channel)}`
        return payerCell(row?.customers ?? 0, row?.visitors ?? 0, href, label)
      })}
    </tr>
  `
}

/** Imported people have no visit, so a share above 1 is not shown. */
function payerCell(payers: number, people: number, href: string, label: string): VNode {
  if (payers === 0) return html`<td class="number faint">–</td>`
  const share = people === 0 || payers > people ? null : payers / people
  return html`
    <td class=${`number ${share === null ? '' : heatOf(share)}`}>
      <a href=${href} aria-label=${label}>${number(payers)}</a>${share !== null && html` <span class="portion">${percent(Math.round(share * 1000) / 1000)}</span>`}
    </td>
  `
}

/** Few visitors pay, so the scale is finer than that of retention. */
const STEPS = [
  [0.03, 'good'],
  [0.08, 'kept'],
] as const

function heatOf(share: number): string {
  return STEPS.findLast(([limit]) => share >= limit)?.[1] ?? ''
}
