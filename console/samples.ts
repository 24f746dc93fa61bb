import type { ComponentChildren } from 'preact'
import type { KeyKind, RecordType } from './api/types.ts'
import { html } from './html.ts'
import { link } from './router.ts'
import { isAdmin } from './session.ts'
import { literal, quoted } from './shell-text.ts'

/** Sample commands for empty lists, one for each kind of data. */

export function trackCommand(key = '$TRACKING_KEY'): string {
  const data = { page: 'https://shop.example/?utm_source=newsletter' }
  return curl('/v1/track/', key, { event_type: 'page_view', visitor: 'v-1', data })
}

export function convertCommand(key = '$TRACKING_KEY'): string {
  const data = { order_id: 'o-1', amount: 49.9, currency: 'EUR' }
  return curl('/v1/track/', key, { event_type: 'convert', visitor: 'v-1', data })
}

/** The second item has no event name. */
export function invalidBatchCommand(): string {
  return curl('/v1/batch', '$TRACKING_KEY', {
    batch: [
      { type: 'track', event: 'Signed Up', messageId: 'm-1', anonymousId: 'v-1' },
      { type: 'track', messageId: 'm-2', anonymousId: 'v-1' },
    ],
  })
}

const RECORDS = {
  products: {
    entityType: 'product',
    id: 'p-1',
    data: { sku: 'MUG-01', name: 'Mug', price: 12.9, currency: 'EUR' },
  },
  contacts: { entityType: 'contact', id: 'c-1', data: { email: 'ada@example.com', name: 'Ada Lovelace' } },
  orders: { entityType: 'order', id: 'o-1', data: { contactId: 'c-1', total: 49.9, currency: 'EUR' } },
}

export function recordCommand(type: RecordType, key = '$PRIVATE_KEY'): string {
  const { entityType, id, data } = RECORDS[type]
  return curl(`/v1/${type}`, key, { entityType, id, sourceUpdatedAt: new Date().toISOString(), data })
}

const WEBHOOK = { inbound_event_id: 'evt-1', event_type: 'ticket.opened', payload: { subject: 'Hello' } }

export function webhookCommand(path = '/ingest/inbound/$SOURCE_ID', token = '$TOKEN'): string {
  return curl(path, token, WEBHOOK)
}

/** Computes the signature in the shell, so that only the signature is sent. */
export function signedWebhookCommand(path: string, token: string, secret: string): string {
  return [
    `body='${JSON.stringify(WEBHOOK)}'; t=$(date +%s)`,
    `sig=$(printf '%s.%s' "$t" "$body" | openssl dgst -sha256 -hmac ${literal(secret)} | sed 's/.* //')`,
    `curl ${location.origin}${path} \\`,
    `  -H ${quoted(`Authorization: Bearer ${token}`)} \\`,
    `  -H "x-service-signature: t=$t,v1=$sig" \\`,
    `  -H 'Content-Type: application/json' -d "$body"`,
  ].join('\n')
}

export function cdpCommand(path: string, token: string): string {
  const properties = { plan: 'pro' }
  return curl(path, token, {
    type: 'track',
    event: 'Signed Up',
    messageId: 'm-1',
    anonymousId: 'v-1',
    properties,
  })
}

export function subscriptionCommand(): string {
  const item = { id: 'i-1', name: 'Pro', quantity: 1, unit_amount: 49, interval: 'month', interval_count: 1 }
  const payload = {
    id: 'sub-1',
    customer: 'c-1',
    status: 'active',
    currency: 'EUR',
    started_at: new Date().toISOString(),
    items: [item],
  }
  return curl('/ingest/inbound/$SOURCE_ID', '$TOKEN', {
    inbound_event_id: 'evt-sub-1',
    event_type: 'subscription.created',
    payload,
  })
}

/** Says where to get the key of a sample. */
export function keyHint(kind: KeyKind): ComponentChildren {
  const command = `npm run kontor -- key create --tenant TENANT --kind ${kind}`
  return isAdmin.value
    ? html`<span>Need a key? <a href=${link('keys', { kind })}>Create a ${kind} key</a>.</span>`
    : html`<span>Need a key? <code>${command}</code></span>`
}

export function tokenHint(): ComponentChildren {
  return isAdmin.value
    ? html`<span>Need a token? <a href=${link('newSource')}>Create a source</a>.</span>`
    : html`<span>Need a source? <code>npm run kontor -- source create --tenant TENANT --type webhook</code></span>`
}

/** A command that can be pasted into a shell. */
function curl(path: string, key: string, body: unknown): string {
  return [
    `curl ${location.origin}${path}`,
    `-H ${quoted(`Authorization: Bearer ${key}`)}`,
    `-H 'Content-Type: application/json'`,
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ')
}
