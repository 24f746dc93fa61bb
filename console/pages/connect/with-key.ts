import { signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { keys } from '../../api/admin.ts'
import { announce } from '../../components/announcer.ts'
import { Copyable } from '../../components/copyable.ts'
import { ActionButton } from '../../components/form.ts'
import { ProblemArea } from '../../components/notice.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import type { KeySender } from './senders.ts'
import { snippetsOf } from './snippets.ts'

/** By tenant: the tracking key that was made here. Gone with the tab, as every key that is shown once. */
const made = signal<Record<string, string>>({})

export function ConnectWithKey({ sender }: { sender: KeySender }): VNode {
  const problem = useSignal<unknown>(null)
  const id = tenant.value ?? ''
  const key = made.value[id]
  const make = async () => {
    const created = await keys.create({ kind: 'tracking', tenant: id })
    made.value = { ...made.peek(), [id]: created.key }
    announce('The key is filled in')
  }
  return html`
    ${
      key === undefined
        ? html`<p>
            ${h(ActionButton, { label: 'Create a tracking key', run: make, problem, kind: 'main' })}${' '}
            <span class="faint">or insert one that you have. A tracking key can only send events.</span>
          </p>`
        : html`<p class="notice">
            The tracking key is filled in below. It is shown only once: save it now. It can only send events, and is valid
            until you <a href=${link('keys')}>revoke it</a>.
          </p>`
    }
    ${h(ProblemArea, { problem })}
    ${snippetsOf(sender, key ?? '$TRACKING_KEY').map(
      ({ title, text }) => html`
        <div class="snippet" key=${title}>
          <h3>${title}</h3>
          ${h(Copyable, { text, label: `Copy: ${title}` })}
        </div>
      `,
    )}
  `
}
