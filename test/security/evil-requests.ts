// Valid requests with random mutations. The same seed gives the same requests.
import { gzipSync } from 'node:zlib'
import type { Chance } from '../books/random.ts'

export type EvilRequest = { method: string; url: string; headers: Record<string, string>; body?: Buffer }

export type Target = {
  routes: { method: string; url: string }[]
  /** Credentials as headers: valid ones, and others. */
  credentials: Record<string, string>[]
  /** Ids of existing objects, of this tenant and of others. */
  ids: string[]
}

const STRINGS = [
  '', ' ', '\u0000', 'a\u0000b', '\ud800', '\udfff\ud800', '%00', '../../etc/passwd', "'; drop table events; --", '{{7*7}}', '<script>alert(1)</script>',
  'e\u0301', '\u202e', '\uffff', '🧾'.repeat(300), 'x'.repeat(300), 'x'.repeat(70_000), '__proto__', 'constructor', 'null', 'NaN', '-1', '1e999', '0x10', '9223372036854775808',
  '2026-13-45', '0000-00-00', '9999-12-31T23:59:59Z', '-271821-04-20T00:00:00Z', '2026-02-29', '2026-11-15T12:00:00+99:99', '1969', '٣', 'EUR', 'XXX', 'eur ', 'ada@example.com',
] // biome-ignore format: one compact list
const VALUES: unknown[] = [
  null, true, false, 0, -0, -1, 0.1, 1e308, -1e308, 5e-324, 2 ** 53, 1e21, [], {}, [[]], [null], { a: null }, { '': '' }, { length: 1e9 }, { toString: 'x' }, { toJSON: 1 },
  [...'abc'], Array.from({ length: 300 }, (_, i) => i),
] // biome-ignore format: one compact list
const QUERY = [
  'limit', 'offset', 'cursor', 'since', 'until', 'event_type', 'source_config_id', 'updated_since', 'include_deleted', 'currency', 'as_of', 'tenant', 'key', 'writeKey', 'source',
  'id', 'from', 'to', 'interval', 'group_by', 'customer_id', 'status', 'format', 'visitor', '__proto__', 'a[b]',
] // biome-ignore format: one compact list
const HEADERS: Record<string, readonly string[]> = {
  'content-type': ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'application/x-ndjson', 'application/xml', 'multipart/form-data; boundary=x', '', 'application/json; charset=utf-16'],
  'content-encoding': ['gzip', 'deflate', 'br', 'identity', 'gzip, gzip', 'zstd'],
  'idempotency-key': ['k', 'x'.repeat(256), '\u00e9', ' ', 'a b'],
  prefer: ['wait=1', 'wait=-1', 'wait=99999999999', 'wait=x', 'respond-async'],
  origin: ['null', 'https://evil.example', 'x'],
  'x-forwarded-for': ['1.2.3.4', '::1', 'x'.repeat(9000), ','],
  'x-request-id': ['a', 'x'.repeat(500), '"'],
  'x-service-signature': ['t=1,v1=00', 't=,v1=', 'sha256=', 'x'.repeat(5000)],
  accept: ['text/html', 'application/xml', '*/*;q=x'],
  range: ['bytes=0-0', 'bytes=-1', 'x'],
  'if-none-match': ['*', 'W/"x"'],
  dnt: ['1'],
} // biome-ignore format: one compact list

const BODIES: object[] = [
  { entityType: 'product', id: 'P1', sourceUpdatedAt: '2026-01-02T03:04:05Z', data: { sku: 'MUG-01', price: 12.5 } },
  { entityType: 'contact', id: 'C1', externalId: 'x', data: { email: 'ada@example.com', name: 'Ada', company: 'Analytical' } },
  { entityType: 'order', id: 'O1', sourceUpdatedAt: '2026-01-02', data: { total: 10, currency: 'EUR', contactId: 'C1' } },
  { records: [{ entityType: 'order', id: 'O2', data: { total_price: '9.90' } }, { entityType: 'order', id: 'O3' }] },
  { event_type: 'page_view', visitor: 'v1', session_id: 's1', occurred_at: '2026-01-02T03:04:05Z', data: { url: 'https://shop.example/?utm_source=x', total: 3 } },
  { batch: [{ type: 'track', event: 'Order Completed', anonymousId: 'v1', messageId: 'm1', properties: { order_id: 'O1', revenue: 12 } }, { type: 'identify', userId: 'u1', traits: { email: 'ada@example.com' } }, { type: 'alias', previousId: 'v1', userId: 'u1' }], sentAt: '2026-01-02T03:04:05Z', context: { ip: '1.2.3.4' } },
  { inbound_event_id: 'e1', event_type: 'subscription.created', payload: { id: 'sub_1', customer: 'cus_1', status: 'active', items: [{ amount: 10, currency: 'EUR', interval: 'month', quantity: 2 }] } },
  { id: 'evt_1', object: 'event', type: 'customer.subscription.updated', created: 1767322800, livemode: true, data: { object: { id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'eur', items: { data: [{ id: 'si_1', quantity: 1, price: { id: 'p', currency: 'eur', unit_amount: 1000, recurring: { interval: 'month', interval_count: 1 } } }] } }, previous_attributes: { status: 'trialing' } } },
  { tenant: 'default', name: 'x', kind: 'private', type: 'webhook', scopes: ['orders:read'], token: 'tok_0123456789abcdef', rate_limit: { events: 1, per_seconds: 1 }, email: 'unknown@example.com', what: 'token', ids: ['x'], all: false },
] // biome-ignore format: one compact list

