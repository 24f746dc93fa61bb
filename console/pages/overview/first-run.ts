import type { VNode } from 'preact'
import { Copyable } from '../../components/copyable.ts'
import { Section } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { recordCommand, trackCommand, whereKeysAre } from '../../samples.ts'
import { isAdmin } from '../../session.ts'
import { type Sender, senderOf } from '../connect/senders.ts'
import { FillDemo } from '../tenants/fill-demo.ts'
import type { Activity } from './activity.ts'

type Step = { title: string; isDone: boolean; how: VNode | null }

/** What to begin with; nothing once events come in, and records or webhooks too. Ticks itself while one looks. */
export function FirstRun({ begun }: Pick<Activity, 'begun'>): VNode | null {
  if (begun.event && (begun.record || begun.source)) return null
  const steps: Step[] = [
    {
      title: 'Send an event',
      isDone: begun.event,
      how: isAdmin.value
        ? h(ConnectLinks, { senders: ['curl', 'browser', 'sdk', 'segment'] })
        : h(Copyable, { text: trackCommand(), label: 'Copy the command' }),
    },
    {
      title: 'Write a record',
      isDone: begun.record,
      how: h(Copyable, { text: recordCommand('products'), label: 'Copy the command' }),
    },
    {
      title: 'Connect Stripe, Shopify or another webhook sender',
      isDone: begun.source === true,
      how: isAdmin.value ? h(ConnectLinks, { senders: ['stripe', 'shopify', 'woocommerce'] }) : null,
    },
  ]
  const list = h(
    Section,
    { title: 'First steps' },
    html`
      <ol class="steps">
        ${steps.map(
          ({ title, isDone, how }) => html`
            <li class=${isDone ? 'done' : 'open'}>
              <p>
                <span class="tick" aria-hidden="true">${isDone ? '✓' : ''}</span>
                ${title}<span class="unseen">${isDone ? ', done' : ', to do'}</span>
              </p>
              ${!isDone && how}
            </li>
          `,
        )}
      </ol>
      ${!begun.record && html`<p class="faint">${whereKeysAre('private')}</p>`}
    `,
  )
  const isEmpty = !begun.event && !begun.record
  return html`${list}${isEmpty && isAdmin.value && h(Section, { title: 'Explore with demo data' }, h(FillDemo, {}))}`
}

/** Ways that lead to the first event, each with everything filled in. */
function ConnectLinks({ senders }: { senders: Sender['name'][] }): VNode {
  return html`
    <p>
      ${senders.map((name, index) => [
        index > 0 && ' · ',
        html`<a href=${link('connect', { sender: name })}>${senderOf(name).title}</a>`,
      ])}
    </p>
  `
}
