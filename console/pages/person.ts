import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { parseAmount } from '../amount.ts'
import { people } from '../api/admin.ts'
import { customers } from '../api/data.ts'
import { nullOn, Problem } from '../api/request.ts'
import type {
  Customer,
  Erased,
  ErasurePreview,
  ErasureReceipt,
  Event,
  JsonObject,
  Person,
  PersonChoice,
  PersonName,
} from '../api/types.ts'
import { announce } from '../components/announcer.ts'
import { askConfirmation } from '../components/dialog.ts'
import { ActionButton, Form, TextField } from '../components/form.ts'
import { Badge, EmptyState, ProblemArea } from '../components/notice.ts'
import { type Fact, Facts, Page, Section, type Tile, Tiles } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Day, Time } from '../components/time.ts'
import { date, money, number, plural, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { summarize } from '../summary.ts'
import { currency } from '../view.ts'
import { amountsText, channelName, PersonForm, StatusBadge } from './customers.ts'
export const personPage = definePage(
  'person',
  async ({ route, signal }) => {
    const person = await nullOn(404, withChoices(people.show(tenant.peek() ?? '', route.params.id, signal)))
    if (person === null || 'choices' in person) return { person, customer: null, rows: null }
    // Not awaited: the page shows the facts first.
    const rows = people.timeline(person.tenant, person.profile_id, signal)
    rows.catch(() => {})
    const list = await nullOn(403, customers.list({ profile_id: person.profile_id }, signal))
    return { person, customer: list?.results[0] ?? null, rows }
  },
  ({ data: { person, customer, rows }, route, refresh }) => {
    const { id } = route.params
    if (person && 'choices' in person) return h(ChoicePage, { id, ...person })
    if (!person)
      return h(
        Page,
        { title: 'Person not found' },
        h(PersonForm, { name: id }),
        h(EmptyState, {
          title: `No person has the identifier ${id}.`,
          text: 'Enter a complete identifier: an e-mail address, a user id or a visitor id.',
        }),
      )
    return h(PersonPage, { key: person.profile_id, person, customer, rows: rows!, refresh })
  },
)

/** `customer`: null for a visitor who is none. */
type PersonPageProps = {
  person: Person
  customer: Customer | null
  rows: Promise<JsonObject[]>
  refresh(): Promise<void>
}

function PersonPage({ person, customer, rows, refresh }: PersonPageProps): VNode {
  const problem = useSignal<unknown>(null)
  const done = useSignal<ErasedPageProps | null>(null)
  const { profile_id: id, contact } = person
  if (done.value) return h(ErasedPage, done.value)
  const title = contact?.name ?? contact?.email ?? person.names[0]?.value ?? id
  const save = async () => {
    const [first] = await people.save(person.tenant, id)
    if (first?.covers === 'identifier')
      announce('Some unverified identifiers are not included. Verify them to include them.')
  }
  return h(
    Page,
    {
      title,
      actions: h(ActionButton, { label: 'Export data', needs: 'admin', run: save, problem }),
      lead: personLead(person, customer),
    },
    h(ProblemArea, { problem }),
    h(Tiles, { tiles: customer ? valueTiles(customer) : visitorTiles(person) }),
    customer && h(Facts, { facts: customerFacts(person, customer) }),
    h(Section, { title: 'Timeline' }, h(PersonTimeline, { rows })),
    h(
      Section,
      { title: 'Identifiers' },
      h(Table<PersonName>, {
        ...{ caption: 'Identifiers', columns: nameColumns(person, problem, refresh), rows: person.names },
        csv: { rows: person.names, name: 'identifiers' },
      }),
    ),
    person.claims.length > 0 &&
      h(
        Section,
        { title: 'Claims' },
        html`<p class="faint">These identifiers appeared together, but belong to different people and are not linked.</p>`,
        h(Table<PersonClaim>, { caption: 'Claims', columns: CLAIM_COLUMNS, rows: person.claims }),
      ),
    h(
      Section,
      { title: 'Erase this person' },
      h(EraseForm, { person, title, erased: (receipt, preview) => (done.value = { receipt, preview }) }),
    ),
  )
}

/** What the person is worth, and where they came from. */
function valueTiles(customer: Customer): Tile[] {
  const code = currency.value
  return [
    {
      label: 'Total revenue',
      value: amountsText(customer.revenue, code),
      note: plural(customer.orders ?? 0, 'purchase'),
    },
    {
      label: 'MRR',
      value: amountsText(customer.mrr, code),
      note: customer.plans?.join(' · '),
      href: customer.customer === null ? undefined : link('account', { customer: customer.customer }),
    },
    { label: 'Channel', value: channelName(customer.channel) },
    {
      label: 'Last seen',
      value: date(new Date(customer.last_seen_at)),
      note: `first seen ${date(new Date(customer.first_seen_at))}`,
    },
  ]
}

function customerFacts({ contact }: Person, customer: Customer): Fact[] {
  const { email, company, country, customer_since, customer: account } = customer
  const given: (Fact | false)[] = [
    email !== null && ['E-mail', email],
    company !== null && ['Company', company],
    country !== null && ['Country', country],
    customer_since !== null && ['Customer since', h(Day, { at: customer_since })],
    account !== null && [
      'Subscriptions',
      html`<a href=${link('account', { customer: account })}>View subscriptions</a>`,
    ],
    contact !== null && [
      'Contact record',
      html`<a href=${link('record', { type: 'contacts', id: contact.id })}>${contact.id}</a>`,
    ],
  ]
  return given.filter(fact => fact !== false)
}

function visitorTiles(person: Person): Tile[] {
  return [
    { label: 'Events', value: number(person.events), ...othersNote(person) },
    { label: 'Conversions', value: number(person.conversions) },
  ]
}

/** The timeline and an erasure include these events. */
function othersNote({ events_of_others: others }: Person): { note?: string } {
  return others > 0 ? { note: `plus ${number(others)} of other profiles that mention this person` } : {}
}

type ErasedPageProps = { receipt: ErasureReceipt; preview: Erased | null }

/** Replaces the page of an erased person. */
function ErasedPage({ receipt: { id, status, erased }, preview }: ErasedPageProps): VNode {
  const isDone = status === 'completed'
  const isOther = isDone && preview !== null && describeErased(preview) !== describeErased(erased)
  return h(
    Page,
    { title: isDone ? 'Erased' : 'Erasure in progress' },
    html`
      <p>Receipt <code>${id}</code>: ${describeErased(erased)}.</p>
      ${!isDone && html`<p>The erasure continues in the background. The receipt shows its progress.</p>`}
      ${isOther && html`<p class="faint">The preview listed ${describeErased(preview)}. The data has changed since then.</p>`}
      <p><a href=${link('customers')}>Customers</a> · <a href=${link('privacy')}>All receipts</a></p>
    `,
  )
}

function personLead(
  { contact, profile_id: id, merged_profiles: merged }: Person,
  customer: Customer | null,
): ComponentChildren {
  const status = customer && html`${h(StatusBadge, { status: customer.status })} `
  const record = contact
    ? html`<a href=${link('record', { type: 'contacts', id: contact.id })}>Contact ${contact.id}</a>`
    : 'No contact record'
  const mergedText = merged.length > 0 && `, ${plural(merged.length, 'other profile')} merged into this one`
  const known = customer ? `Profile ${id}` : html`${record}, profile ${id}`
  return html`${status}${known}${mergedText}.`
}

type PersonClaim = Person['claims'][number]

const CLAIM_COLUMNS: Column<PersonClaim>[] = [
  { label: 'Identifier', cell: ({ name }) => `${name.kind} ${name.value}`, kind: 'long' },
  {
    label: 'Appeared with',
    cell: ({ other }) => html`<a href=${link('person', { id: other.profile_id })}>${other.kind} ${other.value}</a>`,
    kind: 'long',
  },
  { label: 'Time', cell: ({ at }) => h(Time, { at }) },
  { label: 'Source', cell: causeCell, kind: 'long', isMinor: true },
]

function nameColumns(person: Person, problem: Signal<unknown>, refresh: () => Promise<void>): Column<PersonName>[] {
  const { tenant, profile_id: id } = person
  const verify = async ({ kind, value }: PersonName) => {
    await people.verify(tenant, id, `${kind}:${value}`)
    announce('Identifier verified')
    await refresh()
  }
  const split = async ({ kind, value }: PersonName) => {
    const title = `Unlink ${kind} ${value}?`
    const text =
      'Its events then belong to a separate person. To undo this, merge the two people with the command kontor person merge.'
    if (!(await askConfirmation({ title, text, yes: 'Unlink' }))) return
    await people.split(tenant, id, `${kind}:${value}`)
    announce('Identifier unlinked')
    await refresh()
  }
  const actions = (name: PersonName) =>
    name.moved_on_at === null &&
    person.names.length > 1 &&
    html`${
      !name.verified &&
      h(ActionButton, { label: 'Verify', needs: 'admin', run: () => verify(name), problem, kind: 'link' })
    } ${h(ActionButton, { label: 'Unlink', needs: 'admin', run: () => split(name), problem, kind: 'link' })}`
  return [...NAME_COLUMNS, { label: 'Action', cell: actions }]
}

const NAME_COLUMNS: Column<PersonName>[] = [
  { label: 'Identifier', cell: ({ value }) => value, kind: 'long' },
  {
    label: 'Link',
    cell: ({ verified }) =>
      h(Badge, verified ? { text: 'verified', tone: 'good' } : { text: 'unverified', tone: 'neutral' }),
  },
  {
    label: 'Kind',
    cell: ({ kind, moved_on_at }) => html`${kind}${moved_on_at && html` ${h(Badge, { text: 'reassigned' })}`}`,
  },
  {
    label: 'Since',
    cell: ({ joined_at, first_seen_at }) => h(Time, { at: joined_at ?? first_seen_at }),
    isMinor: true,
  },
  { label: 'Linked by', cell: causeCell, kind: 'long', isMinor: true },
]

/** What linked the identifier to the profile. */
function causeCell({ cause }: Pick<PersonName, 'cause'>): ComponentChildren {
  if (!cause) return html`<span class="faint">not linked to another identifier</span>`
  const { kind, id } = cause
  if (kind === 'event') return html`<a href=${link('event', { id })}>an event</a>`
  if (kind === 'sale') return html`sale of <a href=${link('record', { type: 'orders', id })}>order ${id}</a>`
  if (kind !== 'record') return `${kind} ${id}`
  const [type = '', ...rest] = id.split('/')
  const recordId = rest.join('/')
  const list = type === 'order' ? 'orders' : 'contacts'
  return html`<a href=${link('record', { type: list, id: recordId })}>${type} ${recordId}</a>`
}

const FIRST_MOMENTS = 25
const MAX_MOMENTS = 500

/** An entry of the timeline; `at` is '' if it has no time. */
type Moment = { key: string; at: string; what: string; title: ComponentChildren; detail: string }

const COLUMNS: Column<Moment>[] = [
  { label: 'Activity', cell: ({ title }) => title, kind: 'long' },
  { label: 'Detail', cell: ({ detail }) => detail, kind: 'long' },
  { label: 'Kind', cell: ({ what }) => h(Badge, { text: what, tone: what === 'sale' ? 'good' : 'neutral' }) },
  { label: 'Time', cell: ({ at }) => h(Time, { at, hasYear: true }) },
]

/** Shown when it has arrived. */
function PersonTimeline({ rows }: { rows: Promise<JsonObject[]> }): VNode {
  const problem = useSignal<unknown>(null)
  const moments = useSignal<Moment[] | null>(null)
  const limit = useSignal(FIRST_MOMENTS)
  useEffect(() => {
    let isLeft = false
    rows.then(
      all => {
        if (isLeft) return
        moments.value = withSalesOnce(all)
          .flatMap(toMoments)
          .toSorted((a, b) => (a.at < b.at ? 1 : -1))
      },
      error => {
        if (!isLeft) problem.value = error
      },
    )
    return () => {
      isLeft = true
    }
  }, [rows])
  const showAll = () => {
    limit.value = MAX_MOMENTS
  }
  const found = moments.value
  return html`
    ${
      found === null &&
      problem.value === null &&
      html`<div class="loading skeleton"><span class="unseen">Loading the timeline …</span><i></i><i></i><i></i></div>`
    }
    ${h(ProblemArea, { problem })}
    ${found !== null && found.length === 0 && h(EmptyState, { title: 'No activity yet.' })}
    ${
      found !== null &&
      found.length > 0 &&
      h(Table<Moment>, {
        caption: 'Timeline',
        columns: COLUMNS,
        rows: found.slice(0, limit.value),
        rowKey: ({ key }) => key,
        csv: { rows: found.map(({ key, at, detail }) => ({ what: key, at, detail })), name: 'timeline' },
      })
    }
    ${
      found !== null &&
      found.length > limit.value &&
      limit.value < MAX_MOMENTS &&
      html`<p><button type="button" onClick=${showAll}>Show all ${number(Math.min(found.length, MAX_MOMENTS))}</button></p>`
    }
    ${found !== null && html`<p class="faint">The timeline shows the events of the last 365 days. To get older events, export the data.</p>`}
    ${found !== null && limit.value === MAX_MOMENTS && found.length > MAX_MOMENTS && html`<p class="faint">${plural(found.length - MAX_MOMENTS, 'older entry is', 'older entries are')} not shown.</p>`}
  `
}

/** A sale is one row: without its order, and without the events that report it. */
function withSalesOnce(rows: JsonObject[]): JsonObject[] {
  const sales = rows.filter(({ type }) => type === 'conversion')
  const known = new Set(sales.flatMap(({ id, source_object_id: order }) => [`event ${id}`, `order ${order}`]))
  return rows.filter(({ type, id, payload }) => {
    const order = (payload as JsonObject | null)?.order_id ?? (payload as JsonObject | null)?.orderId
    const isReport = type === 'event' && order != null && known.has(`order ${order}`)
    return !known.has(`${type} ${id}`) && !isReport
  })
}

function toMoments(row: JsonObject): Moment[] {
  const id = String(row.id ?? row.customer ?? '')
  const key = `${row.type} ${id}`
  switch (row.type) {
    case 'event': {
      const title = html`<a href=${link('event', { id })}>${activityName(row.event_type)}</a>`
      const about = summarize({ payload: row.payload as Event['payload'], event_type: text(row.event_type) })
      return [{ key, at: String(row.occurred_at), what: 'event', title, detail: about || `from ${row.source}` }]
    }
    case 'conversion': {
      const amount = money(parseAmount(row.amount), row.currency as string | null)
      return [
        {
          key,
          at: String(row.occurred_at),
          what: 'sale',
          title: saleTitle(row, id),
          detail: [amount, row.source !== 'orders' && row.source_object_id].filter(Boolean).join(' · '),
        },
      ]
    }
    case 'order':
    case 'contact': {
      const type = row.type === 'order' ? 'orders' : 'contacts'
      const title = html`<a href=${link('record', { type, id })}>${id}</a>`
      return [{ key, at: String(row.sourceUpdatedAt), what: row.type, title, detail: 'record updated' }]
    }
    case 'billing_account':
      return subscriptionMoments(row)
    default:
      return []
  }
}

/** invoice.paid → Invoice paid */
function activityName(type: unknown): string {
  return words(text(type).replaceAll('.', ' '))
}

function saleTitle(
  { source, source_object_id: order, conversion_type: type }: JsonObject,
  id: string,
): ComponentChildren {
  if (source !== 'orders') return html`<a href=${link('conversion', { id })}>${activityName(type)}</a>`
  return html`<a href=${link('record', { type: 'orders', id: String(order) })}>order ${String(order)}</a>`
}

function subscriptionMoments(account: JsonObject): Moment[] {
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

type EraseFormProps = {
  person: Person
  /** The title of the page. */
  title: string
  /** `preview`: what the preview listed. */
  erased(receipt: ErasureReceipt, preview: Erased | null): void
}

/** Shows a preview first. To confirm, the user types the person's name or id, because an erasure cannot be undone. */
function EraseForm({ person, title, erased }: EraseFormProps): VNode {
  const problem = useSignal<unknown>(null)
  const preview = useSignal<ErasurePreview | null>(null)
  const { profile_id: id, tenant } = person
  const isWhole = useSignal(false)
  const subject = () => ({ tenant, profile: id, confirm_profile: isWhole.peek() })
  const loadPreview = async () => {
    preview.value = await people.previewErasure(subject())
  }
  const includeAll = () => {
    isWhole.value = true
    return loadPreview()
  }
  const isConfirmed = ({ confirmation }: { confirmation: string }) => [id, title.trim()].includes(confirmation.trim())
  const erase = async () => erased(await people.erase(subject()), preview.peek()?.would_erase ?? null)
  return html`
    <p>Events are deleted. Orders, sales and billing are kept without personal data. This cannot be undone.</p>
    ${h(ProblemArea, { problem })}
    ${
      preview.value === null
        ? html`<p>${h(ActionButton, { label: 'Preview erasure', needs: 'admin', run: loadPreview, problem })}</p>`
        : html`
            <p>Affected data: ${describeErased(preview.value.would_erase)}.</p>
            ${h(NotCovered, { preview: preview.value, includeAll, problem })}
            ${preview.value.not_joined.map(other => h(OtherProfile, other))}
            ${
              preview.value.mentions.events > 0 &&
              html`<p>Kontor keeps ${plural(preview.value.mentions.events, 'event')} of other people that contain the e-mail address. The receipt lists their ids.</p>`
            }
            ${h(
              Form<'confirmation'>,
              { submit: 'Erase permanently', needs: 'admin', layout: 'filter', run: erase, isConfirmed },
              h(TextField, {
                ...{ id: 'confirmation', label: `Type ${title} to confirm` },
                ...(title !== id && { hint: `Or ${id}` }),
              }),
            )}
          `
    }
  `
}

type NotCoveredProps = { preview: ErasurePreview; includeAll(): Promise<void>; problem: Signal<unknown> }

/** The identifiers of the profile that an erasure leaves out, unless the user confirms that they are the same person. */
export function NotCovered({ preview, includeAll, problem }: NotCoveredProps): VNode | null {
  const { not_covered: left, linked_profile_id: id } = preview
  if (id === null) return null
  const names = left.map(({ kind, value }) => `${kind} ${value}`).join(', ')
  return html`
    <p>Not included: ${names} of <a href=${link('person', { id })}>${id}</a>. Only unverified input links them to this person.</p>
    <p>${h(ActionButton, { label: 'Include all identifiers', run: includeAll, problem })}</p>
  `
}

function OtherProfile({ profile_id, kind, value, remaining_events }: ErasurePreview['not_joined'][number]): VNode {
  return html`
    <p>Another profile has the same id and is not included: <a href=${link('person', { id: profile_id })}>${profile_id}</a>
      (${kind} ${value}). Kontor keeps its ${plural(remaining_events, 'event')}.</p>
  `
}

/** Labels for previews and receipts. */
const WHAT: Record<string, string> = {
  conversions: 'anonymized conversions',
  orders: 'orders reduced to amounts and dates',
  identities: 'identifiers',
  touches: 'origins of visits',
  archived: 'archived results',
  waiting: 'waiting events',
  log_entries: 'received requests',
  billing: 'anonymized billing accounts and invoices',
}

export function describeErased(erased: Erased): string {
  const given = Object.entries(erased).filter(([, count]) => count > 0)
  if (given.length === 0) return 'nothing'
  return given.map(([name, count]) => `${WHAT[name] ?? words(name).toLowerCase()}: ${number(count)}`).join(', ')
}

/** The people who share an identifier. */
type Choices = { choices: PersonChoice[] }

/** The response, or the people to choose from. */
async function withChoices<Answer>(answer: Promise<Answer>): Promise<Answer | Choices> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'person_ambiguous') throw error
    return { choices: error.choices }
  }
}

function ChoicePage({ id, choices }: Choices & { id: string }): VNode {
  return h(
    Page,
    {
      title: 'More than one person',
      lead: html`Several people have the identifier ${id}. They are not linked to each other.`,
    },
    html`<ul>
      ${choices.map(
        ({ name, profile_id: profile }) =>
          html`<li><a href=${link('person', { id: profile })}>${name}</a> <span class="faint">${profile}</span></li>`,
      )}
    </ul>`,
    h(PersonForm, { name: id }),
  )
}
