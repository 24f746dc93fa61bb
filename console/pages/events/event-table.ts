import type { VNode } from 'preact'
import type { Event } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { EmptyState } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { trackCommand, whereKeysAre } from '../../samples.ts'

export const eventColumns: Column<Event>[] = [
  {
    label: 'Type',
    cell: ({ id, event_type }) =>
      html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type })}</a>`,
    kind: 'long',
  },
  { label: 'When', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
  { label: 'From', cell: ({ source_type }) => source_type, isMinor: true },
  { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
  {
    label: 'Contact',
    cell: ({ contact_id, profile_id }) => text(contact_id ?? profile_id),
    kind: 'long',
    isMinor: true,
  },
]

export function NoEvents(): VNode {
  return h(EmptyState, {
    title: 'No events yet.',
    text: 'Send the first one; it is here a moment later.',
    command: trackCommand(),
    action: whereKeysAre('tracking'),
  })
}
