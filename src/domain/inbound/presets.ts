import { createHmac, type Hmac } from 'node:crypto'
import { isObject, type JsonObject, parseJson, valueAt } from '../json/json.ts'
import {
  base64Bytes,
  digestBytes,
  hexBytes,
  INVALID_SIGNATURE,
  MISSING_SIGNATURE,
  type SignatureFormat,
  type SignedRequest,
  signs,
  type Verification,
  verifyCredential,
  verifyPlain,
  verifyTimestamped,
  verifyWithTime,
} from './signatures.ts'
import { type CustomSignature, DEFAULT_TEMPLATE } from './source-config.ts'

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | undefined>>

export const PRESET_NAMES = [
  ...(['stripe', 'shopify', 'github', 'standard-webhooks', 'woocommerce', 'paddle', 'chargebee'] as const),
  ...(['recurly', 'lago', 'revenuecat', 'custom'] as const),
] as const
export type PresetName = (typeof PRESET_NAMES)[number]

/** `custom`: the source setting for the preset `custom`. */
type PresetRequest = Omit<SignedRequest, 'header'> & { headers: Headers; custom?: CustomSignature | null }

/** How a provider signs its requests, and where they contain the event type and the event id. */
export type Preset = {
  name: PresetName
  /** Headers to store with the event, for `eventType` and `eventId`; never a signature. */
  keepHeaders: readonly string[]
  verify(request: PresetRequest): Verification
  /** The HMAC key in a secret. Default: the secret as displayed. */
  keyBytes?(secret: string): Buffer
  /** The Authorization header contains the signing secret itself, not a Kontor token. */
  authorizes?: true
  /** The expected format, if the secret does not have it; null: valid. */
  checkSecret?(secret: string): string | null
  /** Null: the event is in Kontor's format. */
  eventType(headers: Headers, body: JsonObject): string | null
  eventId(headers: Headers, body: JsonObject): string | null
  /** Events of this provider have no id. */
  withoutIds?: true
  /**
   * Why the body cannot belong to the event type; null: it can. Shopify, WooCommerce and GitHub sign the body, but not
   * the header with the event type, so someone with a signed order could send it as `orders/delete`. Only bodies that
   * clearly contradict the type are rejected, because providers add types and fields.
   */
  contradiction?(headers: Headers, body: JsonObject): string | null
  /** The business object in the body, if it is not the whole body. */
  subject?(body: JsonObject): JsonObject
  /** The time of the event (ISO 8601 or Unix time), if it is not in `occurred_at`. */
  occurredAt?(body: JsonObject): unknown
  /** The buyer's user id, if `user_id` in the body belongs to another person. */
  userId?(body: JsonObject): string | null
  /** Whether the body is an unsigned connection test, which is answered and not stored. */
  isPing?(body: Buffer): boolean
}

function readString(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}

/** The same for an id, which may be a number. */
function readIdString(value: unknown): string | null {
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : readString(value)
}

/** A signature of the body alone, in one header. */
function verifyHeader(
  header: string,
  format: SignatureFormat,
  decode: (text: string) => Buffer | null = base64Bytes,
): Preset['verify'] {
  return request => {
    const signature = request.headers[header]?.trim()
    return signature ? verifyPlain(request, signature, decode, format) : MISSING_SIGNATURE
  }
}

const stripe: Preset = {
  name: 'stripe',
  keepHeaders: [],
  verify: request => verifyTimestamped({ ...request, header: request.headers['stripe-signature'] }, 'stripe'),
  eventType: (_headers, body) => readString(body.type),
  eventId: (_headers, body) => readString(body.id),
}

