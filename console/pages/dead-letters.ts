import { type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { deadLetters } from '../api/admin.ts'
import type { DeadLetter, DeadLetterWithBody, ReplayOrder, ReplayResult } from '../api/types.ts'
import { toast } from '../components/announcer.ts'
import { askConfirmation } from '../components/dialog.ts'
import { ActionButton, Form, RefreshButton, SelectFilter, TextArea } from '../components/form.ts'
import { Badge, EmptyState, type Outcome, OutcomeArea, ProblemArea } from '../components/notice.ts'
import { Facts, Page, Section, TextView } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Time } from '../components/time.ts'
import { formatJson, number, plural, text } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { invalidBatchCommand } from '../samples.ts'
import { tenant } from '../session.ts'

const ROWS = 50
const REASONS = [
  ['', 'All types'],
  ['rejected', 'Invalid data'],
  ['failed', 'Failed to process'],
] as const

const filterOf = (query: URLSearchParams) => ({
  tenant: tenant.peek(),
  reason: query.get('reason'),
  cause: query.get('cause'),
  closed: query.get('closed'),
  limit: ROWS,
})

export const deadLettersPage = definePage(
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
      toast(outcome.value.text)
      await refresh()
    }
    const replayAll = async () => {
      const what = 'Each dead letter is processed again with the current settings. Those that fail again reappear here.'
      if (await askConfirmation({ title: 'Replay all dead letters?', text: what, yes: 'Replay all' }))
        await replay({ ...(reason && { reason }), ...(cause ? { cause } : !reason && { all: true }) })
    }
    return h(
      Page,
      {
        title: 'Dead letters',
        actions: [
          closed === null &&
            data.results.length > 0 &&
            h(ActionButton, { label: 'Replay all', needs: 'operator', run: replayAll, problem }),
          h(RefreshButton, { refresh }),
        ],
        lead: 'Data that is invalid or could not be processed. Fix the cause, then replay the data.',
      },
      h(SelectFilter, {
        id: 'reason',
        label: 'Type',
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
        columns: closed === null ? [...LETTER_COLUMNS, replayColumn(id => replay({ id }), problem)] : LETTER_COLUMNS,
        rowKey: ({ id }) => id,
        first: data,
        csv: { api: 'admin', path: '/dead-letters', query: filterOf(query), name: 'dead-letters' },
        load: cursor => deadLetters.list({ ...filterOf(query), cursor }),
        empty:
          reason || cause || closed
            ? h(EmptyState, { title: 'No dead letters match these filters.' })
            : h(EmptyState, {
                title: 'No dead letters.',
                text: 'To see one, send this batch. Its first item is accepted. The second has no event name and becomes a dead letter.',
                command: invalidBatchCommand(),
              }),
      }),
    )
  },
)

/** Rejected requests are something else, so a letter that the API calls rejected is invalid here. */
export function letterType(reason: string): string {
  return reason === 'rejected' ? 'invalid' : reason
}

const LETTER_COLUMNS: Column<DeadLetter>[] = [
  {
    label: 'Error',
    cell: ({ id, error }) => html`<a href=${link('deadLetter', { id })}>${error}</a>`,
    kind: 'long',
  },
  { label: 'Type', cell: ({ reason }) => h(Badge, { text: letterType(reason), tone: 'bad' }) },
  { label: 'Time', cell: ({ failed_at }) => h(Time, { at: failed_at }) },
  { label: 'Data', cell: ({ kind }) => kind },
  {
    label: "Sender's id",
    cell: ({ inbound_event_id }) => text(inbound_event_id),
    kind: 'long',
  },
  { label: 'Attempts', cell: ({ attempts }) => number(attempts), kind: 'number' },
]

function replayColumn(replay: (id: string) => unknown, problem: Signal<unknown>): Column<DeadLetter> {
  return {
    label: 'Replay',
    cell: ({ id }) =>
      h(ActionButton, { label: 'Replay', needs: 'operator', run: () => replay(id), problem, kind: 'link' }),
  }
}

