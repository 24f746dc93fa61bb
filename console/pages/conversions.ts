import { useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { conversions, events } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { Conversion, EventOutcome } from '../api/types.ts'
import { showDialog } from '../components/dialog.ts'
import { RefreshButton } from '../components/form.ts'
import { EmptyState } from '../components/notice.ts'
import { Facts, Page } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Breakable } from '../components/text.ts'
import { Time } from '../components/time.ts'
import { filterOf, NoMatches, TimeFilter } from '../components/time-filter.ts'
import { money, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { convertCommand, keyHint } from '../samples.ts'
import { isAdmin } from '../session.ts'
export const conversionsPage = definePage(
  'conversions',
  ({ route, signal }) => conversions.list(filterOf(route.query), signal),
  ({ data, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Conversions',
        actions: h(RefreshButton, { refresh }),
        lead: 'Each sale is listed once, even if several systems report it.',
      },
      h(TimeFilter, { page: 'conversions', query }),
      h(GrowingTable<Conversion>, {
        caption: 'Conversions',
        columns: conversionColumns,
        rowKey: ({ id }) => id,
        first: data,
        csv: { api: 'data', path: '/conversions', query: filterOf(query), name: 'conversions' },
        load: cursor => conversions.list({ ...filterOf(query), cursor }),
        empty: query.size > 0 ? h(NoMatches, { page: 'conversions' }) : h(NoConversions, {}),
      }),
    ),
)

function NoConversions(): VNode {
  return h(EmptyState, {
    title: 'No conversions yet.',
    text: 'A convert event, an order record or a paid invoice creates a conversion.',
    command: convertCommand(),
    action: keyHint('tracking'),
  })
}

export const conversionColumns: Column<Conversion>[] = [
  {
    label: 'Type',
    cell: row =>
      html`<button type="button" class="link" onClick=${() => showConversion(row)}>${h(Breakable, { text: row.conversion_type })}</button>`,
    kind: 'long',
  },
  { label: 'Amount', cell: ({ amount, currency }) => money(amount, currency), kind: 'number' },
  { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
  { label: 'Source', cell: ({ source }) => source, isMinor: true },
  { label: 'Object id', cell: ({ source_object_id }) => text(source_object_id), kind: 'long', isMinor: true },
  { label: 'Person', cell: personCell, kind: 'long', isMinor: true },
]

/** Links to the person with an admin key, else to the contact record. */
function personCell(row: Conversion): ComponentChildren {
  const { contact_id: contact, profile_id: profile } = row
  const name = text(row.contact_name ?? row.contact_email ?? contact ?? row.visitor)
  if (isAdmin.value && profile !== null) return html`<a href=${link('person', { id: profile })}>${name}</a>`
  return contact === null ? name : html`<a href=${link('record', { type: 'contacts', id: contact })}>${name}</a>`
}

function showConversion(row: Conversion): void {
  showDialog(`Conversion ${row.source_object_id ?? row.conversion_type}`, h(ConversionFacts, { row }))
}

/** All fields, including those unknown to the console. */
function ConversionFacts({ row }: { row: Conversion }): VNode {
  const { occurred_at, amount, currency, ...others } = row
  const firstEvent = useSignal<EventOutcome | null>(null)
  useEffect(() => {
    nullOn(404, events.find(row.id)).then(
      outcome => (firstEvent.value = outcome),
      () => {}, // without permission to read events, the rest is still shown
    )
  }, [row.id])
  const event = firstEvent.value
  return h(Facts, {
    facts: [
      ...(event?.reason ? ([['Note', event.reason]] as const) : []),
      ...(event
        ? ([['Source event', html`<a href=${link('event', { id: row.id })}>first event received</a>`]] as const)
        : []),
      ['Amount', money(amount, currency)],
      ['Occurred', h(Time, { at: occurred_at })],
      ...Object.entries(others).map(([name, value]) => [words(name), text(value)] as const),
    ],
  })
}