const shopify: Preset = {
  name: 'shopify',
  keepHeaders: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-triggered-at',
    'x-shopify-test',
  ],
  verify: verifyHeader('x-shopify-hmac-sha256', 'shopify'),
  eventType: headers => readString(headers['x-shopify-topic']),
  // a repeated delivery has the same webhook id
  eventId: headers => readString(headers['x-shopify-webhook-id']) ?? readString(headers['x-shopify-event-id']),
  contradiction: (headers, body) => shopifyContradiction(readString(headers['x-shopify-topic']) ?? '', body),
  // the `user_id` of an order is that of a staff member
  userId: () => null,
}

/** A test notification, or an order that was paid in the test mode of a payment provider. */
export function isShopifyTest(headers: Headers, body: JsonObject): boolean {
  const isOrder = (headers['x-shopify-topic'] ?? '').startsWith('orders/')
  return headers['x-shopify-test'] === 'true' || (isOrder && body.test === true)
}

const SHOPIFY_TYPES: Record<string, string> = {
  orders: 'Order',
  draft_orders: 'DraftOrder',
  products: 'Product',
  customers: 'Customer',
  refunds: 'Refund',
}

/** Why the body cannot belong to its topic; null: it can. See `Preset.contradiction`. */
function shopifyContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('/')
  const expected = SHOPIFY_TYPES[resource]
  if (expected === undefined) return null
  const found = shopifyType(body)
  if (found !== null && found !== expected)
    return `the topic ${topic} does not match the body, which is of type ${found}; topics are not signed`
  const isWhole = 'created_at' in body || ownShape(body) !== null
  if (action === 'delete' && isWhole)
    return `the topic ${topic} does not match the body, which is a complete object; topics are not signed`
  return null
}

function shopifyType(body: JsonObject): string | null {
  const { admin_graphql_api_id: gid } = body
  const named = typeof gid === 'string' ? /^gid:\/\/shopify\/([A-Za-z]+)\//.exec(gid)?.[1] : undefined
  return named !== undefined && Object.values(SHOPIFY_TYPES).includes(named) ? named : ownShape(body)
}

function ownShape(body: JsonObject): string | null {
  const has = (name: string) => name in body
  if (Array.isArray(body.line_items) && (has('order_number') || has('financial_status'))) return 'Order'
  if (Array.isArray(body.variants) && (has('handle') || has('product_type'))) return 'Product'
  if (Array.isArray(body.refund_line_items)) return 'Refund'
  if (has('orders_count') && has('verified_email')) return 'Customer'
  return null
}

const github: Preset = {
  name: 'github',
  keepHeaders: ['x-github-event', 'x-github-delivery'],
  verify: verifyHeader('x-hub-signature-256', 'github', text =>
    text.startsWith('sha256=') ? hexBytes(text.slice(7)) : null,
  ),
  eventType(headers, body) {
    const event = readString(headers['x-github-event'])
    const action = readString(body.action)
    return event && action ? `${event}.${action}` : event
  },
  eventId: headers => readString(headers['x-github-delivery']),
  contradiction: (headers, body) => githubContradiction(readString(headers['x-github-event']) ?? '', body),
}

/** By event: a field that its body has, and fields that only bodies of other events have. */
const GITHUB_EVENTS: Record<string, { own: string; never?: string[] }> = {
  check_run: { own: 'check_run' },
  check_suite: { own: 'check_suite' },
  create: { own: 'master_branch' },
  delete: { own: 'ref_type', never: ['master_branch'] },
  deployment: { own: 'deployment', never: ['deployment_status'] },
  deployment_status: { own: 'deployment_status' },
  discussion: { own: 'discussion' },
  fork: { own: 'forkee' },
  issue_comment: { own: 'comment', never: ['pull_request', 'discussion'] },
  issues: { own: 'issue', never: ['comment'] },
  ping: { own: 'zen' },
  pull_request: { own: 'pull_request', never: ['comment', 'review', 'thread'] },
  pull_request_review: { own: 'review' },
  push: { own: 'commits' },
  release: { own: 'release' },
  workflow_job: { own: 'workflow_job' },
  workflow_run: { own: 'workflow_run' },
}
const GITHUB_FIELDS = [...new Set(Object.values(GITHUB_EVENTS).map(({ own }) => own))]

