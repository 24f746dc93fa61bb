import { dayIn } from 'kontor-time-zone'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { customers, search } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { Customer, Found, List } from '../api/types.ts'
import { Form, SelectField, TextField } from '../components/form.ts'
import { Badge, EmptyState, type Tone } from '../components/notice.ts'
import { Facts, Page } from '../components/page.ts'
import { type Column, GrowingTable, Table } from '../components/table.ts'
import { Ago, Day } from '../components/time.ts'
import { dayRange, money, NONE, number, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link, linkWith, type Query, type Route } from '../router.ts'
import { keyHint, recordCommand } from '../samples.ts'
import { isAdmin } from '../session.ts'
import { currency, timeZone } from '../view.ts'

export const SEGMENTS = [
  ['', 'All'],
  ['new', 'New'],
  ['active', 'Active'],
  ['at_risk', 'At risk'],
  ['trial', 'Trial'],
  ['churned', 'Churned'],
  ['buyer', 'Buyer'],
  ['lead', 'Lead'],
] as const

const listSorts = () =>
  [
    ['last_seen_at', 'Last seen'],
    ['mrr', `MRR in ${currency.value}`],
    ['revenue', `Total revenue in ${currency.value}`],
    ['first_seen_at', 'First seen'],
    ['name', 'Name'],
  ] as const

const TONES: Partial<Record<Customer['status'], Tone>> = { active: 'good', at_risk: 'bad', churned: 'bad' }

const MEANINGS: Record<Exclude<(typeof SEGMENTS)[number][0], ''>, string> = {
  new: 'First purchase or payment in the last 30 days, regardless of the current status',
  active: 'Has MRR',
  at_risk: 'Has a past-due or unpaid subscription, or has MRR with an overdue payment or a scheduled cancellation',
  trial: 'In a trial, no payment yet',
  churned: 'Paid for a subscription before, no MRR now',
  buyer: 'Has purchases, but never paid for a subscription',
  lead: 'No purchase and no payment yet',
}

export function StatusBadge({ status }: Pick<Customer, 'status'>): VNode {
  const badge = h(Badge, { text: words(status), tone: TONES[status] ?? 'neutral' })
  return html`<span title=${MEANINGS[status]}>${badge}</span>`
}

/** Channels have names in snake case; null: nothing says where the person came from. */
export function channelName(channel: string | null): string {
  return channel === null ? 'Unattributed' : words(channel).replace(/^Email$/, 'E-mail')
}

/** The amount in the currency of the bar, then those in others. */
export function amountsText(amounts: Customer['mrr'], first: string): string {
  const given = Object.entries(amounts ?? {}).toSorted(([a], [b]) => Number(b === first) - Number(a === first))
  return given.length === 0 ? NONE : given.map(([code, amount]) => money(amount, code)).join(' + ')
}

type CustomerColumn = Column<Customer> & { name: string }

const PERSON: Column<Customer> = { label: 'Customer', cell: personCell, kind: 'long' }

const COLUMNS: CustomerColumn[] = [
  { name: 'status', label: 'Status', cell: ({ status }) => h(StatusBadge, { status }) },
  { name: 'mrr', label: 'MRR', cell: ({ mrr }) => amountsText(mrr, currency.value), kind: 'number' },
  {
    name: 'revenue',
    label: 'Total revenue',
    cell: ({ revenue }) => amountsText(revenue, currency.value),
    kind: 'number',
  },
  { name: 'orders', label: 'Purchases', cell: ({ orders }) => number(orders), kind: 'number' },
  { name: 'channel', label: 'Channel', cell: ({ channel }) => channelName(channel) },
  { name: 'plan', label: 'Plan', cell: ({ plans }) => text(plans?.join(' · ')), kind: 'long' },
  { name: 'country', label: 'Country', cell: ({ country }) => text(country) },
  { name: 'last_seen', label: 'Last seen', cell: ({ last_seen_at }) => h(Ago, { at: last_seen_at }) },
  { name: 'first_seen', label: 'First seen', cell: ({ first_seen_at }) => h(Day, { at: first_seen_at }) },
  { name: 'since', label: 'Customer since', cell: ({ customer_since }) => h(Day, { at: customer_since }) },
  { name: 'company', label: 'Company', cell: ({ company }) => text(company), kind: 'long' },
]

const DEFAULT_COLUMNS = ['status', 'mrr', 'revenue', 'orders', 'channel', 'last_seen']

function chosenColumns({ query }: Route): string[] {
  const given = query.get('columns')
  return given === null
    ? DEFAULT_COLUMNS
    : given.split(',').filter(name => COLUMNS.some(column => column.name === name))
}

