import type { VNode } from 'preact'
import { inbound } from '../../api/admin.ts'
import type { List, Receipt, Rejection, Source } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { showDialog } from '../../components/dialog.ts'
import { SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState, ProblemNotice, type Tone } from '../../components/notice.ts'
import { JsonView } from '../../components/page.ts'
import { type Column, GrowingTable } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { lowerWords, number, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link } from '../../router.ts'
import { webhookCommand } from '../../samples.ts'

export const ROWS = 20

const OUTCOMES = [
  ['', 'All outcomes'],
  ['processed', 'Processed'],
  ['duplicate', 'Duplicate'],
  ['dropped', 'Dropped'],
  ['dead_letter', 'Dead letter'],
] as const

type ReceiptTableProps = { source: Source; first: List<Receipt>; outcome: string | null }

/** What became of what a source brought. */
export function ReceiptTable({ source, first, outcome }: ReceiptTableProps): VNode {
  const { id, path } = source
  return html`
    ${h(SelectFilter, {
      id: 'outcome',
      label: 'Outcome',
      options: OUTCOMES,
      value: outcome ?? '',
      onChange: chosen => go(link('source', { id }, { outcome: chosen })),
    })}
    ${h(GrowingTable<Receipt>, {
      caption: 'Receipts',
      columns: receiptColumns,
      keyOf: receiptKey,
      first,
      csv: { api: 'admin', path: '/receipts', query: { source: id, outcome }, name: 'receipts' },
      load: cursor => inbound.receipts({ source: id, outcome, limit: ROWS, cursor }),
      empty: outcome
        ? h(EmptyState, { title: 'No receipts with this outcome.' })
        : h(EmptyState, {
            title: 'No events received yet.',
            text: 'Use “Send test event” above, or send one with this command:',
            command: webhookCommand(path),
          }),
    })}
  `
}

export const receiptKey = ({ id, received_at }: Receipt) => `${id} ${received_at}`
export const rejectionKey = ({ id }: Rejection) => id

const receiptColumns: Column<Receipt>[] = [
  {
    label: 'Type',
    cell: ({ id, event_type }) =>
      html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type ?? id })}</a>`,
    kind: 'long',
  },
  {
    label: 'Outcome',
    cell: ({ outcome, detail }) => [
      h(Badge, { text: lowerWords(outcome), tone: toneOf(outcome) }),
      detail && ` ${detail}`,
    ],
  },
  { label: 'Received', cell: ({ received_at }) => h(Time, { at: received_at }) },
  {
    label: "Sender's id",
    cell: ({ inbound_event_id }) => text(inbound_event_id),
    kind: 'long',
    isMinor: true,
  },
  {
    label: 'Archive',
    cell: ({ id, archived }) =>
      archived && html`<button type="button" class="link" onClick=${() => showArchived(id)}>Show</button>`,
    isMinor: true,
  },
]

async function showArchived(id: string): Promise<void> {
  const title = 'Archived result'
  try {
    showDialog(title, h(JsonView, { value: await inbound.archived(id), label: title }))
  } catch (error) {
    showDialog(title, h(ProblemNotice, { error }))
  }
}

/** Requests that were turned away: why a sender's events do not arrive. */
export function RejectionTable({ source, first }: { source: Source; first: List<Rejection> }): VNode {
  return h(GrowingTable<Rejection>, {
    caption: 'Rejected requests',
    columns: rejectionColumns,
    keyOf: rejectionKey,
    first,
    csv: { api: 'admin', path: '/rejections', query: { source: source.id }, name: 'rejected-requests' },
    load: cursor => inbound.rejections({ source: source.id, limit: ROWS, cursor }),
    empty: html`<p class="faint">No requests were rejected.</p>`,
  })
}

const rejectionColumns: Column<Rejection>[] = [
  { label: 'Time', cell: ({ rejected_at }) => h(Time, { at: rejected_at }) },
  {
    label: 'Reason',
    cell: ({ status, code, detail }) => [h(Badge, { text: `${status} ${code}`, tone: 'bad' }), ' ', detail],
  },
  {
    label: 'Client',
    cell: ({ ip, user_agent }) => text([ip, user_agent].filter(Boolean).join(', ')),
    kind: 'long',
    isMinor: true,
  },
  { label: 'Bytes', cell: ({ bytes }) => number(bytes), kind: 'number', isMinor: true },
  {
    label: 'Similar requests',
    cell: ({ suppressed }) => (suppressed > 0 ? number(suppressed) : ''),
    kind: 'number',
    isMinor: true,
  },
]

function toneOf(outcome: string): Tone {
  if (outcome === 'processed') return 'good'
  return outcome === 'dropped' || outcome === 'dead_letter' ? 'bad' : 'neutral'
}