export const deadLetterPage = definePage(
  'deadLetter',
  ({ route, signal }) => deadLetters.find(route.params.id, signal),
  ({ data: letter, refresh }) => {
    const problem = useSignal<unknown>(null)
    const outcome = useSignal<Outcome | null>(null)
    const isOpen = letter.replayed_at === null && letter.resolved_at === null
    const isEditable = isOpen && letter.kind === 'events'
    const order = { id: letter.id, tenant: letter.tenant }
    const replay = async (body?: string) => {
      const result = await deadLetters.replay({ ...order, ...(body !== undefined && { body }) })
      outcome.value = replayOutcome(result)
      toast(outcome.value.text)
      await refresh()
    }
    const resolve = async () => {
      const text =
        'It is closed without being processed. It is listed under “Show replayed and resolved dead letters” until it expires.'
      if (!(await askConfirmation({ title: 'Resolve without replaying?', text, yes: 'Mark as resolved' }))) return
      await deadLetters.resolve(order)
      toast('Resolved')
      await refresh()
    }
    return h(
      Page,
      {
        title: 'Dead letter',
        lead: describeNext(letter, isOpen),
        actions: isOpen && [
          h(ActionButton, { label: 'Mark as resolved', needs: 'admin', run: resolve, problem }),
          h(ActionButton, {
            ...{ label: 'Replay', needs: 'operator', run: () => replay(), problem },
            ...(letter.reason !== 'rejected' && { kind: 'main' as const }),
          }),
        ],
      },
      h(ProblemArea, { problem }),
      h(OutcomeArea, { outcome }),
      h(LetterFacts, { letter }),
      // The form of a rejected body shows it already.
      !(isEditable && letter.reason === 'rejected') &&
        h(Section, { title: 'Body as received' }, h(TextView, { text: formatJson(letter.body), label: 'Body' })),
      isEditable && h(EditForm, { letter, replay }),
    )
  },
)

/** The same body is rejected again. */
function describeNext({ reason, kind }: DeadLetterWithBody, isOpen: boolean): string {
  if (!isOpen) return 'This dead letter was replayed or resolved. No action is needed.'
  if (reason === 'rejected' && kind === 'events') return 'The body is invalid. Edit it below, then replay it.'
  return 'Fix the cause, then replay the data.'
}

type EditFormProps = { letter: DeadLetterWithBody; replay(body: string): Promise<void> }

/** Replays an edited body. The original stays unchanged. */
function EditForm({ letter, replay }: EditFormProps): VNode {
  const body = formatJson(letter.body)
  return html`
    <details open=${letter.reason === 'rejected'}>
      <summary>Edit and replay</summary>
      ${h(
        Form<'body'>,
        { submit: 'Replay edited body', needs: 'admin', layout: 'stacked', run: values => replay(values.body) },
        h(TextArea, {
          ...{ id: 'body', label: 'Body', value: body, rows: Math.min(30, body.split('\n').length + 3) },
          hint: `Error to fix: ${letter.error}`,
        }),
      )}
    </details>
  `
}

function LetterFacts({ letter }: { letter: DeadLetterWithBody }): VNode {
  const { source_config_id: source } = letter
  return h(Facts, {
    facts: [
      ['Error', letter.error],
      ['Type', h(Badge, { text: letterType(letter.reason), tone: 'bad' })],
      ['Data', letter.kind],
      ['Id', html`<code>${letter.id}</code>`],
      source && ['Source', html`<a href=${link('source', { id: source })}>${source}</a>`],
      letter.inbound_event_id && ["Sender's id", letter.inbound_event_id],
      ['Attempts', String(letter.attempts)],
      ['Received', h(Time, { at: letter.received_at })],
      ['Failed', h(Time, { at: letter.failed_at })],
      letter.replayed_at && ['Replayed', h(Time, { at: letter.replayed_at })],
      letter.resolved_at && ['Resolved', h(Time, { at: letter.resolved_at })],
      letter.replayed_as && ['Replayed as', replayLink(letter.kind, letter.replayed_as)],
    ],
  })
}

function replayLink(kind: DeadLetterWithBody['kind'], id: string): VNode {
  const code = html`<code>${id}</code>`
  return kind === 'events' ? html`<a href=${link('event', { id })}>${code}</a>` : code
}

/** Describes the result of a replay. */
export function replayOutcome({ replayed, applied, failed_again, waiting, remaining }: ReplayResult): Outcome {
  const parts = [
    `${number(applied)} processed`,
    failed_again > 0 && `${number(failed_again)} failed again`,
    waiting > 0 && `${number(waiting)} waiting`,
    remaining > 0 && `${number(remaining)} remaining`,
  ]
  const text = `${plural(replayed, 'dead letter')} replayed: ${parts.filter(Boolean).join(', ')}.`
  return { text, isBad: failed_again > 0 }
}
