import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { people } from '../../api/admin.ts'
import { nullOn } from '../../api/request.ts'
import type { Erased, ErasureReceipt, Person, PersonName } from '../../api/types.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge, EmptyState, ProblemArea } from '../../components/notice.ts'
import { Page, Section, Tiles } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { number, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import { ChoicePage, orChoices } from './ambiguous.ts'
import { EraseForm, inWords } from './erase-form.ts'
import { PersonForm } from './people.ts'
import { PersonTimeline } from './timeline.ts'

export const page = definePage(
  'person',
  ({ route, signal }) => nullOn(404, orChoices(people.show(tenant.peek() ?? '', route.params.id, signal))),
  ({ data: person, route }) => {
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
    return h(PersonPage, { key: person.profile_id, person })
  },
)

function PersonPage({ person }: { person: Person }): VNode {
  const problem = useSignal<unknown>(null)
  const done = useSignal<ErasedPageProps | null>(null)
  const { profile_id: id, contact } = person
  if (done.value) return h(ErasedPage, done.value)
  const title = contact?.name ?? contact?.email ?? person.names[0]?.value ?? id
  const save = () => people.save(person.tenant, id)
  return h(
    Page,
    {
      title,
      actions: h(ActionButton, { label: 'Export data', run: save, problem }),
      lead: leadOf(person),
    },
    h(ProblemArea, { problem }),
    h(Tiles, {
      tiles: [
        { label: 'Events', value: number(person.events), ...othersNote(person) },
        { label: 'Conversions', value: number(person.conversions) },
        { label: 'Identifiers', value: number(person.names.length), note: id },
      ],
    }),
    h(
      Section,
      { title: 'Identifiers' },
      h(Table<PersonName>, {
        ...{ caption: 'Identifiers', columns: NAME_COLUMNS, rows: person.names },
        csv: { rows: person.names, name: 'identifiers' },
      }),
    ),
    h(Section, { title: 'Timeline' }, h(PersonTimeline, { person })),
    h(
      Section,
      { title: 'Erase this person' },
      h(EraseForm, { person, title, erased: (receipt, preview) => (done.value = { receipt, preview }) }),
    ),
  )
}

/** The time line and an erasure hold them too. */
function othersNote({ events_of_others: others }: Person): { note?: string } {
  return others > 0 ? { note: `plus ${number(others)} of other profiles that mention this person` } : {}
}

type ErasedPageProps = { receipt: ErasureReceipt; preview: Erased | null }

/** Nothing of the person is shown any more. */
function ErasedPage({ receipt: { id, status, erased }, preview }: ErasedPageProps): VNode {
  const isDone = status === 'completed'
  const isOther = isDone && preview !== null && inWords(preview) !== inWords(erased)
  return h(
    Page,
    { title: isDone ? 'Erased' : 'Erasure in progress' },
    html`
      <p>Receipt <code>${id}</code>: ${inWords(erased)}.</p>
      ${!isDone && html`<p>The erasure continues in the background. The receipt shows its progress.</p>`}
      ${isOther && html`<p class="faint">The preview listed ${inWords(preview)}. The data has changed since then.</p>`}
      <p><a href=${link('people')}>People</a> · <a href=${link('privacy')}>All receipts</a></p>
    `,
  )
}

function leadOf({ contact, merged_profiles: merged }: Person): ComponentChildren {
  const company = contact?.company && `${contact.company}. `
  const record =
    contact && html`<a href=${link('record', { type: 'contacts', id: contact.id })}>Contact ${contact.id}</a>`
  const mergedText = merged.length > 0 && `, ${plural(merged.length, 'other profile')} merged into this one`
  return html`${company}${record ?? 'No contact record'}${mergedText}.`
}

const NAME_COLUMNS: Column<PersonName>[] = [
  { label: 'Identifier', cell: ({ value }) => value, kind: 'long' },
  {
    label: 'Kind',
    cell: ({ kind, moved_on_at }) =>
      html`${kind}${moved_on_at && html` ${h(Badge, { text: 'reassigned' })}`}`,
  },
  { label: 'First seen', cell: ({ first_seen_at }) => h(Time, { at: first_seen_at }), isMinor: true },
  { label: 'Linked by', cell: causeOf, kind: 'long', isMinor: true },
]

/** What brought the name together with the others. */
function causeOf({ cause }: PersonName): ComponentChildren {
  if (!cause) return html`<span class="faint">first identifier</span>`
  const { kind, id } = cause
  if (kind === 'event') return html`<a href=${link('event', { id })}>an event</a>`
  if (kind === 'sale') return html`sale of <a href=${link('record', { type: 'orders', id })}>order ${id}</a>`
  if (kind !== 'record') return `${kind} ${id}`
  const [type = '', ...rest] = id.split('/')
  const recordId = rest.join('/')
  const list = type === 'order' ? 'orders' : 'contacts'
  return html`<a href=${link('record', { type: list, id: recordId })}>${type} ${recordId}</a>`
}
