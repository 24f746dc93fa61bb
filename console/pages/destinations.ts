import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { destinations } from '../api/admin.ts'
import type { CreatedDestination, Destination, DestinationActivity, DestinationSettings, What } from '../api/types.ts'
import { Form, TextArea, TextField } from '../components/form.ts'
import { Badge, EmptyState, ShownOnce, type Tone } from '../components/notice.ts'
import { Page } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Breakable, Copyable } from '../components/text.ts'
import { Ago } from '../components/time.ts'
import { number, words } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
export const destinationsPage = definePage(
  'destinations',
  async ({ signal }) => {
    const { results } = await destinations.list(tenant.peek() ?? '', signal)
    const counted = await Promise.all(results.slice(0, MAX_COUNTED).map(({ id }) => destinations.activity(id, signal)))
    return { results, activity: new Map(counted.map(each => [each.id, each])) }
  },
  ({ data: { results, activity } }) =>
    h(
      Page,
      {
        title: 'Destinations',
        actions: html`<a class="button main" href=${link('newDestination')}>New destination</a>`,
        lead: 'Kontor sends new data to destinations: signed webhooks, chat channels and e-mail addresses.',
      },
      results.length > 0
        ? h(Table<Destination>, {
            ...{ caption: 'Destinations', columns: columns(activity), rows: results, rowKey: ({ id }) => id },
            csv: {
              api: 'admin',
              path: '/destinations',
              query: { tenant: tenant.peek() },
              name: 'destinations',
            },
          })
        : h(EmptyState, {
            title: 'No destinations yet.',
            text: 'Create a destination to receive events, conversions, records or MRR movements as they are processed.',
            action: html`<a href=${link('newDestination')}>Create a destination</a>`,
          }),
    ),
)

/** More are listed without their volume. */
const MAX_COUNTED = 30

const columns = (activity: ReadonlyMap<string, DestinationActivity>): Column<Destination>[] => [
  {
    label: 'Name',
    cell: nameCell,
    kind: 'long',
  },
  { label: 'Status', cell: destination => h(DestinationState, { destination }) },
  {
    label: 'Delivered (24 h)',
    cell: ({ id }) => number(activity.get(id)?.delivered.last_24_hours ?? null),
    kind: 'number',
  },
  {
    label: 'Failed attempts (24 h)',
    cell: ({ id }) => h(Failed, { count: activity.get(id)?.failed.last_24_hours ?? null }),
    kind: 'number',
  },
  { label: 'Pending deliveries', cell: ({ health }) => number(health.pending), kind: 'number' },
  { label: 'Sends', cell: describeData, kind: 'long' },
  { label: 'Last delivery', cell: lastDelivery },
]

function nameCell({ id, name, url }: Destination) {
  const address = url.replace(/^mailto:/, '')
  return html`
    <a href=${link('destination', { id })}>${name}</a>
    ${address !== name && html`<span class="reason faint">${h(Breakable, { text: address })}</span>`}
  `
}

function Failed({ count }: { count: number | null }): VNode {
  return html`<span class="change"><span class=${count ? 'down' : null}>${number(count)}</span></span>`
}

function lastDelivery({ health: { last_success_at: at } }: Destination) {
  return at === null ? 'never' : h(Ago, { at })
}

export const newDestinationPage = definePage(
  'newDestination',
  async () => null,
  () => {
    const created = useSignal<CreatedDestination | null>(null)
    const create = async (settings: DestinationSettings) => {
      created.value = await destinations.create(tenant.peek() ?? '', settings)
    }
    return h(
      Page,
      {
        title: 'New destination',
        lead: html`
          Kontor sends each message at least once, as a POST request that is signed according to Standard Webhooks. To send alerts
          by e-mail or chat, add a recipient in <a href=${link('alerts')}>Alerts</a>.
        `,
      },
      created.value
        ? h(CreatedNotice, { destination: created.value })
        : h(DestinationForm, { submit: 'Create destination', run: create }),
    )
  },
)

function CreatedNotice({ destination: { id, name, secret } }: { destination: CreatedDestination }): VNode {
  return h(
    ShownOnce,
    { title: `Destination ${name} created` },
    secret !== null && html`<p>Messages are signed with this secret. It is shown only once. Save it now.</p>`,
    secret !== null && h(SecretUse, { secret }),
    html`<p><a href=${link('destination', { id })}>Open the destination</a> and send a test message.</p>`,
  )
}

