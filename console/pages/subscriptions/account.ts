import type { VNode } from 'preact'
import { toNumber } from '../../amount.ts'
import { reports, search } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { AccountReport, Item, TimelineEntry } from '../../api/types.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Facts, Page, Section, Tiles } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { Day, Time } from '../../components/time.ts'
import {
  compactMoney,
  DAY_MS,
  lowerWords,
  money,
  number,
  signedMoney,
  type TimeUnit,
  text,
  words,
} from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link, type Query } from '../../router.ts'
import { isAdmin } from '../../session.ts'
import { isReporting, tenantFacts } from '../../view.ts'
import { pageLink, readScope, reportCsv, type Scope } from './report-page.ts'

const PARAMETERS = ['customer', 'subscription_id', 'page', 'timeline_page']

/** One account with its items and its timeline. */
export const accountPage = definePage(
  'account',
  async ({ route: { query }, signal }) => {
    const scope = readScope()
    const asked = Object.fromEntries(PARAMETERS.map(name => [name, query.get(name)]))
    const isChosen = query.has('customer') || query.has('subscription_id')
    const report = isChosen ? await findAccount(scope, asked, signal) : null
    return { scope, report, contact: report && (await findContact(report, signal).catch(() => null)) }
  },
  ({ data: { scope, report, contact }, route }) => {
    const back = html`<a href=${link('subscriptions')}>All accounts</a>`
    if (!report) {
      const name = route.query.get('customer') ?? route.query.get('subscription_id')
      const [title, advice] =
        name === null
          ? ['No account selected.', 'Select an account in the list of all accounts.']
          : [
              `Account ${name} not found.`,
              'It may belong to another tenant, or have a different id in the billing system.',
            ]
      return h(Page, { title: name ?? 'Account' }, h(EmptyState, { title, text: advice, action: back }))
    }
    const { summary, currency } = report
    const asked = { currency, as_of: scope.as_of, customer: summary.customer }
    const empty = html`<p class="faint">No entries.</p>`
    return h(
      Page,
      { title: summary.customer_name ?? summary.customer },
      h(Summary, { report, contact }),
      h(AccountHistory, { report }),
      h(
        Section,
        { title: 'Items' },
        h(PagedTable<Item>, {
          caption: 'Items',
          columns: itemColumns(currency),
          list: report.items,
          csv: reportCsv('account', 'items', asked),
          linkTo: pageLink(route, 'page'),
          empty,
        }),
      ),
      h(
        Section,
        { title: 'Timeline' },
        h(PagedTable<TimelineEntry>, {
          caption: 'Timeline',
          columns: timelineColumns(currency),
          list: report.timeline,
          csv: reportCsv('account', 'timeline', asked),
          linkTo: pageLink(route, 'timeline_page'),
          empty,
        }),
      ),
      html`<p>${back}</p>`,
    )
  },
)

/** An account is shown in its own currency: the one of the bar if it has subscriptions in it, else the one with the largest MRR. */
async function findAccount(
  { currency, as_of }: Scope,
  asked: Query,
  signal: AbortSignal,
): Promise<AccountReport | null> {
  const used = tenantFacts.peek()?.currencies ?? []
  const read = (codes: string[]) =>
    Promise.all(codes.map(code => nullOn(404, reports.account({ ...asked, as_of, currency: code }, signal))))
  const [own = null] = isReporting.peek() ? [] : await read([currency])
  if (own !== null && own.items.count > 0) return own
  const others = await read(used.filter(code => code !== currency))
  const known = [own, ...others].filter(report => report !== null)
  return known.toSorted((a, b) => toNumber(b.summary.mrr) - toNumber(a.summary.mrr))[0] ?? null
}

/** The contact with the account's id, or the person with its e-mail address. */
type Contact = { recordId: string | null; personId: string }

async function findContact({ summary }: AccountReport, signal: AbortSignal): Promise<Contact | null> {
  const { customer, customer_email: email } = summary
  const [byId, byEmail] = await Promise.all([search(customer, signal), email ? search(email, signal) : null])
  if (byId.results.some(({ kind, id }) => kind === 'contact' && id === customer))
    return { recordId: customer, personId: `contact:${customer}` }
  return byEmail?.results.some(({ kind }) => kind === 'person') ? { recordId: null, personId: `email:${email}` } : null
}

function ContactLinks({ contact: { recordId, personId } }: { contact: Contact }): VNode {
  const record = recordId && html`<a href=${link('record', { type: 'contacts', id: recordId })}>contact</a>`
  const person = isAdmin.value && html`<a href=${link('person', { id: personId })}>person</a>`
  return html` (${person}${person && record && ', '}${record})`
}

type SummaryProps = { report: AccountReport; contact: Contact | null }

