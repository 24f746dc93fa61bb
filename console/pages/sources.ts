import { type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { inbound, sources } from '../api/admin.ts'
import { nullOn } from '../api/request.ts'
import type { CreatedSource, NewSource, RateLimit, Receipt, Source, SourceActivity } from '../api/types.ts'
import { Form, type FormValues, SelectField, TextField } from '../components/form.ts'
import { Badge, EmptyState, LocalAddressNote, ShownOnce } from '../components/notice.ts'
import { Facts, Page } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Copyable } from '../components/text.ts'
import { Ago, Day } from '../components/time.ts'
import { number, words } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { cdpCommand, signedWebhookCommand, webhookCommand } from '../samples.ts'
import { tenant } from '../session.ts'
export const sourcesPage = definePage(
  'sources',
  async ({ signal }): Promise<SourceRow[]> => {
    const { results } = await sources.list(tenant.peek(), signal)
    return Promise.all(results.map((source, index) => withActivity(source, index < MOST_ACTIVITIES, signal)))
  },
  ({ data: results }) =>
    h(
      Page,
      {
        title: 'Sources',
        actions: html`<a class="button main" href=${link('newSource')}>New source</a>`,
        lead: 'A source is a URL that an external system posts events to.',
      },
      results.length > 0
        ? h(Table<SourceRow>, {
            ...{ caption: 'Sources', columns, rows: results, rowKey: ({ id }) => id },
            csv: { api: 'admin', path: '/sources', query: { tenant: tenant.peek() }, name: 'sources' },
          })
        : h(EmptyState, {
            title: 'No sources yet.',
            text: 'Create a source, then send events to it with its token:',
            command: webhookCommand(),
            action: html`<a href=${link('newSource')}>Create a source</a>`,
          }),
    ),
)

type SourceRow = Source & { activity: SourceActivity | null; last: Receipt | null }

/** Each needs two small requests. */
const MOST_ACTIVITIES = 30

async function withActivity(source: Source, isWanted: boolean, signal: AbortSignal): Promise<SourceRow> {
  if (!isWanted) return { ...source, activity: null, last: null }
  const [activity, receipts] = await Promise.all([
    nullOn(403, sources.activity(source.id, signal)),
    nullOn(403, inbound.receipts({ tenant: source.tenant, source: source.id, limit: 1 }, signal)),
  ])
  return { ...source, activity, last: receipts?.results[0] ?? null }
}

const columns: Column<SourceRow>[] = [
  {
    label: 'Name',
    cell: ({ id, name }) => html`<a href=${link('source', { id })}>${name}</a>`,
    kind: 'long',
  },
  { label: 'Status', cell: source => h(SourceState, { source }) },
  { label: 'Type', cell: sourceType },
  { label: 'Last event', cell: ({ last }) => (last ? h(Ago, { at: last.received_at }) : 'none') },
  { label: 'Received (24 h)', cell: ({ activity }) => number(activity?.received.last_24_hours), kind: 'number' },
  {
    label: 'Rejected (24 h)',
    cell: ({ id, activity }) =>
      activity && activity.refused.last_24_hours > 0
        ? html`<a class="bad-number" href=${link('source', { id })}>${number(activity.refused.last_24_hours)}</a>`
        : number(activity?.refused.last_24_hours),
    kind: 'number',
  },
  { label: 'Signature check', cell: ({ signing_secrets }) => (signing_secrets.length > 0 ? 'on' : 'off') },
  { label: 'Created', cell: ({ created_at }) => h(Day, { at: created_at }) },
]

const TYPES = [
  ['webhook', 'Webhook'],
  ['automation', 'Automation platform'],
  ['cdp', 'Customer data platform'],
] as const
const PRESETS = [
  ['', 'None'],
  ['stripe', 'Stripe'],
  ['shopify', 'Shopify'],
  ['woocommerce', 'WooCommerce'],
  ['paddle', 'Paddle'],
  ['chargebee', 'Chargebee'],
  ['recurly', 'Recurly'],
  ['lago', 'Lago'],
  ['revenuecat', 'RevenueCat'],
  ['github', 'GitHub'],
  ['standard-webhooks', 'Standard Webhooks'],
] as const
const SIGNATURES = [
  ['', 'Not signed'],
  ['generate', 'Generate a signing secret'],
  ['own', "Use the sender's secret"],
] as const
const OVERFLOWS = [
  ['defer', 'Process later'],
  ['drop', 'Drop, and list as dropped'],
] as const

