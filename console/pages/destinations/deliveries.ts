import type { VNode } from 'preact'
import { destinations } from '../../api/admin.ts'
import type { Delivery, DeliveryOutcome, List } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { showDialog } from '../../components/dialog.ts'
import { SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState, type Tone } from '../../components/notice.ts'
import { Facts, TextView } from '../../components/page.ts'
import { type Column, GrowingTable } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { NONE, number } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link } from '../../router.ts'

export const ROWS = 20

const OUTCOMES = [
  ['', 'All outcomes'],
  ['delivered', 'Delivered'],
  ['retrying', 'Retrying'],
  ['failed', 'Failed'],
] as const
const TONES: Record<DeliveryOutcome, Tone> = { delivered: 'good', retrying: 'neutral', failed: 'bad' }

type DeliveryTableProps = { id: string; first: List<Delivery>; outcome: string | null }

/** Every attempt to deliver, and what was answered. */
export function DeliveryTable({ id, first, outcome }: DeliveryTableProps): VNode {
  return html`
    ${h(SelectFilter, {
      id: 'outcome',
      label: 'Outcome',
      options: OUTCOMES,
      value: outcome ?? '',
      onChange: chosen => go(link('destination', { id }, { outcome: chosen })),
    })}
    ${h(GrowingTable<Delivery>, {
      caption: 'Deliveries',
      columns,
      keyOf: deliveryKey,
      first,
      csv: { api: 'admin', path: `/destinations/${id}/deliveries`, query: { outcome }, name: 'deliveries' },
      load: cursor => destinations.deliveries(id, { outcome, limit: ROWS, cursor }),
      empty: outcome
        ? h(EmptyState, { title: 'No deliveries with this outcome.' })
        : h(EmptyState, {
            title: 'No messages sent yet.',
            text: 'New data is sent as soon as it is processed. Use “Send test message” above to check the connection.',
          }),
    })}
  `
}

export const deliveryKey = (row: Delivery) => `${row.id} ${row.attempted_at} ${row.attempt}`

const columns: Column<Delivery>[] = [
  {
    label: 'Type',
    cell: row =>
      html`<button type="button" class="link" onClick=${() => showDelivery(row)}>${h(Breakable, { text: row.type })}</button>`,
    kind: 'long',
  },
  {
    label: 'Outcome',
    cell: row => [h(Badge, { text: row.outcome, tone: TONES[row.outcome] }), ' ', answerOf(row)],
  },
  { label: 'Time', cell: ({ attempted_at }) => h(Time, { at: attempted_at }) },
  { label: 'Attempt', cell: ({ attempt }) => number(attempt), kind: 'number', isMinor: true },
  {
    label: 'Duration',
    cell: ({ duration_ms }) => `${number(duration_ms)} ms`,
    kind: 'number',
    isMinor: true,
  },
  {
    label: 'Next attempt',
    cell: ({ next_attempt_at: at }) => (at === null ? NONE : h(Time, { at })),
    isMinor: true,
  },
]

function answerOf({ status, error }: Delivery): string {
  return status === null ? (error ?? 'no response') : String(status)
}

function showDelivery(row: Delivery): void {
  const { id, status, error, response } = row
  const eventId = /^event\./.test(row.type) ? id.replace(/^msg_/, '') : null
  showDialog(`Delivery of ${row.type}`, [
    h(Facts, {
      facts: [
        ['Outcome', h(Badge, { text: row.outcome, tone: TONES[row.outcome] })],
        ['Response', status === null ? 'no response' : String(status)],
        error && ['Error', error],
        ['Message', html`<code>${id}</code>`],
        eventId && ['Event', html`<a href=${link('event', { id: eventId })}><code>${eventId}</code></a>`],
        ['Attempt', `${number(row.attempt)}, duration ${number(row.duration_ms)} ms`],
        ['Time', h(Time, { at: row.attempted_at })],
        row.next_attempt_at && ['Next attempt', h(Time, { at: row.next_attempt_at })],
      ],
    }),
    response
      ? h(TextView, { text: response, label: 'Start of the response' })
      : html`<p class="faint">The response had no body.</p>`,
  ])
}
