import type { ReadonlySignal, Signal } from '@preact/signals'
import type { VNode } from 'preact'
import { sources } from '../../api/admin.ts'
import type { SecretKind, Source, SourceTest } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { Copyable } from '../../components/copyable.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge } from '../../components/notice.ts'
import { JsonView } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { link } from '../../router.ts'

const OVERLAP_HOURS = 24

/** What an action has to show; it stays while the rest of the page is read anew. */
export type ActionResult =
  | { kind: 'secret'; label: string; secret: string }
  | { kind: 'test'; test: SourceTest }

type SourceActionsProps = {
  source: Source
  problem: Signal<unknown>
  result: Signal<ActionResult | null>
  refresh(): Promise<void>
}

export function SourceActions({ source, problem, result, refresh }: SourceActionsProps): VNode {
  const { id, enabled, signing_secrets } = source
  const rotate = async (what: SecretKind, label: string) => {
    const text = `The new ${label} is shown only once. The previous ${label} remains valid for ${OVERLAP_HOURS} hours.`
    if (!(await confirmed({ title: `Rotate the ${label}?`, text, yes: 'Rotate' }))) return
    const rotated = await sources.rotate(id, what, OVERLAP_HOURS)
    result.value = { kind: 'secret', label, secret: rotated[what] ?? '' }
    announce(`The new ${label} is shown`)
    await refresh()
  }
  const test = async () => {
    const outcome = await sources.test(id)
    result.value = { kind: 'test', test: outcome }
    announce(testSummary(outcome))
    await refresh()
  }
  const toggle = async () => {
    await sources.setEnabled(id, !enabled)
    await refresh()
  }
  const button = (label: string, run: () => unknown) => h(ActionButton, { label, run, problem })
  const secretLabel = signing_secrets.length > 0 ? 'Rotate signing secret' : 'Add signing secret'
  return html`
    ${button('Send test event', test)}
    ${button('Rotate token', () => rotate('token', 'token'))}
    ${button(secretLabel, () => rotate('signing_secret', 'signing secret'))}
    ${button(enabled ? 'Disable' : 'Enable', toggle)}
    ${button('Delete', () => remove(source))}
  `
}

async function remove({ id, name }: Source): Promise<void> {
  const text = 'Data received from it is kept. Its address will return 404.'
  if (!(await confirmed({ title: `Delete ${name}?`, text, yes: 'Delete' }))) return
  await sources.remove(id)
  go(link('sources'))
}

export function ResultArea({ result }: { result: ReadonlySignal<ActionResult | null> }): VNode | null {
  const shown = result.value
  if (shown?.kind === 'secret') return h(NewSecret, shown)
  return shown && h(TestResult, shown)
}

function NewSecret({ label, secret }: { label: string; secret: string }): VNode {
  return html`
    <div class="once">
      <p>
        The new ${label} is shown only once. Save it now. The previous ${label} remains valid for ${OVERLAP_HOURS} hours.
      </p>
      ${h(Copyable, { text: secret, label: `Copy the ${label}` })}
    </div>
  `
}

function testSummary({ ok }: SourceTest): string {
  return `The test event was ${ok ? '' : 'not '}processed.`
}

function TestResult({ test }: { test: SourceTest }): VNode {
  return html`
    <div class="once">
      <p><strong>${testSummary(test)}</strong></p>
      <ol class="steps">
        ${test.steps.map(
          ({ step, ok: isGood, detail }) =>
            html`<li><p>${h(Badge, { text: step, tone: isGood ? 'good' : 'bad' })}<span>${detail}</span></p></li>`,
        )}
      </ol>
      ${test.archived.map(value => h(JsonView, { value, label: 'Archived result' }))}
    </div>
  `
}