function Summary({ report: { summary, currency }, contact }: SummaryProps): VNode {
  const isLinked = contact !== null && (isAdmin.value || contact.recordId !== null)
  return html`
    ${h(Tiles, {
      tiles: [
        {
          label: 'MRR',
          value: money(summary.mrr, currency),
          note: `${money(summary.committed_mrr, currency)} after all scheduled cancellations`,
        },
        { label: 'ARR', value: money(summary.arr, currency) },
        {
          label: 'Subscriptions',
          value: number(summary.active_subscriptions),
          note: `of ${number(summary.subscriptions)} in total`,
        },
      ],
    })}
    ${h(Facts, {
      facts: [
        ['Customer', html`${summary.customer}${isLinked && h(ContactLinks, { contact })}`],
        ['E-mail', text(summary.customer_email)],
        [
          'Status',
          [
            h(Badge, { text: lowerWords(summary.status) }),
            summary.has_payment_issue && [' ', h(Badge, { text: 'payment issue', tone: 'bad' })],
          ],
        ],
        ['Customer since', h(Day, { at: summary.customer_since })],
        ['Next billing', h(Day, { at: summary.next_billing_at })],
        ['Acquisition source', text(summary.acquisition_source)],
      ],
    })}
  `
}

function itemColumns(currency: string): Column<Item>[] {
  return [
    {
      label: 'Plan',
      cell: ({ plan_name, price_id, item_id }) => text(plan_name ?? price_id ?? item_id),
      kind: 'long',
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, currency), kind: 'number' },
    { label: 'In MRR', cell: includedCell },
    { label: 'Price', cell: item => priceCell(item, currency), kind: 'number' },
    {
      label: 'Discount',
      cell: ({ discount_mrr }) => money(discount_mrr, currency),
      kind: 'number',
    },
    {
      label: 'Subscription',
      cell: ({ subscription_id }) => html`<code>${subscription_id}</code>`,
      kind: 'long',
    },
    {
      label: 'Current period ends',
      cell: ({ current_period_end }) => h(Day, { at: current_period_end }),
    },
  ]
}

function includedCell({ included, exclusion_reason }: Item): VNode {
  if (included) return h(Badge, { text: 'yes', tone: 'good' })
  return html`<span>${h(Badge, { text: 'no' })} ${lowerWords(text(exclusion_reason))}</span>`
}

function priceCell({ quantity, unit_amount, currency, interval, interval_count }: Item, reported: string): string {
  const times = quantity === null ? '' : `${number(quantity)} × `
  const term = (interval_count ?? 1) > 1 ? `${interval_count} ${interval}s` : interval
  return `${times}${money(unit_amount, currency ?? reported)}${interval ? ` / ${term}` : ''}`
}

const LOSSES = ['churn', 'contraction']

function timelineColumns(currency: string): Column<TimelineEntry>[] {
  return [
    { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
    { label: 'Description', cell: entry => h(EntryDescription, { entry }), kind: 'long' },
    {
      label: 'Amount',
      cell: ({ mrr_delta, amount }) =>
        mrr_delta === null ? money(amount, currency) : `${signedMoney(mrr_delta, currency)} MRR`,
      kind: 'number',
    },
    { label: 'Kind', cell: ({ category }) => text(category) },
    {
      label: 'Subscription',
      cell: ({ subscription_id }) => text(subscription_id),
      kind: 'long',
    },
  ]
}

function EntryDescription({ entry }: { entry: TimelineEntry }): VNode {
  const { description, event_id: id, movement_type: movement } = entry
  const tone = movement && LOSSES.includes(movement) ? 'bad' : 'good'
  return html`
    ${id ? html`<a href=${link('event', { id })}>${description}</a>` : description}
    ${movement && html` ${h(Badge, { text: words(movement), tone })}`}
  `
}

/** The account's MRR after each movement of the timeline, up to the date of the report. */
function AccountHistory({ report }: { report: AccountReport }): VNode | null {
  const { currency, as_of, summary, timeline } = report
  const movements = timeline.results.filter(isMovement).toReversed()
  if (movements.length === 0 || timeline.page > 1) return null
  const name = summary.customer_name ?? summary.customer
  const moments = [...movements.map(({ occurred_at }) => occurred_at), as_of].map(at => new Date(at))
  return h(
    Section,
    { title: 'MRR over time' },
    h(Plot, {
      title: `MRR of ${name} in ${currency}`,
      moments,
      series: [
        {
          label: 'MRR',
          values: [...movements.map(({ mrr_after }) => mrr_after), summary.mrr].map(toNumber),
          isStepped: true,
        },
      ],
      shown: value => money(value, currency),
      axisShown: compactMoney(currency),
      unit: timeUnit(moments),
    }),
  )
}

const SHORT_MS = 3 * DAY_MS

/** Hours for a few days, else days. */
function timeUnit(moments: Date[]): TimeUnit {
  return moments.at(-1)!.getTime() - moments[0]!.getTime() < SHORT_MS ? 'hour' : 'day'
}

type Movement = TimelineEntry & { mrr_after: NonNullable<TimelineEntry['mrr_after']> }

function isMovement(entry: TimelineEntry): entry is Movement {
  return entry.category === 'movement' && entry.mrr_after !== null
}
