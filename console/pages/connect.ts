import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { keys, sources } from '../api/admin.ts'
import type { Conversion, CreatedSource, Event } from '../api/types.ts'
import { announce } from '../components/announcer.ts'
import { ActionButton, Form, TextField } from '../components/form.ts'
import { LocalAddressNote, ProblemArea } from '../components/notice.ts'
import { Page, Section, Tabs } from '../components/page.ts'
import { Table } from '../components/table.ts'
import { Breakable, Copyable } from '../components/text.ts'
import { Ago } from '../components/time.ts'
import { money, receivedVia, text } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { useArrivals } from './events.ts'
import { buildSnippets, findSender, type KeySender, SENDERS, type SourceSender } from './senders.ts'
/** Instructions for connecting a sender. */
export const connectPage = definePage(
  'connect',
  async () => null,
  ({ route }) => {
    const sender = findSender(route.params.sender)
    return h(
      Page,
      {
        title: 'Connect',
        lead: 'Choose a sender. The steps below use the address of this server and your key.',
      },
      h(Tabs, { label: 'Senders', tabs: TABS, current: sender.name }),
      sender.by === 'key'
        ? h(ConnectWithKey, { sender: sender.name })
        : h(ConnectWithSource, { sender: sender.name, title: sender.title }),
      h(Section, { title: 'Incoming events' }, h(Arrivals, {})),
    )
  },
)

const TABS = SENDERS.map(({ name, title }) => ({ name, title, href: link('connect', { sender: name }) }))

/** By tenant, the tracking key that was created here. It is kept until the tab is closed. */
const createdKeys = signal<Record<string, string>>({})

function ConnectWithKey({ sender }: { sender: KeySender }): VNode {
  const problem = useSignal<unknown>(null)
  const id = tenant.value ?? ''
  const key = createdKeys.value[id]
  const make = async () => {
    const created = await keys.create({ kind: 'tracking', tenant: id })
    createdKeys.value = { ...createdKeys.peek(), [id]: created.key }
    announce('The key is filled in')
  }
  return html`
    ${
      key === undefined
        ? html`<p>
            ${h(ActionButton, { label: 'Create a tracking key', needs: 'admin', run: make, problem, kind: 'main' })}${' '}
            <span class="faint">or replace <code>$TRACKING_KEY</code> with one that you have. A tracking key can only send events.</span>
          </p>`
        : html`<p class="notice">
            The tracking key is filled in below. It is shown only once: save it now. It can only send events, and is valid
            until you <a href=${link('keys')}>revoke it</a>.
          </p>`
    }
    ${h(ProblemArea, { problem })}
    ${buildSnippets(sender, key ?? '$TRACKING_KEY').map(
      ({ title, text }) => html`
        <div class="snippet" key=${title}>
          <h3>${title}</h3>
          ${h(Copyable, { text, label: `Copy: ${title}` })}
        </div>
      `,
    )}
  `
}

type Progress = { source: CreatedSource; isSigned: boolean }

/** The progress by tenant and sender. It is kept while the user visits other pages. */
const progressBySender = signal<Record<string, Progress>>({})

const SHORTEST_SECRET = 16

const GUIDES: Record<SourceSender, { where: string; what: string; secret: string }> = {
  stripe: {
    where: 'Stripe: Developers → Webhooks → Add endpoint. Paste this as the endpoint’s URL:',
    what: 'Select all events of customer, invoice, invoice_payment, charge, refund, credit_note, coupon and promotion_code.',
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

function ConnectWithSource({ sender, title }: { sender: SourceSender; title: string }): VNode {
  const key = `${tenant.value} ${sender}`
  const progress = progressBySender.value[key]
  const set = (next: Progress) => {
    progressBySender.value = { ...progressBySender.peek(), [key]: next }
  }
  const { where, what } = GUIDES[sender]
  const steps: { title: string; isDone: boolean; body: ComponentChildren }[] = [
    {
      title: 'Create a source',
      isDone: progress !== undefined,
      body: progress ? h(SourceLink, { source: progress.source }) : h(NewSourceForm, { sender, title, set }),
    },
    {
      title: `Enter the URL of the source in ${title}`,
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
      // A random secret, so that nothing is accepted until the real one is entered.
      ...{ name: name.trim() || title, preset: sender, signing_secret: 'generate' },
    })
    set({ source, isSigned: false })
    announce('Source created')
  }
  return h(
    Form<'name'>,
    { submit: 'Create source', needs: 'admin', layout: 'filter', run: create },
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
    if (secret.trim() === '') throw new Error('Enter the signing secret.')
    if (secret.trim().length < SHORTEST_SECRET)
      throw new Error(`A signing secret has at least ${SHORTEST_SECRET} characters. Check that you copied all of it.`)
    await sources.setSecret(progress.source.id, secret.trim())
    set({ ...progress, isSigned: true })
    announce('Signing secret saved')
  }
  return h(
    Form<'secret'>,
    { submit: 'Save secret', needs: 'admin', layout: 'filter', run: save },
    h(TextField, { id: 'secret', label: 'Signing secret', hint: GUIDES[sender].secret, size: 34 }),
  )
}

const MAX_ROWS = 8

/** Events as they arrive. */
function Arrivals(): VNode {
  const { rows, isConnected } = useArrivals()
  const newest = rows.value.slice(0, MAX_ROWS)
  return html`
    <p class="live-bar">
      <span class=${isConnected.value ? 'dot on' : 'dot'} aria-hidden="true"></span>
      ${newest.length > 0 ? 'Events are arriving.' : 'Waiting for new events. They appear here when they arrive.'}
    </p>
    ${
      newest.length > 0 &&
      h(Table<Event | Conversion>, {
        caption: 'Incoming events',
        columns: [
          { label: 'Type', cell: row => h(ArrivalName, { row }), kind: 'long' },
          { label: 'Time', cell: ({ occurred_at }) => h(Ago, { at: occurred_at }) },
          { label: 'Received via', cell: ({ source }) => receivedVia(source) },
          { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long' },
        ],
        rows: newest,
        rowKey: row => `${'conversion_type' in row} ${row.id}`,
      })
    }
    <p class="faint">
      Is an event missing? <a href=${link('issues')}>Issues</a> lists rejected requests with their reasons. Use the${' '}
      <a href=${link('eventLookup')}>event lookup</a> to find an event by the id that its sender gave it.
    </p>
  `
}

/** A sale links to the list of sales, because several events may report it. */
function ArrivalName({ row }: { row: Event | Conversion }): VNode {
  if (!('conversion_type' in row))
    return html`<a href=${link('event', { id: row.id })}>${h(Breakable, { text: row.event_type })}</a>`
  const price = row.amount === null ? 'without an amount' : money(row.amount, row.currency)
  return html`<a href=${link('conversions')}>${h(Breakable, { text: row.conversion_type })}</a>, sale ${price}`
}
