import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_CONVERSION_TYPES, orderConversion, readConversion } from '../../src/domain/conversions/conversions.ts'
import { inspect, normalize, openBody } from '../../src/domain/events/normalize/normalize.ts'
import type { EventContext } from '../../src/domain/events/types.ts'
import { readTouch } from '../../src/domain/identity/attribution.ts'
import { findMentions, suppressibleIdentifiers } from '../../src/domain/identity/erasure.ts'
import {
  contactIdentifiers,
  eventIdentifiers,
  orderIdentifiers,
  parseEmail,
} from '../../src/domain/identity/identifiers.ts'
import { findPreset, PRESET_NAMES } from '../../src/domain/inbound/presets.ts'
import { signingSecret, verifySignature } from '../../src/domain/inbound/signatures.ts'
import { ENTITY_TYPES, type RecordWrite, readChange } from '../../src/domain/records/records.ts'
import { withoutCredentials } from '../../src/domain/tenants/credentials.ts'
import { headerWithoutAddresses, withoutAddresses } from '../../src/domain/tenants/ip-addresses.ts'
import { parseTimestamp } from '../../src/domain/time.ts'
import { waitSeconds } from '../../src/http/wait.ts'
import { cdpContext, ENTRY_ID, inboundContext, RECEIVED_AT, trackContext } from '../domain/events/received.ts'
import { isLong } from '../long.ts'

/** What backtracks in a quadratic pattern: runs of one kind of character, and what makes the match fail after them. */
const RUNS = [
  ...'. @ a. a@ , 0 1. %40 : 1: / " \\ ( < & = - ; ? xn-- v1= utm_source= http:// password "secret":" mailto:'.split(
    ' ',
  ),
  ...[' ', '\t', '\u200b', '\u0301', 'ß', '😀'],
]
const ENDS = ['', 'x@y.z!\u0000']
const PLAIN = 'lorem ipsum '

/** An event has at most 64 KiB. A third of that shows the same in a third of the time. Headers have at most 16 KiB together. */
const FIELD_LENGTH = isLong ? 60_000 : 20_000
const HEADER_LENGTH = 15_000
/** Far above the noise, far below quadratic: 20,000 characters take 20,000 times as long then. */
const MAX_RATIO = 20
const MIN_MS = 2

const repeated = (run: string, length: number) => run.repeat(Math.ceil(length / run.length)).slice(0, length)

/** The processor time of the fastest of up to three runs. */
function cpuMs(work: () => void, enoughMs: number): number {
  let best = Infinity
  for (let run = 0; run < 3 && best > enoughMs; run++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1_000)
  }
  return best
}

/** Feeds `read` every hostile text of this length, and compares with plain text of the same length. */
function assertLinear(name: string, length: number, read: (text: string) => unknown): void {
  const plain = repeated(PLAIN, length)
  const allowedMs =
    MAX_RATIO *
    Math.max(
      MIN_MS,
      cpuMs(() => read(plain), 0),
    )
  for (const run of RUNS)
    for (const end of ENDS) {
      const text = repeated(run, length - end.length) + end
      const ms = cpuMs(() => read(text), allowedMs)
      assert.ok(ms <= allowedMs, `${name}: ${ms} ms for ${JSON.stringify(run)} before ${JSON.stringify(end)}`)
    }
}

/** An object with `value` at a dotted path. */
const at = (path: string, value: unknown): object =>
  path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object

const CONVERSIONS = new Set([...DEFAULT_CONVERSION_TYPES, 'identify', 'x'])

/** Everything that intake and the pipeline compute from an event before they write it. */
function readEvents(body: object, context: EventContext): void {
  const text = JSON.stringify(body)
  inspect(openBody(text), context)
  for (const mode of ['truncate', 'drop'] as const) withoutAddresses(mode, text)
  const { events } = normalize({ entryId: ENTRY_ID, receivedAt: RECEIVED_AT, body: text, context })
  for (const event of events) {
    eventIdentifiers(event)
    suppressibleIdentifiers(event)
    readTouch(event)
    readConversion(event, CONVERSIONS)
  }
}

const SUBJECT = [
  'email',
  'page',
  'url',
  'referrer',
  'order_id',
  'amount',
  'currency',
  'contactId',
  'name',
  'ip',
  'client_ip',
  'id',
]

