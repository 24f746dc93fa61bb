import { type Signal, useSignal } from '@preact/signals'
import { deadLetters } from '../../api/admin.ts'
import type { DeadLetter, ReplayOrder } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton, RefreshButton, SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState, type Outcome, OutcomeArea, ProblemArea } from '../../components/notice.ts'
import { Page } from '../../components/page.ts'
import { type Column, GrowingTable } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { number, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { faultyBatchCommand } from '../../samples.ts'
import { tenant } from '../../session.ts'
import { replayOutcome } from './replay-words.ts'

const ROWS = 50
const REASONS = [
  ['', 'All reasons'],
  ['rejected', 'Rejected: not valid'],
  ['failed', 'Failed: could not be applied'],
] as const

const filterOf = (query: URLSearchParams) => ({
  tenant: tenant.peek(),
  reason: query.get('reason'),
  cause: query.get('cause'),
  closed: query.get('closed'),
  limit: ROWS,
})

export const page = definePage(
  'deadLetters',
  ({ route, signal }) => deadLetters.list(filterOf(route.query), signal),
  ({ data, route: { query }, refresh }) => {
    const problem = useSignal<unknown>(null)
    const outcome = useSignal<Outcome | null>(null)
    const reason = query.get('reason')
    const cause = query.get('cause')
    const closed = query.get('closed')
    const replay = async (order: Omit<ReplayOrder, 'tenant'>) => {
      const result = await deadLetters.replay({ tenant: tenant.peek(), ...order })
      outcome.value = replayOutcome(result)
      announce(outcome.value.text)
      await refresh()
    }
    const replayAll = async () => {
      const what =
        'Each dead letter is processed again with the current settings. Those that fail again reappear here.'
      if (await confirmed({ title: 'Replay all dead letters?', text: what, yes: 'Replay all' }))
        await replay({ ...(reason && { reason }), ...(cause ? { cause } : !reason && { all: true }) })
    }
    return h(
      Page,
      {
        title: 'Dead letters',
        actions: [
          closed === null &&
            data.results.length > 0 &&
            h(ActionButton, { label: 'Replay all', run: replayAll, problem }),
          h(RefreshButton, { refresh }),
        ],
        lead: 'Requests that were accepted but could not be processed. Fix the cause, then replay them.',
      },
      h(SelectFilter, {
        id: 'reason',
        label: 'Reason',
        options: REASONS,
        value: reason ?? '',
        onChange: chosen => go(link('deadLetters', { reason: chosen, cause, closed })),
      }),
      cause !== null &&
        html`<p>Cause: <strong>${cause}</strong>. <a href=${link('deadLetters', { reason, closed })}>Show all causes</a></p>`,
      closed === null
        ? html`<p><a href=${link('deadLetters', { reason, cause, closed: 'true' })}>Show replayed and resolved dead letters</a></p>`
        : html`<p>Replayed and resolved dead letters are listed until they expire. <a href=${link('deadLetters', { reason, cause })}>Show open dead letters</a></p>`,
      h(ProblemArea, { problem }),
      h(OutcomeArea, { outcome }),
      h(GrowingTable<DeadLetter>, {
        caption: 'Dead letters',
        columns:
          closed === null ? [...LETTER_COLUMNS, replayColumn(id => replay({ id }), problem)] : LETTER_COLUMNS,
        keyOf: ({ id }) => id,
        first: data,
        csv: { api: 'admin', path: '/dead-letters', query: filterOf(query), name: 'dead-letters' },
        load: cursor => deadLetters.list({ ...filterOf(query), cursor }),
        empty:
          reason || cause || closed
            ? h(EmptyState, { title: 'No dead letters match these filters.' })
            : h(EmptyState, {
                title: 'No dead letters.',
                text: 'To see one, send this batch. Its first item is accepted. The second has no event name and becomes a dead letter.',
                command: faultyBatchCommand(),
              }),
      }),
    )
  },
)

const LETTER_COLUMNS: Column<DeadLetter>[] = [
  {
    label: 'Error',
    cell: ({ id, error }) => html`<a href=${link('deadLetter', { id })}>${error}</a>`,
    kind: 'long',
  },
  { label: 'Reason', cell: ({ reason }) => h(Badge, { text: reason, tone: 'bad' }) },
  { label: 'Failed', cell: ({ failed_at }) => h(Time, { at: failed_at }) },
  { label: 'Kind', cell: ({ kind }) => kind, isMinor: true },
  {
    label: "Sender's id",
    cell: ({ inbound_event_id }) => text(inbound_event_id),
    kind: 'long',
    isMinor: true,
  },
  { label: 'Attempts', cell: ({ attempts }) => number(attempts), kind: 'number', isMinor: true },
]

function replayColumn(replay: (id: string) => unknown, problem: Signal<unknown>): Column<DeadLetter> {
  return {
    label: 'Replay',
    cell: ({ id }) => h(ActionButton, { label: 'Replay', run: () => replay(id), problem, kind: 'link' }),
  }
}
