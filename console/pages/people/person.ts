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
        { title: 'Nobody by this name' },
        h(PersonForm, { name: id }),
        h(EmptyState, {
          title: `Nobody is known as ${id}.`,
          text: 'Names are exact: an e-mail, a user id, a visitor.',
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
      actions: h(ActionButton, { label: 'Export everything', run: save, problem }),
      lead: leadOf(person),
    },
    h(ProblemArea, { problem }),
    h(Tiles, {
      tiles: [
        { label: 'Events', value: number(person.events), ...othersNote(person) },
        { label: 'Conversions', value: number(person.conversions) },
        { label: 'Names', value: number(person.names.length), note: id },
      ],
    }),
    h(
      Section,
      { title: 'Known as' },
      h(Table<PersonName>, {
        ...{ caption: 'Names', columns: NAME_COLUMNS, rows: person.names },
        csv: { rows: person.names, name: 'names' },
      }),
    ),
    h(Section, { title: 'Everything, newest first' }, h(PersonTimeline, { person })),
    h(
      Section,
      { title: 'Erase this person' },
      h(EraseForm, { person, title, erased: (receipt, preview) => (done.value = { receipt, preview }) }),
    ),
  )
}

/** The time line and an erasure hold them too. */
function othersNote({ events_of_others: others }: Person): { note?: string } {
  return others > 0 ? { note: `and ${number(others)} of others that name them, not joined` } : {}
}

type ErasedPageProps = { receipt: ErasureReceipt; preview: Erased | null }

/** Nothing of the person is shown any more. */
function ErasedPage({ receipt: { id, status, erased }, preview }: ErasedPageProps): VNode {
  const isDone = status === 'completed'
  const isOther = isDone && preview !== null && inWords(preview) !== inWords(erased)
  return h(
    Page,
    { title: isDone ? 'Erased' : 'Being erased' },
    html`
      <p>Receipt <code>${id}</code>: ${inWords(erased)}.</p>
      ${!isDone && html`<p>It goes on by itself, and the receipt tells how far it is.</p>`}
      ${isOther && html`<p class="faint">Announced was ${inWords(preview)}: more came in meanwhile, or went by itself.</p>`}
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
  { label: 'Name', cell: ({ value }) => value, kind: 'long' },
  {
    label: 'Kind',
    cell: ({ kind, moved_on_at }) => html`${kind}${moved_on_at && html` ${h(Badge, { text: 'moved on' })}`}`,
  },
  { label: 'First seen', cell: ({ first_seen_at }) => h(Time, { at: first_seen_at }), isMinor: true },
  { label: 'Joined by', cell: causeOf, kind: 'long', isMinor: true },
]

/** What brought the name together with the others. */
function causeOf({ cause }: PersonName): ComponentChildren {
  if (!cause) return html`<span class="faint">the first name</span>`
  const { kind, id } = cause
  if (kind === 'event') return html`<a href=${link('event', { id })}>an event</a>`
  if (kind === 'sale')
    return html`the sale of <a href=${link('record', { type: 'orders', id })}>order ${id}</a>`
  if (kind !== 'record') return `${kind} ${id}`
  const [type = '', ...rest] = id.split('/')
  const recordId = rest.join('/')
  const list = type === 'order' ? 'orders' : 'contacts'
  return html`<a href=${link('record', { type: list, id: recordId })}>${type} ${recordId}</a>`
}
