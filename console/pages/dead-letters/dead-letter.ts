import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { deadLetters } from '../../api/admin.ts'
import type { DeadLetterWithBody } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge, ProblemArea } from '../../components/notice.ts'
import { Facts, Page, Section, TextView } from '../../components/page.ts'
import { Time } from '../../components/time.ts'
import { text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'

export const page = definePage(
  'deadLetter',
  ({ route, signal }) => deadLetters.find(route.params.id, signal),
  ({ data: letter, refresh }) => {
    const problem = useSignal<unknown>(null)
    const replay = async () => {
      await deadLetters.replay({ id: letter.id, tenant: letter.tenant })
      announce('Replayed')
      await refresh()
    }
    return h(
      Page,
      {
        title: 'Dead letter',
        actions:
          letter.replayed_at === null &&
          h(ActionButton, { label: 'Replay', run: replay, problem, kind: 'main' }),
      },
      h(ProblemArea, { problem }),
      h(LetterFacts, { letter }),
      h(
        Section,
        { title: 'Body, as it came in' },
        h(TextView, { text: laidOut(letter.body), label: 'Body' }),
      ),
      html`<p><a href=${link('deadLetters')}>All dead letters</a></p>`,
    )
  },
)

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
      ['Given up', h(Time, { at: letter.failed_at })],
      letter.replayed_at && ['Replayed', h(Time, { at: letter.replayed_at })],
      letter.replayed_as && ['Replayed as', replayLink(letter.kind, letter.replayed_as)],
    ],
  })
}

function replayLink(kind: DeadLetterWithBody['kind'], id: string): VNode {
  const code = html`<code>${id}</code>`
  return kind === 'events' ? html`<a href=${link('event', { id })}>${code}</a>` : code
}

/** Laid out where that changes nothing but blanks. */
function laidOut(body: string): string {
  try {
    const value = JSON.parse(body)
    return JSON.stringify(value) === body ? JSON.stringify(value, null, 2) : body
  } catch {
    return body
  }
}