/** Why the body cannot belong to its event; null: it can. See `Preset.contradiction`. */
function githubContradiction(event: string, body: JsonObject): string | null {
  const known = Object.hasOwn(GITHUB_EVENTS, event) ? GITHUB_EVENTS[event]! : null
  if (known === null) return null
  const isPresent = (name: string) =>
    Array.isArray(body[name]) || isObject(body[name]) || typeof body[name] === 'string'
  const foreign = isPresent(known.own) ? known.never?.find(isPresent) : GITHUB_FIELDS.find(isPresent)
  if (foreign === undefined) return null
  return `the event ${event} does not match the body, which contains ${foreign}; event names are not signed`
}

const woocommerce: Preset = {
  name: 'woocommerce',
  keepHeaders: [
    'x-wc-webhook-topic',
    'x-wc-webhook-delivery-id',
    'x-wc-webhook-id',
    'x-wc-webhook-source',
    'x-wc-webhook-resource',
  ],
  verify: verifyHeader('x-wc-webhook-signature', 'woocommerce'),
  eventType: headers => readString(headers['x-wc-webhook-topic']),
  // two webhooks of one shop may have the same delivery id, which is a hash
  eventId(headers, body) {
    const delivery = readString(headers['x-wc-webhook-delivery-id'])
    if (delivery === null) return null
    return [delivery, readString(headers['x-wc-webhook-topic']), readIdString(body.id)].filter(Boolean).join('/')
  },
  contradiction: (headers, body) => woocommerceContradiction(readString(headers['x-wc-webhook-topic']) ?? '', body),
  // WooCommerce sends this unsigned form once, when the webhook is saved
  isPing: body => body.length < 40 && /^webhook_id=\d+$/.test(body.toString('latin1').trim()),
}

/** A field that only objects of this resource have. */
const WOOCOMMERCE_FIELDS: Record<string, string> = {
  product: 'catalog_visibility',
  order: 'order_key',
  customer: 'is_paying_customer',
  subscription: 'billing_period',
  coupon: 'discount_type',
}

/** Why the body cannot belong to its topic; null: it can. See `Preset.contradiction`. */
function woocommerceContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('.')
  if (!Object.hasOwn(WOOCOMMERCE_FIELDS, resource)) return null
  const isWhole = 'date_created' in body || 'date_created_gmt' in body
  if (action === 'deleted' && isWhole)
    return `the topic ${topic} does not match the body, which is a complete object; topics are not signed`
  // subscriptions also have the fields of orders
  const found = Object.keys(WOOCOMMERCE_FIELDS).findLast(name => WOOCOMMERCE_FIELDS[name]! in body)
  if (found === undefined || found === resource) return null
  return `the topic ${topic} does not match the body, which is of type ${found}; topics are not signed`
}

const standardWebhooks: Preset = {
  name: 'standard-webhooks',
  keepHeaders: ['webhook-id', 'webhook-timestamp'],
  checkSecret(secret) {
    const text = secret.replace(/^whsec_/, '')
    const isEncoded = /^[A-Za-z0-9+/]+={0,2}$/.test(text) && standardKey(secret).length >= 16
    return isEncoded ? null : 'base64 of at least 16 bytes (128 bits), with or without whsec_ in front'
  },
  keyBytes: standardKey,
  verify(request) {
    const id = request.headers['webhook-id']?.trim()
    const timestamp = request.headers['webhook-timestamp']?.trim()
    const header = request.headers['webhook-signature']?.trim()
    if (!id || !timestamp || !header) return MISSING_SIGNATURE
    const given: Buffer[] = []
    for (const part of header.split(' ')) {
      const bytes = part.startsWith('v1,') ? base64Bytes(part.slice(3)) : null
      if (bytes) given.push(bytes)
    }
    const content = [`${id}.${timestamp}.`, request.body]
    return verifyWithTime(request, { timestamp, content, given, format: 'standard' })
  },
  eventType: (_headers, body) => readString(body.type) ?? readString(body.event_type),
  eventId: headers => readString(headers['webhook-id']),
  subject: body => (isObject(body.data) ? body.data : body),
  occurredAt: body => body.occurred_at ?? body.timestamp,
}