function personCell(row: Customer): ComponentChildren {
  const name = row.name ?? row.email ?? row.company ?? row.contact_id ?? 'Anonymous'
  const id = name === 'Anonymous' && row.profile_id
  const more = [row.name && row.email, row.company !== name && row.company, id].filter(Boolean).join(' · ')
  return html`
    ${customerLink(row, name)}
    ${more && html`<span class="reason faint">${more}</span>`}
  `
}

/** The page of a person needs an admin key; others see the contact, or the account. */
export function customerLink(
  { profile_id: id, contact_id: contact, customer }: Customer,
  name: string,
): ComponentChildren {
  if (isAdmin.value) return html`<a href=${link('person', { id })}>${name}</a>`
  if (contact !== null) return html`<a href=${link('record', { type: 'contacts', id: contact })}>${name}</a>`
  return customer === null ? name : html`<a href=${link('account', { customer })}>${name}</a>`
}

const isByAmount = (query: URLSearchParams) => ['mrr', 'revenue'].includes(query.get('sort') ?? '')

const FILTERS = ['q', 'segment', 'channel', 'country', 'plan', 'since', 'until'] as const

/** The parameters of the list. An order by an amount is one of a currency. */
function listQuery({ query }: Route): Query {
  const given = Object.fromEntries(FILTERS.map(name => [name, query.get(name)]))
  const sort = query.get('sort') ?? 'last_seen_at'
  return { ...given, sort, currency: isByAmount(query) ? currency.peek() : null }
}

const isFiltered = ({ query }: Route) => FILTERS.some(name => query.has(name))

export const customersPage = definePage(
  'customers',
  async ({ route, signal }) => {
    const name = route.query.get('q')
    const [list, found] = await Promise.all([
      customers.list(listQuery(route), signal),
      // Also people who are no customers, by an identifier.
      name !== null && isAdmin.peek() && name.length >= 2 ? nullOn(403, search(name, signal)) : null,
    ])
    const known = new Set(list.results.map(({ profile_id }) => profile_id))
    const others = found?.results.filter(({ kind, id }) => kind === 'person' && !known.has(id)) ?? []
    return { list, others }
  },
  ({ data: { list, others }, route }) =>
    h(
      Page,
      { title: 'Customers', lead: leadText(route) },
      h(CustomerFilter, { route }),
      h(SegmentButtons, { route }),
      h(CustomerTable, { list, route, hasOthers: others.length > 0 }),
      others.length > 0 && h(OtherPeople, { found: others, isAlone: list.results.length === 0 }),
    ),
)

function leadText({ query }: Route): ComponentChildren {
  const [since, until] = [query.get('since'), query.get('until')]
  const who =
    since === null || until === null
      ? 'People with a purchase, a subscription or a contact record. Each row is a profile: everything known about one person, including their billing account.'
      : `People acquired in ${dayRange(dayOf(since), dayOf(until))}.`
  return isByAmount(query)
    ? `${who} Sorted by amounts in ${currency.value}. People without an amount in ${currency.value} are not listed.`
    : who
}

const dayOf = (time: string): string => dayIn(timeZone.value, new Date(time))

const CHANNELS = ['paid_search', 'organic_search', 'social', 'email', 'referral', 'direct', 'other', 'unattributed']

function CustomerFilter({ route }: { route: Route }): VNode {
  const { query } = route
  return h(
    Form<'person' | 'channel' | 'country' | 'sort'>,
    {
      key: query.toString(),
      submit: 'Find',
      layout: 'filter',
      aside: isFiltered(route) && html`<a href=${link('customers', { columns: query.get('columns') })}>Clear</a>`,
      run: ({ person, channel, country, sort }) => {
        const wanted = person.trim()
        if (isAdmin.peek() && EXACT.test(wanted)) return go(link('person', { id: wanted }))
        go(linkWith(route, { q: wanted || null, channel: channel || null, country: country.trim() || null, sort }))
      },
    },
    h(TextField, {
      ...{ id: 'person', label: 'Customer', value: query.get('q') ?? '', size: 26 },
      placeholder: 'Name, company or e-mail address',
    }),
    h(SelectField, {
      ...{ id: 'channel', label: 'Channel', value: query.get('channel') ?? '' },
      options: channelOptions(query.get('channel')),
    }),
    h(TextField, { id: 'country', label: 'Country', value: query.get('country') ?? '', size: 8, placeholder: 'Any' }),
    h(SelectField, {
      ...{ id: 'sort', label: 'Sort by', value: query.get('sort') ?? 'last_seen_at', options: listSorts() },
      onChange: sort => go(linkWith(route, { sort })),
    }),
  )
}

/** The channel of the address may be one of the tenant's own. */
function channelOptions(chosen: string | null): [string, string][] {
  const names = chosen === null || CHANNELS.includes(chosen) ? CHANNELS : [...CHANNELS, chosen]
  return [['', 'Any'], ...names.map((name): [string, string] => [name, channelName(name)])]
}