const ROUTES: [route: string, context: EventContext, base: object, fields: string[]][] = [
  [
    'track',
    trackContext,
    { event_type: 'convert', data: {} },
    [
      'event_type',
      'visitor',
      'session_id',
      'user_id',
      'event_id',
      'occurred_at',
      'other',
      ...SUBJECT.map(f => `data.${f}`),
    ],
  ],
  ...(['track', 'identify'] as const).map(
    kind =>
      [
        `CDP ${kind}`,
        cdpContext(kind),
        { event: 'convert' },
        [
          ...['event', 'messageId', 'anonymousId', 'userId', 'previousId', 'timestamp', 'sentAt', 'traits.email'],
          ...['context.traits.email', 'context.userAgent', 'context.ip', 'context.page.url', 'context.page.search'],
          ...[
            'context.page.referrer',
            'context.campaign.source',
            'context.sessionId',
            ...SUBJECT.map(f => `properties.${f}`),
          ],
        ],
      ] as [string, EventContext, object, string[]],
  ),
  [
    'webhook',
    inboundContext(),
    { event_type: 'x' },
    ['inbound_event_id', 'event_type', 'occurred_at', 'visitor', ...SUBJECT.map(field => `payload.${field}`)],
  ],
  ...(['stripe', 'shopify', 'chargebee', 'paddle'] as const).map(
    preset =>
      [
        `webhook of ${preset}`,
        inboundContext({ preset }),
        { type: 'invoice.paid', object: 'event', id: 'evt_1', created: 1, event_type: 'invoice.paid' },
        [
          'id',
          'email',
          'data.object.customer_email',
          'data.object.id',
          'data.customer_id',
          'content.customer.email',
          'total_price',
        ],
      ] as [string, EventContext, object, string[]],
  ),
]

for (const [route, context, base, fields] of ROUTES)
  test(`${route}: the time for an event does not depend on its characters`, () => {
    for (const field of fields)
      assertLinear(field, FIELD_LENGTH, text => readEvents({ ...base, ...at(field, text) }, context))
  })

test('batch: the time for a shared context does not depend on its characters', () => {
  const batch = Array.from({ length: 200 }, (_, index) => ({ type: 'identify', messageId: `m-${index}` }))
  for (const field of ['traits.email', 'userAgent', 'ip', 'page.url'])
    assertLinear(field, 1_000, text => readEvents({ batch, context: at(field, text) }, cdpContext('batch')))
})

test('records: the time for a write does not depend on its characters', () => {
  const base = { id: 'r-1', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
  const fields = [
    'id',
    'externalId',
    'sourceUpdatedAt',
    ...[...SUBJECT, 'sku', 'code', 'visitor'].map(f => `data.${f}`),
  ]
  for (const entityType of ENTITY_TYPES)
    for (const field of fields)
      assertLinear(`${entityType} ${field}`, FIELD_LENGTH, value => {
        const body = { ...base, ...at(field, value), entityType }
        const text = JSON.stringify(body)
        if (field === 'sourceUpdatedAt') return parseTimestamp(value)
        const change = readChange({ op: 'write', entityType }, text) as RecordWrite
        contactIdentifiers(change.id, change.data)
        orderIdentifiers(change.data)
        orderConversion(change.data)
      })
})

test('headers: the time to read one does not depend on its characters', () => {
  const request = { body: Buffer.from('{}'), secrets: [signingSecret('s'.repeat(32))], now: RECEIVED_AT }
  assertLinear('prefer', HEADER_LENGTH, text => waitSeconds(text))
  for (const name of ['user-agent', 'x-forwarded-for', 'via', 'referer'])
    for (const mode of ['truncate', 'drop'] as const)
      assertLinear(name, HEADER_LENGTH, text => headerWithoutAddresses(mode, name, text))
  assertLinear('x-service-signature', HEADER_LENGTH, header =>
    verifySignature({ ...request, header, requireTimestamped: false }),
  )
  for (const preset of PRESET_NAMES)
    assertLinear(preset, HEADER_LENGTH, text => {
      const headers = new Proxy({}, { get: () => text })
      findPreset(preset)!.verify({ ...request, headers, signature: null } as never)
    })
})

test('stored texts: the time to search one does not depend on its characters', () => {
  assertLinear('e-mail address', FIELD_LENGTH, parseEmail)
  assertLinear('mentions', FIELD_LENGTH, findMentions)
  assertLinear('credentials', 4_000, withoutCredentials)
})
