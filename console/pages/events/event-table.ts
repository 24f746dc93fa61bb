import type { ComponentChildren, VNode } from 'preact'
import type { Event } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { EmptyState } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { NONE, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { trackCommand, whereKeysAre } from '../../samples.ts'
import { isAdmin } from '../../session.ts'

export const eventColumns: Column<Event>[] = [
  {
    label: 'Type',
    cell: ({ id, event_type }) =>
      html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type })}</a>`,
    kind: 'long',
  },
  { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
  { label: 'Source', cell: ({ source_type }) => source_type, isMinor: true },
  { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
  {
    label: 'Contact',
    cell: whoOf,
    kind: 'long',
    isMinor: true,
  },
]

/** The person, for those who may look at people; else the contact. */
function whoOf({ contact_id: contact, profile_id: profile }: Event): ComponentChildren {
  const name = contact ?? profile
  if (name === null) return NONE
  if (isAdmin.value && profile !== null) return html`<a href=${link('person', { id: profile })}>${name}</a>`
  return contact === null
    ? name
    : html`<a href=${link('record', { type: 'contacts', id: contact })}>${name}</a>`
}

export function NoEvents(): VNode {
  return h(EmptyState, {
    title: 'No events yet.',
    text: 'Send the first event. It appears here shortly after.',
    command: trackCommand(),
    action: whereKeysAre('tracking'),
  })
}