function SegmentButtons({ route }: { route: Route }): VNode {
  const chosen = route.query.get('segment') ?? ''
  const named = SEGMENTS.flatMap(([name, label]) => (name === '' ? [] : [{ name, label }]))
  const one = named.find(({ name }) => name === chosen)
  return html`
    <div class="chips" role="group" aria-label="Segments">
      ${SEGMENTS.map(
        ([name, label]) => html`
          <button
            key=${name} type="button" aria-pressed=${String(name === chosen)} title=${name === '' ? null : MEANINGS[name]}
            onClick=${() => go(linkWith(route, { segment: name || null, ...(name === 'at_risk' && { sort: 'mrr' }) }))}
          >${label}</button>
        `,
      )}
    </div>
    ${
      one
        ? html`<p class="faint">${one.label}: ${MEANINGS[one.name]}.</p>`
        : html`
          <details>
            <summary>What these filters mean</summary>
            ${h(Facts, { facts: named.map(({ name, label }): [string, string] => [label, MEANINGS[name]]) })}
          </details>
        `
    }
  `
}

type CustomerTableProps = { list: List<Customer>; route: Route; hasOthers: boolean }

function CustomerTable({ list, route, hasOthers }: CustomerTableProps): VNode {
  const chosen = chosenColumns(route)
  const query = listQuery(route)
  return html`
    ${h(GrowingTable<Customer>, {
      caption: 'Customers',
      columns: [PERSON, ...COLUMNS.filter(({ name }) => chosen.includes(name))],
      rowKey: ({ profile_id }) => profile_id,
      first: list,
      csv: { export: 'customers', query, name: 'customers' },
      load: cursor => customers.list({ ...query, cursor }),
      empty: !hasOthers && h(NoCustomers, { route }),
    })}
    ${list.results.length > 0 && h(ColumnChoice, { route, chosen })}
  `
}

/** The columns are part of the address. */
function ColumnChoice({ route, chosen }: { route: Route; chosen: string[] }): VNode {
  const toggled = (name: string) =>
    COLUMNS.filter(column => chosen.includes(column.name) !== (column.name === name)).map(column => column.name)
  return html`
    <details>
      <summary>Columns</summary>
      <div class="chips" role="group" aria-label="Columns">
        ${COLUMNS.map(
          ({ name, label }) => html`
            <button
              key=${name} type="button" aria-pressed=${String(chosen.includes(name))}
              onClick=${() => go(linkWith(route, { columns: toggled(name).join(',') }))}
            >${label}</button>
          `,
        )}
      </div>
    </details>
  `
}

function NoCustomers({ route }: { route: Route }): VNode {
  if (isFiltered(route) || isByAmount(route.query))
    return h(EmptyState, {
      title: 'No customers match.',
      text: 'Enter the beginning of a name, company or e-mail address, or a complete id such as user:42 or visitor:v-1.',
      action: html`<a href=${link('customers')}>Show all customers</a>`,
    })
  return h(EmptyState, {
    title: 'No customers yet.',
    text: 'A contact, an order, a purchase event or a subscription creates a customer.',
    command: recordCommand('contacts'),
    action: keyHint('private'),
  })
}

/** People who are no customers, such as visitors without a purchase. */
function OtherPeople({ found, isAlone }: { found: Found[]; isAlone: boolean }): VNode {
  const only = isAlone && found.length === 1 ? found[0]! : null
  useEffect(() => {
    if (only) go(link('person', { id: only.id }))
  }, [only])
  return h(Table<Found>, {
    caption: 'Other people found',
    columns: [
      {
        label: 'Other people found',
        cell: ({ id, title }) => html`<a href=${link('person', { id })}>${title}</a>`,
        kind: 'long',
      },
      { label: 'Identifiers', cell: ({ note }) => text(note), kind: 'long' },
      { label: 'Profile', cell: ({ id }) => id, isMinor: true },
    ],
    rows: found,
    rowKey: ({ id }) => id,
  })
}

/** An identifier with its kind, or a profile id: matches at most one person. */
const EXACT = /^(user|contact|visitor|email):.|^prof_\d+$/

/** Finds a person by a name or any identifier. */
export function PersonForm({ name }: { name: string }): VNode {
  return h(
    Form<'person'>,
    {
      submit: 'Find',
      layout: 'filter',
      run: ({ person }) => {
        const wanted = person.trim()
        go(EXACT.test(wanted) ? link('person', { id: wanted }) : link('customers', { q: wanted }))
      },
    },
    h(TextField, { id: 'person', label: 'Customer', value: name, placeholder: 'ada@example.com', size: 30 }),
  )
}