/** Standard Webhooks secrets are the key in base64, usually behind `whsec_`. */
function standardKey(secret: string): Buffer {
  return Buffer.from(secret.startsWith('whsec_') ? secret.slice(6) : secret, 'base64')
}

/** Paddle Billing: `ts=<unix>;h1=<hex>[;h1=<hex>]` over "<ts>:" + body; two while the secret is being rotated. */
const paddle: Preset = {
  name: 'paddle',
  keepHeaders: [],
  verify(request) {
    const header = request.headers['paddle-signature']?.trim()
    if (!header) return MISSING_SIGNATURE
    const parts = header.split(';').map(part => part.trim().split('=', 2) as [string, string?])
    const timestamps = parts.flatMap(([name, value = '']) => (name === 'ts' ? [value] : []))
    if (timestamps.length !== 1) return INVALID_SIGNATURE
    return verifyWithTime(request, {
      timestamp: timestamps[0]!,
      content: [`${timestamps[0]}:`, request.body],
      given: parts.flatMap(([name, value = '']) => (name === 'h1' ? (hexBytes(value) ?? []) : [])),
      format: 'paddle',
    })
  },
  eventType: (_headers, body) => readString(body.event_type),
  // not the notification id: every destination and every replay has its own
  eventId: (_headers, body) => readString(body.event_id),
}

/** Chargebee does not sign. It sends a user name and a password. */
const chargebee: Preset = {
  name: 'chargebee',
  keepHeaders: [],
  authorizes: true,
  checkSecret: secret => (/^[^:]+:./.test(secret) ? null : 'a user name and a password, as user:password'),
  verify({ headers, secrets }) {
    const basic = /^basic +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1]
    const shown = basic && Buffer.from(basic, 'base64').toString()
    return verifyCredential(headers.authorization && (shown ?? ''), secrets, 'chargebee')
  },
  eventType: (_headers, body) => readString(body.event_type),
  eventId: (_headers, body) => readString(body.id),
  occurredAt: body => body.occurred_at,
}

/** `<unix ms>,<hex>[,<hex>]` over "<unix ms>." + body; several signatures for a day after the secret was regenerated. */
const recurly: Preset = {
  name: 'recurly',
  keepHeaders: [],
  verify(request) {
    const header = request.headers['recurly-signature']?.trim()
    if (!header) return MISSING_SIGNATURE
    const [timestamp = '', ...signatures] = header.split(',').map(part => part.trim())
    return verifyWithTime(request, {
      timestamp,
      content: [`${timestamp}.`, request.body],
      given: signatures.flatMap(text => hexBytes(text) ?? []),
      format: 'recurly',
    })
  },
  eventType(_headers, body) {
    const object = readString(body.object_type)
    const event = readString(body.event_type)
    return object && event && `${object}.${event}`
  },
  // `id` identifies the object: the event id adds the event type and time
  eventId(_headers, body) {
    const id = readString(body.id) ?? readString(body.uuid)
    const parts = [id, readString(body.object_type), readString(body.event_type), readString(body.event_time)]
    return id === null ? null : parts.filter(part => part !== null).join('/')
  },
  occurredAt: body => body.event_time,
}

/** Lago's default signature is a JWT: three parts of base64url. */
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/
const NOT_HMAC =
  'The signature is a JWT, which Kontor does not support. Set the signature algorithm of the webhook endpoint in Lago to hmac.'

