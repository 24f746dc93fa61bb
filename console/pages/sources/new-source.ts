import { type Signal, useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { sources } from '../../api/admin.ts'
import type { CreatedSource, NewSource, RateLimit } from '../../api/types.ts'
import { Form, type FormValues, SelectField, TextField } from '../../components/form.ts'
import { Page } from '../../components/page.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { tenant } from '../../session.ts'
import { CreatedNotice } from './created-notice.ts'

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
  ['drop', 'Drop and record a receipt'],
] as const

export const page = definePage(
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
    created.value = await sources.create(sourceIn(values))
  }
  return h(
    Form<Field>,
    { submit: 'Create source', layout: 'stacked', run: create },
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
      hint: 'Events / seconds: 6000/60 allows 6,000 events per 60 seconds.',
    }),
    h(SelectField, { id: 'overflow', label: 'When over the limit', options: OVERFLOWS }),
  )
}

function sourceIn(values: FormValues<Field>): NewSource {
  const { type, preset, signing, overflow } = values
  const name = values.name.trim()
  const secret = signing === 'own' ? values.own_secret.trim() : signing
  const rateLimit = rateLimitIn(values.rate)
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

function rateLimitIn(text: string): RateLimit | null {
  if (text.trim() === '') return null
  const [, events, seconds] = /^\s*(\d+)\s*\/\s*(\d+)\s*$/.exec(text) ?? []
  if (!events) throw new Error('Enter the rate limit as events/seconds, for example 6000/60.')
  return { events: Number(events), per_seconds: Number(seconds) }
}