const WHATS: What[] = ['events', 'conversions', 'records', 'movements', 'alerts', 'digests']
const DEFAULT_WHATS: What[] = ['events', 'conversions']
const LABELS: Partial<Record<What, string>> = { movements: 'MRR movements', digests: 'Weekly digests' }

type Field = 'name' | 'url' | 'event_types' | 'headers'
type DestinationFormProps = {
  submit: string
  /** The destination to change; undefined for a new one. */
  destination?: Destination
  run(settings: DestinationSettings): Promise<void>
}

export function DestinationForm({ submit, destination, run }: DestinationFormProps): VNode {
  const names = Object.keys(destination?.headers ?? {})
  return h(
    Form<Field>,
    {
      key: destination?.updated_at ?? '',
      submit,
      needs: 'admin',
      layout: 'stacked',
      run: (values, all) => run(readForm(values, all.getAll('what') as What[])),
    },
    h(TextField, {
      ...{ id: 'url', label: 'URL', value: destination?.url ?? '' },
      placeholder: 'https://example.com/hooks',
      hint: 'Kontor sends POST requests to it. It must respond with 2xx within 15 seconds.',
    }),
    h(TextField, { id: 'name', label: 'Name', value: destination?.name ?? '', placeholder: 'warehouse' }),
    html`
      <fieldset>
        <legend>Data to send</legend>
        ${WHATS.map(
          name => html`
            <label class="check">
              <input
                type="checkbox" name="what" value=${name}
                defaultChecked=${(destination?.what ?? DEFAULT_WHATS).includes(name)}
              />${LABELS[name] ?? words(name)}
            </label>
          `,
        )}
      </fieldset>
    `,
    h(TextField, {
      ...{ id: 'event_types', label: 'Event types', placeholder: 'order.*, signup' },
      value: destination?.event_types.join(', ') ?? '',
      hint: 'Exact names, or prefixes with *. Leave empty to send all event types.',
    }),
    h(TextArea, {
      ...{ id: 'headers', label: 'Additional headers', value: '', rows: 2 },
      hint:
        names.length > 0
          ? `Current headers: ${names.join(', ')}. Their values are hidden. Leave empty to keep them, or enter - to remove all.`
          : 'One per line, for example Authorization: Bearer …',
    }),
  )
}

function readForm({ name, url, event_types, headers }: Record<Field, string>, what: What[]) {
  return {
    url: url.trim(),
    what,
    event_types: event_types.split(/[\s,]+/).filter(Boolean),
    ...(name.trim() && { name: name.trim() }),
    ...(headers.trim() && { headers: parseHeaders(headers) }),
  }
}

function parseHeaders(text: string): Record<string, string> {
  if (text.trim() === '-') return {}
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return Object.fromEntries(
    lines.map(line => {
      const colon = line.indexOf(':')
      if (colon < 1) throw new Error('Enter each header as a line like Authorization: Bearer …')
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()]
    }),
  )
}

/** A secret with sample code that verifies signatures. */
export function SecretUse({ secret }: { secret: string }): VNode {
  return html`
    ${h(Copyable, { text: secret, label: 'Copy the secret' })}
    <p>Verify requests in the receiver:</p>
    ${h(Copyable, { text: receiverCode(secret), label: 'Copy the code' })}
  `
}

function receiverCode(secret: string): string {
  return [
    `import { createServer } from 'node:http'`,
    `import { verifyWebhook } from '@kontor/sdk/webhooks'`,
    '',
    `const secret = ${JSON.stringify(secret)}`,
    '',
    'createServer(async (request, response) => {',
    '  const chunks = []',
    '  for await (const chunk of request) chunks.push(chunk)',
    '  const body = Buffer.concat(chunks)',
    '  const isGenuine = await verifyWebhook({ secret, body, headers: request.headers })',
    '  response.writeHead(isGenuine ? 204 : 401).end()',
    `  if (isGenuine) console.log(request.headers['webhook-id'], JSON.parse(body))`,
    '}).listen(3000)',
  ].join('\n')
}

const TONES: Record<Destination['health']['status'], Tone> = { ok: 'good', failing: 'bad', disabled: 'bad' }

export function DestinationState({ destination: { health } }: { destination: Destination }): VNode {
  const isNew = health.status === 'ok' && health.last_attempt_at === null
  return h(Badge, isNew ? { text: 'no messages yet' } : { text: health.status, tone: TONES[health.status] })
}

export function describeData({ what, event_types }: Destination): string {
  const types = event_types.length > 0 ? ` (${event_types.join(', ')})` : ''
  return what.map(name => (name === 'events' ? `events${types}` : name)).join(', ')
}