/** Lago with HMAC signatures. Its default, a JWT, is not supported and therefore rejected. */
const lago: Preset = {
  name: 'lago',
  keepHeaders: ['x-lago-unique-key'],
  checkSecret(secret) {
    const isKey = [secret, Buffer.from(secret, 'base64').toString()].some(text => text.includes('PUBLIC KEY'))
    const isOther = isKey || JWT.test(secret) || /^jwt$/i.test(secret.trim())
    return isOther
      ? "Lago's HMAC key. Signatures of type jwt are not supported: use hmac for the webhook endpoint"
      : null
  },
  verify(request) {
    const algorithm = readString(request.headers['x-lago-signature-algorithm'])?.toLowerCase() ?? 'hmac'
    const isJwt = algorithm !== 'hmac' || JWT.test(request.headers['x-lago-signature']?.trim() ?? '')
    return isJwt ? { ...INVALID_SIGNATURE, detail: NOT_HMAC } : verifyHeader('x-lago-signature', 'lago')(request)
  },
  eventType: (_headers, body) => readString(body.webhook_type),
  eventId: headers => readString(headers['x-lago-unique-key']),
}

/** RevenueCat does not sign. It sends the Authorization header configured in its dashboard. */
const revenuecat: Preset = {
  name: 'revenuecat',
  keepHeaders: [],
  authorizes: true,
  verify: ({ headers, secrets }) => verifyCredential(headers.authorization?.trim(), secrets, 'revenuecat'),
  eventType: (_headers, body) => readString(isObject(body.event) ? body.event.type : null),
  eventId: (_headers, body) => readString(isObject(body.event) ? body.event.id : null),
  occurredAt: body => (isObject(body.event) ? body.event.event_timestamp_ms : null),
  userId(body) {
    const id = readString(isObject(body.event) ? body.event.app_user_id : null)
    return id?.startsWith('$RCAnonymousID:') ? null : id
  },
}

/** A signature that the source's setting `custom` describes. */
const custom: Preset = {
  name: 'custom',
  keepHeaders: [],
  verify: request => (request.custom ? verifyCustom(request, request.custom) : INVALID_SIGNATURE),
  eventType: () => null,
  eventId: () => null,
  withoutIds: true,
}

function verifyCustom(request: PresetRequest, setting: CustomSignature): Verification {
  const { algorithm = 'sha256', encoding = 'hex', prefix = '', timestamp_header } = setting
  // parse the body before the signature is verified only if the signature covers fields of the body
  const body = usesFields(setting) ? tryParse(request.body) : undefined
  const shown = setting.header ? request.headers[setting.header] : readIdString(valueAt(body, setting.body_path!))
  const signature = shown?.trim()
  if (!signature) return MISSING_SIGNATURE
  const timestamp = timestamp_header ? (request.headers[timestamp_header]?.trim() ?? null) : null
  if (timestamp_header && !timestamp) return MISSING_SIGNATURE
  const content = buildContent(setting.template ?? DEFAULT_TEMPLATE, { request, body, timestamp })
  const bytes = signature.startsWith(prefix) ? digestBytes(signature.slice(prefix.length), encoding, algorithm) : null
  if (content === null || bytes === null) return INVALID_SIGNATURE
  if (timestamp === null) {
    const isValid = request.secrets.some(({ key }) => signs({ key, content, given: [bytes], algorithm }))
    return isValid ? { ok: true, format: 'custom' } : INVALID_SIGNATURE
  }
  return verifyWithTime(request, {
    ...{ timestamp, content, given: [bytes], algorithm, format: 'custom' },
    ...(setting.tolerance_s !== undefined && { toleranceS: setting.tolerance_s }),
  })
}

function usesFields({ body_path, template = DEFAULT_TEMPLATE }: CustomSignature): boolean {
  return body_path !== undefined || listPlaceholders(template).some(name => !OWN_PLACEHOLDERS.has(name))
}

const OWN_PLACEHOLDERS = new Set(['body', 'timestamp'])

