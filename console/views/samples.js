import { h } from '../dom.js'
import { curlLine } from '../parts/copyable.js'
import { link } from '../routes.js'
import { session } from '../session.js'

/** Commands that bring in something of each kind: what empty lists offer. */

export function trackLine(key = '$TRACKING_KEY', event_type = 'page_view') {
  const body = { event_type, visitor: 'v-1', data: { page: 'https://shop.example/?utm_source=newsletter' } }
  return curlLine('/v1/track/', { key, body })
}

export function convertLine(key = '$TRACKING_KEY') {
  const data = { order_id: 'o-1', amount: 49.9, currency: 'EUR' }
  return curlLine('/v1/track/', { key, body: { event_type: 'convert', visitor: 'v-1', data } })
}

const RECORDS = {
  product: { id: 'p-1', data: { sku: 'MUG-01', name: 'Mug', price: 12.9, currency: 'EUR' } },
  contact: { id: 'c-1', data: { email: 'ada@example.com', name: 'Ada Lovelace' } },
  order: { id: 'o-1', data: { contactId: 'c-1', total: 49.9, currency: 'EUR' } },
}

export function recordLine(entityType, key = '$PRIVATE_KEY') {
  const { id, data } = RECORDS[entityType]
  const sourceUpdatedAt = new Date().toISOString()
  return curlLine(`/v1/${entityType}s`, { key, body: { entityType, id, sourceUpdatedAt, data } })
}

export function webhookLine(path = '/ingest/inbound/$SOURCE_ID', token = '$TOKEN') {
  const body = { inbound_event_id: 'evt-1', event_type: 'ticket.opened', payload: { subject: 'Hello' } }
  return curlLine(path, { key: token, body })
}

/** A signed one: the secret is used in the shell, and only the signature travels. */
export function signedWebhookLine(path, token, secret) {
  const body = { inbound_event_id: 'evt-1', event_type: 'ticket.opened', payload: { subject: 'Hello' } }
  return [
    `body='${JSON.stringify(body)}'; t=$(date +%s)`,
    `sig=$(printf '%s.%s' "$t" "$body" | openssl dgst -sha256 -hmac '${secret}' | sed 's/.* //')`,
    `curl ${location.origin}${path} \\`,
    `  -H 'Authorization: Bearer ${token}' \\`,
    `  -H "x-service-signature: t=$t,v1=$sig" \\`,
    `  -H 'Content-Type: application/json' -d "$body"`,
  ].join('\n')
}

export function cdpLine(path, token) {
  const body = {
    type: 'track',
    event: 'Signed Up',
    messageId: 'm-1',
    anonymousId: 'v-1',
    properties: { plan: 'pro' },
  }
  return curlLine(path, { key: token, body })
}

export function subscriptionLine() {
  const now = new Date().toISOString()
  const item = { id: 'i-1', name: 'Pro', quantity: 1, unit_amount: 49, interval: 'month', interval_count: 1 }
  const payload = {
    id: 'sub-1',
    customer: 'c-1',
    status: 'active',
    currency: 'EUR',
    started_at: now,
    items: [item],
  }
  const body = { inbound_event_id: 'evt-sub-1', event_type: 'subscription.created', payload }
  return curlLine('/ingest/inbound/$SOURCE_ID', { key: '$TOKEN', body })
}

/** Where the key of a sample comes from. */
export function whereKeysAre(kind) {
  if (session.adminKey)
    return ['No key at hand? ', h('a', { href: link(['keys'], { kind }) }, `Make a ${kind} key`), '.']
  return ['No key at hand? ', h('code', {}, `npm run kontor -- key create --tenant TENANT --kind ${kind}`)]
}

export function whereTokensAre() {
  if (session.adminKey)
    return ['A source has a token: ', h('a', { href: link(['sources', 'new']) }, 'make one'), '.']
  return ['No source yet? ', h('code', {}, 'npm run kontor -- source create --tenant TENANT --type webhook')]
}
