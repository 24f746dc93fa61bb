import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { deadLetters } from '../../api/admin.ts'
import type { DeadLetterWithBody } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton, Form, TextArea } from '../../components/form.ts'
import { Badge, type Outcome, OutcomeArea, ProblemArea } from '../../components/notice.ts'
import { Facts, Page, Section, TextView } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { laidOut, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { replayOutcome } from './replay-words.ts'

export const page = definePage(
  'deadLetter',
  ({ route, signal }) => deadLetters.find(route.params.id, signal),
  ({ data: letter, refresh }) => {
    const problem = useSignal<unknown>(null)
    const outcome = useSignal<Outcome | null>(null)
    const isOpen = letter.replayed_at === null && letter.resolved_at === null
    const order = { id: letter.id, tenant: letter.tenant }
    const replay = async (body?: string) => {
      const result = await deadLetters.replay({ ...order, ...(body !== undefined && { body }) })
      outcome.value = replayOutcome(result)
      announce(outcome.value.text)
      await refresh()
    }
    const resolve = async () => {
      const text = 'It will no longer be listed or processed. It remains readable here until it expires.'
      if (!(await confirmed({ title: 'Resolve without replaying?', text, yes: 'Resolve' }))) return
      await deadLetters.resolve(order)
      announce('Resolved')
      await refresh()
    }
    return h(
      Page,
      {
        title: 'Dead letter',
        actions: isOpen && [
          h(ActionButton, { label: 'Resolve', run: resolve, problem }),
          h(ActionButton, { label: 'Replay', run: () => replay(), problem, kind: 'main' }),
        ],
      },
      h(ProblemArea, { problem }),
      h(OutcomeArea, { outcome }),
      h(LetterFacts, { letter }),
      h(Section, { title: 'Body as received' }, h(TextView, { text: laidOut(letter.body), label: 'Body' })),
      isOpen && letter.kind === 'events' && h(EditForm, { letter, replay }),
      html`<p><a href=${link('deadLetters')}>All dead letters</a> · <a href=${link('issues')}>By cause</a></p>`,
    )
  },
)

type EditFormProps = { letter: DeadLetterWithBody; replay(body: string): Promise<void> }

/** What came in stays as it came: the edited one is replayed in its place. */
function EditForm({ letter, replay }: EditFormProps): VNode {
  const body = laidOut(letter.body)
  return html`
    <details>
      <summary>Edit and replay</summary>
      ${h(
        Form<'body'>,
        { submit: 'Replay edited body', layout: 'stacked', run: values => replay(values.body) },
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
      ['Reason', h(Badge, { text: letter.reason, tone: 'bad' })],
      ['Kind', letter.kind],
      ['Id', html`<code>${letter.id}</code>`],
      source && ['Source', html`<a href=${link('source', { id: source })}>${source}</a>`],
      ["Sender's id", text(letter.inbound_event_id)],
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