export function evilRequest(random: Chance, { routes, credentials, ids }: Target): EvilRequest {
  const { method, url: pattern } = random.pick(routes)
  const path = pattern
    .split('/')
    .map(part => (/^[:*]/.test(part) ? pathValue(random, ids) : part))
    .join('/')
  const headers = { ...random.pick(credentials) }
  if (random.happens(0.3)) {
    const name = random.pick(Object.keys(HEADERS))
    headers[name] = random.pick(HEADERS[name]!)
  }
  const url = mutatePath(random, path) + (random.happens(0.4) ? query(random, ids) : '')
  if (method === 'GET') return { method, url, headers }
  headers['content-type'] ??= 'application/json'
  const plain = body(random)
  const isPacked = headers['content-encoding']?.startsWith('gzip') && random.happens(0.7)
  return { method: mutateMethod(random, method), url, headers, body: isPacked ? gzipSync(plain) : plain }
}

const mutateMethod = (random: Chance, method: string) =>
  random.happens(0.01) ? random.pick(['PUT', 'PATCH', 'DELETE', 'POST']) : method

function mutatePath(random: Chance, path: string): string {
  if (!random.happens(0.03)) return path
  return random.pick([
    `${path}/`,
    `/${path}`,
    `${path}/../x`,
    path.toUpperCase(),
    `${path}%00`,
    `${path}%`,
    `${path};x=1`,
    `${path}%2e%2e`,
    `${path}%ff`,
  ])
}

function pathValue(random: Chance, ids: string[]): string {
  if (random.happens(0.5)) return encodeURIComponent(random.pick(ids))
  return random.happens(0.3)
    ? random.pick(['%00', '%ED%A0%80', '%', '%zz', '..', '.', '%2e%2e%2f', '%E2%80%AE'])
    : uriText(random.pick(STRINGS))
}

function query(random: Chance, ids: string[]): string {
  const pairs = Array.from({ length: random.between(1, 4) }, () => {
    const value = random.happens(0.3)
      ? encodeURIComponent(random.pick(ids))
      : random.happens(0.2)
        ? random.pick(['%00', '%', '%ED%A0%80', '1', '100', '2026-01-01'])
        : uriText(random.pick(STRINGS).slice(0, 2_000))
    return `${encodeURIComponent(random.pick(QUERY))}=${value}`
  })
  return `?${pairs.join('&')}`
}

/** A string with lone surrogates cannot be encoded and is replaced. */
const uriText = (text: string) => encodeURIComponent(text.toWellFormed() === text ? text.slice(0, 3_000) : 'a')

function body(random: Chance): Buffer {
  let text = JSON.stringify(mutate(random, structuredClone(random.pick(BODIES))))
  if (random.happens(0.05)) text = text.replace('{', '{"a":"\\u0000","a":"x",')
  if (random.happens(0.03)) text = `${'['.repeat(random.between(1, 5_000))}${text}`
  if (random.happens(0.05)) text = text.slice(0, random.between(0, text.length))
  if (random.happens(0.02))
    text = random.pick(['', 'null', '0', '""', '[]', '{}', '[[]]', '\ufeff{}', 'NaN', '{"a":1}{"b":2}', '\n\n'])
  const bytes = Buffer.from(text)
  if (random.happens(0.05) && bytes.length > 0) bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
  return bytes
}

/** The value with up to three of its fields replaced, duplicated, renamed or removed. */
function mutate(random: Chance, value: object): object {
  for (let i = random.between(0, 3); i > 0; i--) mutateOnce(random, value)
  return value
}

function mutateOnce(random: Chance, root: object): void {
  let at = root as Record<string, unknown>
  for (;;) {
    const names = Object.keys(at)
    if (names.length === 0) return
    const name = random.pick(names)
    const child = at[name]
    if (typeof child === 'object' && child !== null && random.happens(0.7)) {
      at = child as Record<string, unknown>
      continue
    }
    const how = random.weighted({ string: 5, value: 5, remove: 2, rename: 1, twice: 1 })
    if (how === 'remove') delete at[name]
    else if (how === 'rename') at[random.pick(STRINGS).slice(0, 300)] = child
    else if (how === 'twice' && Array.isArray(at)) at.push(structuredClone(child))
    else at[name] = how === 'string' ? random.pick(STRINGS) : structuredClone(random.pick(VALUES))
    return
  }
}
