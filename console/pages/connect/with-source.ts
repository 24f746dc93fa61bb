import { signal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { sources } from '../../api/admin.ts'
import type { CreatedSource } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { Copyable } from '../../components/copyable.ts'
import { Form, TextField } from '../../components/form.ts'
import { LocalAddressNote } from '../../components/local-address.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import type { SourceSender } from './senders.ts'

type Progress = { source: CreatedSource; isSigned: boolean }

/** By tenant and sender: how far one has come. The address stays while one fetches the secret from elsewhere. */
const begun = signal<Record<string, Progress>>({})

const SHORTEST_SECRET = 16

const GUIDES: Record<SourceSender, { where: string; what: string; secret: string }> = {
  stripe: {
    where: 'Stripe: Developers → Webhooks → Add endpoint. Paste this as the endpoint’s URL:',
    what: 'Select customer.subscription.*, invoice.*, charge.refunded and customer.*. The subscription reports are based on them.',
    secret: 'The endpoint’s signing secret: whsec_…',
  },
  shopify: {
    where: 'Shopify: Settings → Notifications → Webhooks, format JSON. Paste this as the URL:',
    what: 'Add one webhook per topic: creation, update and deletion of orders, products and customers.',
    secret: 'Shown below the list of webhooks.',
  },
  woocommerce: {
    where: 'WooCommerce: Settings → Advanced → Webhooks → Add webhook. Paste this as the delivery URL:',
    what: 'Add one webhook per topic: order, product and customer; created, updated and deleted.',
    secret: 'The value of the webhook’s Secret field.',
  },
}

export function ConnectWithSource({ sender, title }: { sender: SourceSender; title: string }): VNode {
  const key = `${tenant.value} ${sender}`
  const progress = begun.value[key]
  const set = (next: Progress) => {
    begun.value = { ...begun.peek(), [key]: next }
  }
  const { where, what } = GUIDES[sender]
  const steps: { title: string; isDone: boolean; body: ComponentChildren }[] = [
    {
      title: 'Create a source',
      isDone: progress !== undefined,
      body: progress ? h(SourceLink, { source: progress.source }) : h(NewSourceForm, { sender, title, set }),
    },
    {
      title: `Enter its address in ${title}`,
      isDone: progress?.isSigned === true,
      body:
        progress &&
        html`
          <p>${where}</p>
          ${h(Copyable, { text: location.origin + progress.source.path, label: 'Copy the address' })}
          ${h(LocalAddressNote, { sender: title })}
          <p class="faint">${what}</p>
        `,
    },
    {
      title: 'Enter the signing secret here',
      isDone: progress?.isSigned === true,
      body: progress && !progress.isSigned && h(SecretForm, { sender, progress, set }),
    },
  ]
  return html`
    <ol class="steps">
      ${steps.map(
        step => html`
          <li key=${step.title} class=${step.isDone ? 'done' : 'open'}>
            <p>
              <span class="tick" aria-hidden="true">${step.isDone ? '✓' : ''}</span>
              ${step.title}<span class="unseen">${step.isDone ? ', done' : ', to do'}</span>
            </p>
            ${step.body}
          </li>
        `,
      )}
    </ol>
  `
}

type StepProps = { sender: SourceSender; set(next: Progress): void }

function NewSourceForm({ sender, title, set }: StepProps & { title: string }): VNode {
  const create = async ({ name }: { name: string }) => {
    const source = await sources.create({
      ...{ tenant: tenant.peek() ?? '', type: 'webhook', overflow: 'defer' },
      // Nothing is taken until the secret is known: this one nobody has.
      ...{ name: name.trim() || title, preset: sender, signing_secret: 'generate' },
    })
    set({ source, isSigned: false })
    announce('Source created')
  }
  return h(
    Form<'name'>,
    { submit: 'Create source', layout: 'filter', run: create },
    h(TextField, { id: 'name', label: 'Name', value: title }),
  )
}

function SourceLink({ source: { id, name } }: { source: CreatedSource }): VNode {
  return html`<p>
    <a href=${link('source', { id })}>${name}</a> shows accepted and rejected requests.
  </p>`
}

function SecretForm({ sender, progress, set }: StepProps & { progress: Progress }): VNode {
  const save = async ({ secret }: { secret: string }) => {
    if (secret.trim() === '') throw new Error(GUIDES[sender].secret)
    if (secret.trim().length < SHORTEST_SECRET)
      throw new Error(
        `A signing secret has at least ${SHORTEST_SECRET} characters. Check that you copied all of it.`,
      )
    await sources.setSecret(progress.source.id, secret.trim())
    set({ ...progress, isSigned: true })
    announce('Connected')
  }
  return h(
    Form<'secret'>,
    { submit: 'Save secret', layout: 'filter', run: save },
    h(TextField, { id: 'secret', label: 'Signing secret', hint: GUIDES[sender].secret, size: 34 }),
  )
}