export const newSourcePage = definePage(
  'newSource',
  async () => null,
  ({ route: { query } }) => {
    const created = useSignal<CreatedSource | null>(null)
    return h(
      Page,
      { title: 'New source' },
      created.value
        ? h(CreatedNotice, { source: created.value })
        : h(SourceForm, { created, preset: query.get('preset') ?? '' }),
    )
  },
)

type Field = 'name' | 'type' | 'preset' | 'signing' | 'own_secret' | 'rate' | 'overflow'

type SourceFormProps = { created: Signal<CreatedSource | null>; preset: string }

function SourceForm({ created, preset }: SourceFormProps): VNode {
  const signing = useSignal('')
  const create = async (values: FormValues<Field>) => {
    created.value = await sources.create(readForm(values))
  }
  return h(
    Form<Field>,
    { submit: 'Create source', needs: 'admin', layout: 'stacked', run: create },
    h(TextField, { id: 'name', label: 'Name', placeholder: 'shop' }),
    h(SelectField, { id: 'type', label: 'Type', options: TYPES }),
    h(SelectField, {
      id: 'preset',
      label: 'Preset',
      options: PRESETS,
      value: preset,
      hint: 'Defines how signatures are verified and where the event type is found.',
    }),
    h(SelectField, {
      id: 'signing',
      label: 'Signature',
      options: SIGNATURES,
      value: signing.value,
      onChange: chosen => {
        signing.value = chosen
      },
    }),
    signing.value === 'own' &&
      h(TextField, {
        id: 'own_secret',
        label: 'Signing secret',
        placeholder: 'whsec_…',
        hint: 'Copy it from the sender.',
      }),
    h(TextField, {
      id: 'rate',
      label: 'Rate limit',
      placeholder: '6000/60',
      hint: 'Events / seconds. Leave empty for the default, 6000/60: 6,000 events per 60 seconds.',
    }),
    h(SelectField, { id: 'overflow', label: 'Events above the limit', options: OVERFLOWS }),
  )
}

function readForm(values: FormValues<Field>): NewSource {
  const { type, preset, signing, overflow } = values
  const name = values.name.trim()
  const secret = signing === 'own' ? values.own_secret.trim() : signing
  const rateLimit = parseRateLimit(values.rate)
  return {
    tenant: tenant.peek() ?? '',
    type: type as NewSource['type'],
    overflow: overflow as NewSource['overflow'],
    ...(name && { name }),
    ...(preset && { preset: preset as NewSource['preset'] }),
    ...(secret && { signing_secret: secret }),
    ...(rateLimit && { rate_limit: rateLimit }),
  }
}

function parseRateLimit(text: string): RateLimit | null {
  if (text.trim() === '') return null
  const [, events, seconds] = /^\s*(\d+)\s*\/\s*(\d+)\s*$/.exec(text) ?? []
  if (!events) throw new Error('Enter the rate limit as events/seconds, for example 6000/60.')
  return { events: Number(events), per_seconds: Number(seconds) }
}

function CreatedNotice({ source }: { source: CreatedSource }): VNode {
  const { id, name, path, preset, token, signing_secret: secret } = source
  return h(
    ShownOnce,
    { title: `Source ${name} created` },
    html`<p>${secret ? 'The token and the signing secret are shown only once. Save them now.' : 'The token is shown only once. Save it now.'}</p>`,
    h(Facts, {
      facts: [
        ['URL', h(Copyable, { text: location.origin + path, label: 'Copy the URL' })],
        ['Token', h(Copyable, { text: token, label: 'Copy the token' })],
        secret && ['Signing secret', h(Copyable, { text: secret, label: 'Copy the signing secret' })],
      ],
    }),
    preset && h(LocalAddressNote, { sender: words(preset) }),
    html`<p>${preset ? `Enter the URL in ${words(preset)}, or send a test event:` : 'Send a test event:'}</p>`,
    h(Copyable, { text: testCommand(source), label: 'Copy the command' }),
    html`<p><a href=${link('source', { id })}>Open the source</a></p>`,
  )
}

/** A preset has its own signature, so the command line sends the sample. */
function testCommand({ id, type, preset, path, token, signing_secret: secret }: CreatedSource): string {
  if (preset) return `npm run kontor -- source test ${id}`
  if (secret) return signedWebhookCommand(path, token, secret)
  return type === 'cdp' ? cdpCommand(path, token) : webhookCommand(path, token)
}

export function SourceState({ source: { enabled } }: { source: Source }): VNode {
  return h(Badge, enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled', tone: 'bad' })
}

export function sourceType({ type, preset }: Source): string {
  return preset ? `${type}, ${preset}` : type
}
