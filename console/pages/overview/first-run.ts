import type { VNode } from 'preact'
import { Copyable } from '../../components/copyable.ts'
import { Section } from '../../components/page.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { recordCommand, trackCommand, whereKeysAre } from '../../samples.ts'
import { isAdmin } from '../../session.ts'
import type { Activity } from './activity.ts'

type Step = { title: string; isDone: boolean; how: VNode | null }

/** What to begin with; nothing once events come in, and records or webhooks too. Ticks itself while one looks. */
export function FirstRun({ begun }: Pick<Activity, 'begun'>): VNode | null {
  if (begun.event && (begun.record || begun.source)) return null
  const steps: Step[] = [
    {
      title: 'Send an event',
      isDone: begun.event,
      how: h(Copyable, { text: trackCommand(), label: 'Copy the command' }),
    },
    {
      title: 'Write a record',
      isDone: begun.record,
      how: h(Copyable, { text: recordCommand('products'), label: 'Copy the command' }),
    },
    {
      title: 'Connect Stripe, Shopify or another sender of webhooks',
      isDone: begun.source === true,
      how: isAdmin.value ? html`<p><a href=${link('newSource')}>Make a source</a></p>` : null,
    },
  ]
  return h(
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
      ${(!begun.event || !begun.record) && html`<p class="faint">${whereKeysAre('tracking')}</p>`}
    `,
  )
}
