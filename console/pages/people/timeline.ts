import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { parseAmount } from '../../amount.ts'
import { people } from '../../api/admin.ts'
import type { JsonObject, Person } from '../../api/types.ts'
import { ActionButton } from '../../components/form.ts'
import { EmptyState, ProblemArea } from '../../components/notice.ts'
import { type Column, Table } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { money, plural, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'

const MOST = 500

/** Something that happened to a person; `at` is '' where no time is told. */
type Moment = { key: string; at: string; what: string; title: ComponentChildren; detail: string }

const COLUMNS: Column<Moment>[] = [
  { label: 'Activity', cell: ({ title }) => title, kind: 'long' },
  { label: 'Time', cell: ({ at }) => h(Time, { at }) },
  { label: 'Kind', cell: ({ what }) => what },
  { label: 'Detail', cell: ({ detail }) => detail, kind: 'long', isMinor: true },
]

/** Read when asked for: it looks through all events of the tenant. */
export function PersonTimeline({ person }: { person: Person }): VNode {
  const problem = useSignal<unknown>(null)
  const moments = useSignal<Moment[] | null>(null)
  const read = async () => {
    const rows = await people.everything(person.tenant, person.profile_id)
    moments.value = rows.flatMap(momentsIn).toSorted((a, b) => (a.at < b.at ? 1 : -1))
  }
  const found = moments.value
  return html`
    ${
      found === null &&
      html`<p>${h(ActionButton, { label: 'Load timeline', run: read, problem })}${' '}
        <span class="faint">Searches all events. This can take a while for large tenants.</span></p>`
    }
    ${h(ProblemArea, { problem })}
    ${found !== null && found.length === 0 && h(EmptyState, { title: 'No activity yet.' })}
    ${
      found !== null &&
      found.length > 0 &&
      h(Table<Moment>, {
        caption: 'Timeline',
        columns: COLUMNS,
        rows: found.slice(0, MOST),
        keyOf: ({ key }) => key,
        csv: { rows: found.map(({ key, at, detail }) => ({ what: key, at, detail })), name: 'timeline' },
      })
    }
    ${found !== null && found.length > MOST && html`<p class="faint">${plural(found.length - MOST, 'older entry is', 'older entries are')} not shown. Export the data to see all.</p>`}
  `
}

function momentsIn(row: JsonObject): Moment[] {
  const id = String(row.id ?? row.customer ?? '')
  const key = `${row.type} ${id}`
  switch (row.type) {
    case 'event': {
      const title = html`<a href=${link('event', { id })}>${text(row.event_type)}</a>`
      return [{ key, at: String(row.occurred_at), what: 'event', title, detail: `from ${row.source}` }]
    }
    case 'conversion': {
      const amount = money(parseAmount(row.amount), row.currency as string | null)
      return [
        {
          key,
          at: String(row.occurred_at),
          what: 'conversion',
          title: text(row.conversion_type),
          detail: amount,
        },
      ]
    }
    case 'order':
    case 'contact': {
      const type = row.type === 'order' ? 'orders' : 'contacts'
      const title = html`<a href=${link('record', { type, id })}>${id}</a>`
      return [{ key, at: String(row.sourceUpdatedAt), what: row.type, title, detail: 'latest version' }]
    }
    case 'billing_account':
      return subscriptionsOf(row)
    default:
      return []
  }
}

function subscriptionsOf(account: JsonObject): Moment[] {
  const customer = String(account.customer)
  const subscriptions = account.subscriptions as { id: string; status: string; currency: string | null }[]
  return subscriptions.map(({ id, status, currency }) => ({
    key: `subscription ${id}`,
    at: '',
    what: 'subscription',
    title: html`<a href=${link('account', { customer, currency: currency ?? 'EUR' })}>${id}</a>`,
    detail: status,
  }))
}