export function listPlaceholders(template: string): string[] {
  return [...template.matchAll(/\{([^{}]+)\}/g)].map(match => match[1]!)
}

/** Replaces `{body}`, `{timestamp}` and `{any.path}` (a value in the body); null: a value is missing. */
function buildContent(
  template: string,
  known: { request: PresetRequest; body: unknown; timestamp: string | null },
): (string | Buffer)[] | null {
  const parts: (string | Buffer)[] = []
  for (const [i, part] of template.split(/\{([^{}]+)\}/).entries()) {
    if (i % 2 === 0) {
      parts.push(part)
      continue
    }
    if (part === 'body') parts.push(known.request.body)
    else {
      const value = part === 'timestamp' ? known.timestamp : readIdString(valueAt(known.body, part))
      if (value === null) return null
      parts.push(value)
    }
  }
  return parts
}

function tryParse(body: Buffer): unknown {
  try {
    return parseJson(body.toString())
  } catch {
    return undefined
  }
}

const PRESETS: Record<PresetName, Preset> = {
  stripe,
  shopify,
  github,
  'standard-webhooks': standardWebhooks,
  woocommerce,
  paddle,
  chargebee,
  recurly,
  lago,
  revenuecat,
  custom,
}

export function findPreset(name: string | null): Preset | null {
  return name !== null && Object.hasOwn(PRESETS, name) ? PRESETS[name as PresetName] : null
}

type Signing = {
  secret: string
  body: string
  at: Date
  /** The header of Kontor's own signature. */
  signatureHeader: string
  /** The delivery id, if the signature covers it. */
  id: string
}

type Sign = (signing: Signing) => Record<string, string>

const hmac = (secret: string | Buffer, ...parts: string[]): Hmac =>
  parts.reduce((mac, part) => mac.update(part), createHmac('sha256', secret))
const seconds = (at: Date) => String(Math.floor(at.getTime() / 1000))

/** The signature of each provider; null: only the source's settings describe it. */
const SIGNATURES: Record<PresetName, Sign | null> = {
  stripe: ({ secret, body, at }) => ({ 'stripe-signature': timestamped(secret, body, at) }),
  shopify: ({ secret, body }) => ({ 'x-shopify-hmac-sha256': hmac(secret, body).digest('base64') }),
  github: ({ secret, body }) => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body).digest('hex')}` }),
  'standard-webhooks': ({ secret, body, at, id }) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    const signature = hmac(key, `${id}.${seconds(at)}.`, body).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': seconds(at), 'webhook-signature': `v1,${signature}` }
  },
  woocommerce: ({ secret, body }) => ({ 'x-wc-webhook-signature': hmac(secret, body).digest('base64') }),
  paddle: ({ secret, body, at }) => ({
    'paddle-signature': `ts=${seconds(at)};h1=${hmac(secret, `${seconds(at)}:`, body).digest('hex')}`,
  }),
  chargebee: ({ secret }) => ({ authorization: `Basic ${Buffer.from(secret).toString('base64')}` }),
  recurly: ({ secret, body, at }) => ({
    'recurly-signature': `${at.getTime()},${hmac(secret, `${at.getTime()}.`, body).digest('hex')}`,
  }),
  lago: ({ secret, body }) => ({ 'x-lago-signature': hmac(secret, body).digest('base64') }),
  revenuecat: ({ secret }) => ({ authorization: secret }),
  custom: null,
}

/** The signature headers of a sender with this secret; null: the preset does not define them. */
export function signedHeaders(preset: PresetName | null, signing: Signing): Record<string, string> | null {
  if (preset !== null) return SIGNATURES[preset]?.(signing) ?? null
  return { [signing.signatureHeader]: timestamped(signing.secret, signing.body, signing.at) }
}

function timestamped(secret: string, body: string, at: Date): string {
  return `t=${seconds(at)},v1=${hmac(secret, `${seconds(at)}.`, body).digest('hex')}`
}
