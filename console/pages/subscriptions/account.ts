import type { VNode } from 'preact'
import { reports, search } from '../../api/data.ts'
import type { AccountReport, Item, TimelineEntry } from '../../api/types.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Facts, Page, Section, Tiles } from '../../components/page.ts'
import { PagedTable } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, number, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { isAdmin } from '../../session.ts'
import { itemColumns, timelineColumns } from './account-columns.ts'
import { AccountHistory } from './account-history.ts'
import { reportIn, scopeOf } from './report.ts'
import { csvOf, pageLink } from './report-page.ts'

const PARAMETERS = ['customer', 'subscription_id', 'page', 'timeline_page']

/** One account: what it pays for, and how that came about. */
export const page = definePage(
  'account',
  async ({ route: { query }, signal }) => {
    const scope = await scopeOf(query, signal)
    const asked = Object.fromEntries(PARAMETERS.map(name => [name, query.get(name)]))
    const report = await reportIn(scope, reports.account({ ...scope, ...asked }, signal))
    return { scope, report, contact: report && (await contactOf(report, signal).catch(() => null)) }
  },
  ({ data: { scope, report, contact }, route }) => {
    const back = html`<a href=${link('subscriptions', scope)}>All accounts</a>`
    if (!report) {
      const name = route.query.get('customer') ?? route.query.get('subscription_id') ?? ''
      const title = `No account ${name} in ${scope.currency}.`
      return h(Page, { title: name }, h(EmptyState, { title, action: back }))
    }
    const { summary, currency } = report
    const asked = { ...scope, customer: summary.customer }
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
          csv: csvOf('account', 'items', asked),
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
          csv: csvOf('account', 'timeline', asked),
          linkTo: pageLink(route, 'timeline_page'),
          empty,
        }),
      ),
      html`<p>${back}</p>`,
    )
  },
)

/** Whom the account is of: the contact of its id, or whoever goes by its e-mail. The page does without. */
type Contact = { recordId: string | null; personId: string }

async function contactOf({ summary }: AccountReport, signal: AbortSignal): Promise<Contact | null> {
  const { customer, customer_email: email } = summary
  const byId = (await search(customer, signal)).results
  if (byId.some(({ kind, id }) => kind === 'contact' && id === customer))
    return { recordId: customer, personId: `contact:${customer}` }
  if (!email) return null
  const byEmail = (await search(email, signal)).results
  return byEmail.some(({ kind }) => kind === 'person') ? { recordId: null, personId: `email:${email}` } : null
}

function WhoPays({ contact: { recordId, personId } }: { contact: Contact }): VNode {
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
          note: `${money(summary.committed_mrr, currency)} committed`,
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
        ['Customer', html`<code>${summary.customer}</code>${isLinked && h(WhoPays, { contact })}`],
        ['E-mail', text(summary.customer_email)],
        [
          'State',
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
