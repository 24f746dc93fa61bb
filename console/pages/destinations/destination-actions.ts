import type { ReadonlySignal, Signal } from '@preact/signals'
import type { VNode } from 'preact'
import { destinations } from '../../api/admin.ts'
import type { Destination, DestinationTest } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton, Form, TextField } from '../../components/form.ts'
import { TextView } from '../../components/page.ts'
import { number, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link } from '../../router.ts'
import { SecretUse } from './secret-use.ts'

const OVERLAP_HOURS = 24

const WHAT_DISABLING_DOES =
  'Pending messages are kept and sent when the destination is enabled again. Data processed while it is disabled is not sent automatically. To send it later, use Replay with the time of disabling. Messages are kept for 30 days by default.'

/** What an action has to show; it stays while the rest of the page is read anew. */
export type ActionResult =
  | { kind: 'secret'; secret: string }
  | { kind: 'test'; test: DestinationTest }
  | { kind: 'replay'; queued: number }

type ActionProps = {
  destination: Destination
  result: Signal<ActionResult | null>
  refresh(): Promise<void>
}

export function DestinationActions({
  destination: { id, name, enabled },
  problem,
  result,
  refresh,
}: ActionProps & { problem: Signal<unknown> }): VNode {
  const test = async () => {
    const outcome = await destinations.test(id)
    result.value = { kind: 'test', test: outcome }
    announce(testSummary(outcome))
  }
  const rotate = async () => {
    const text = `The new secret is shown only once. For ${OVERLAP_HOURS} hours, messages are also signed with the previous secret.`
    if (!(await confirmed({ title: 'Rotate the secret?', text, yes: 'Rotate' }))) return
    const { secret } = await destinations.rotate(id, OVERLAP_HOURS)
    result.value = { kind: 'secret', secret }
    announce('The new secret is shown')
    await refresh()
  }
  const toggle = async () => {
    const question = { title: `Disable ${name}?`, text: WHAT_DISABLING_DOES, yes: 'Disable' }
    if (enabled && !(await confirmed(question))) return
    await destinations.setEnabled(id, !enabled)
    await refresh()
  }
  const remove = async () => {
    const text = 'Its pending messages are deleted too. This cannot be undone.'
    if (!(await confirmed({ title: `Delete ${name}?`, text, yes: 'Delete' }))) return
    await destinations.remove(id)
    go(link('destinations'))
  }
  const button = (label: string, run: () => unknown) => h(ActionButton, { label, run, problem })
  return html`
    ${button('Send test message', test)}
    ${button('Rotate secret', rotate)}
    ${button(enabled ? 'Disable' : 'Enable', toggle)}
    ${button('Delete', remove)}
  `
}

/** Sends once more what was sent, or should have been. */
export function ReplayForm({ destination, result, refresh }: ActionProps): VNode {
  const replay = async ({ since }: { since: string }) => {
    if (since === '') throw new Error('Enter a start time.')
    const { queued } = await destinations.replay(destination.id, new Date(since).toISOString())
    result.value = { kind: 'replay', queued }
    announce(`${plural(queued, 'message')} will be sent again`)
    await refresh()
  }
  return html`
    <p>Sends all messages since the given time again, delivered or not, with their original ids.</p>
    ${h(
      Form<'since'>,
      { submit: 'Replay', layout: 'filter', run: replay },
      h(TextField, { id: 'since', label: 'Since', type: 'datetime-local' }),
    )}
  `
}

export function ResultArea({ result }: { result: ReadonlySignal<ActionResult | null> }): VNode | null {
  const shown = result.value
  if (shown === null) return null
  if (shown.kind === 'test') return h(TestResult, shown)
  if (shown.kind === 'replay')
    return html`<p class="notice">${plural(shown.queued, 'message')} will be sent again.</p>`
  return html`
    <div class="once">
      <p>
        The new secret is shown only once. Save it now. For ${OVERLAP_HOURS} hours, messages are also signed with the previous secret.
      </p>
      ${h(SecretUse, { secret: shown.secret })}
    </div>
  `
}

function testSummary({ ok }: DestinationTest): string {
  return ok ? 'The test message was delivered.' : 'The test message was not delivered.'
}

function TestResult({ test }: { test: DestinationTest }): VNode {
  const { status, error, response, duration_ms } = test
  const answer = status === null ? 'No response' : `Response ${status}`
  return html`
    <div class=${test.ok ? 'once' : 'problem'} role=${test.ok ? null : 'alert'}>
      <p><strong>${testSummary(test)}</strong> ${answer} after ${number(duration_ms)} ms${error ? `: ${error}` : '.'}</p>
      ${response && h(TextView, { text: response, label: 'Start of the response' })}
    </div>
  `
}
