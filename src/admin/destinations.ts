import type pg from 'pg'
import { RULE_NAMES, type Rule } from '../domain/alerts/rules.ts'
import { isMailUrl, mailAddressOf, PRIVATE, validateDestinationUrl } from '../domain/destinations/addresses.ts'
import {
  DESTINATION_TYPES,
  type DestinationType,
  defaultType,
  isWanted,
  messageId,
  READABLE_WHATS,
  WHATS,
  type What,
} from '../domain/destinations/destinations.ts'
import { MAX_EVENT_TYPE_LENGTH } from '../domain/events/types.ts'
import { newEntryId } from '../domain/ids.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { DEFAULT_OVERLAP_HOURS } from '../domain/tenants/credentials.ts'
import { hintOf, newPublicId, newSigningSecret } from '../domain/tenants/keys.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { HOUR_MS, parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { ValidationError } from '../domain/validation-error.ts'
import type { MailSettings } from '../pipeline/deliveries/mail.ts'
import { buildBody, buildTarget, leadsToPrivate, openHeaders, openSender } from '../pipeline/deliveries/send.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import {
  type Destination,
  deleteDestination,
  findDestination,
  insertDestination,
  listDestinations,
  lockDestination,
  readDestinationState,
  updateDestination,
} from '../store/destinations/destinations.ts'
import {
  type Attempt,
  type AttemptPage,
  findMessage,
  listAttempts,
  requeueMessages,
  retryQueued,
} from '../store/destinations/outbox.ts'
import { type Actor, CreatedBy, canSee, requireTenant, SYSTEM } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, notFound, throwIfInvalid } from './error.ts'
import type { Secrets } from './secrets.ts'
import { validateOverlap, validateSettings } from './settings.ts'

type Unchecked = Record<string, unknown>
type Deps = {
  pool: pg.Pool
  secrets: Secrets
  actor: Actor
  allowPrivate: boolean
  mail: MailSettings | null
  consoleUrl: string | null
}

// Each event of the tenant is queued for every destination, in the transaction that applies the event.
const MAX_DESTINATIONS = 100

export function destinationAdmin(deps: Deps) {
  const { pool, secrets, actor } = deps

  async function own(id: string): Promise<Destination> {
    const destination = await findDestination(pool, id)
    if (destination === null || !canSee(actor, destination.tenantId)) throw notFound('destination', id)
    return destination
  }

  async function change(
    id: string,
    verb: string,
    decide: (destination: Destination) => Partial<Destination>,
  ): Promise<DestinationView> {
    const changed = await inTransaction(pool, async tx => {
      const destination = await lockDestination(tx, id)
      if (destination === null || !canSee(actor, destination.tenantId)) throw notFound('destination', id)
      const changed = await updateDestination(tx, destination, decide(destination))
      const [before, after] = [destination, changed].map(state => toAudited(state, secrets))
      const { tenantId } = destination
      await recordChange(tx, actor, { action: `destination.${verb}`, target: id, tenantId, before, after })
      return changed
    })
    return toView(pool, changed, secrets)
  }

  return {
    async create({ tenant, ...input }: Unchecked & { tenant: string }): Promise<CreatedDestination> {
      throwIfInvalid([...(await validateInput(input, deps)), ...validateRequired(tenant, input)])
      const { id: tenantId } = await requireTenant(pool, actor, tenant)
      return inTransaction(pool, tx => createDestination(tx, deps, tenantId, input as NewDestinationSettings))
    },
    async list(tenant: string): Promise<DestinationView[]> {
      const found = await listDestinations(pool, (await requireTenant(pool, actor, tenant)).id)
      return Promise.all(found.map(destination => toView(pool, destination, secrets)))
    },
    async show(id: string): Promise<DestinationView> {
      return toView(pool, await own(id), secrets)
    },
    async update(id: string, input: Unchecked): Promise<DestinationView> {
      const fixed = input.type === undefined ? [] : [{ pointer: '/type', message: 'cannot be changed' }]
      throwIfInvalid([...fixed, ...(await validateInput(input, deps))])
      const { event_types: eventTypes, alert_rules: alertRules, headers, ...settings } = input as DestinationSettings
      return change(id, 'update', destination => {
        const changes = {
          ...Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)),
          eventTypes: eventTypes ?? destination.eventTypes,
          alertRules: alertRules ?? destination.alertRules,
          headers: headers === undefined ? destination.headers : encryptHeaders(headers, secrets),
        }
        throwIfInvalid(validateType({ ...destination, ...changes }))
        return changes
      })
    },
    setEnabled: (id: string, enabled: boolean): Promise<DestinationView> =>
      change(id, enabled ? 'enable' : 'disable', () => ({ enabled, disabledReason: null })),
    /** The previous secret also signs messages during the overlap. */
    async rotate(
      id: string,
      { overlapHours = DEFAULT_OVERLAP_HOURS }: { overlapHours?: number | undefined },
    ): Promise<DestinationView & { secret: string }> {
      throwIfInvalid(validateOverlap(overlapHours))
      const secret = newSigningSecret()
      const until = new Date((await databaseNow(pool)).getTime() + overlapHours * HOUR_MS).toISOString()
      const rotated = await change(id, 'rotate', destination => {
        requireSigned(destination)
        return {
          secrets: [
            { sealed: secrets.seal(secret), hint: hintOf(secret), expires_at: null },
            ...(overlapHours > 0 ? [{ ...destination.secrets[0]!, expires_at: until }] : []),
          ],
        }
      })
      return { ...rotated, secret }
    },
    async delete(id: string): Promise<void> {
      await inTransaction(pool, async tx => {
        const destination = await lockDestination(tx, id)
        if (destination === null || !canSee(actor, destination.tenantId)) throw notFound('destination', id)
        await deleteDestination(tx, id)
        const { tenantId } = destination
        const before = toAudited(destination, secrets)
        await recordChange(tx, actor, { action: 'destination.delete', target: id, tenantId, before })
      })
    },
    /** Sends a message now and returns the outcome. It is not retried and not listed among the deliveries. */
    async test(id: string): Promise<DestinationTest> {
      return sendTest(deps, await own(id), 'This is a test message for this destination.')
    },
    /** Sends a test message to every enabled destination that receives the alerts of a rule. */
    async testRule(tenant: string, rule: string): Promise<DestinationTest[]> {
      throwIfInvalid(validateSettings({ rule }, RULE_FIELD))
      const { id } = await requireTenant(pool, actor, tenant)
      const wanted = (await listDestinations(pool, id)).filter(
        destination => destination.enabled && isWanted(destination, { ...ALERT, rule: rule as Rule }),
      )
      const text = `This is a test of the alert rule ${rule}. Alerts of this rule will arrive here.`
      return Promise.all(wanted.map(destination => sendTest(deps, destination, text)))
    },
    async deliveries(id: string, page: AttemptPage): Promise<DeliveryView[]> {
      const { tenantId } = await own(id)
      return (await listAttempts(pool, tenantId, id, page)).map(deliveryView)
    },
    /** What is or was sent; null: the message has expired, or was deleted with a person. */
    async message(id: string, message: string): Promise<SentMessage> {
      const destination = await own(id)
      const found = await findMessage(pool, destination.tenantId, message)
      return { id: messageId(message), body: found && buildBody(destination, found, deps.consoleUrl) }
    },
    /** Attempts all waiting messages now. */
    async retry(id: string): Promise<RetriedMessages> {
      const destination = await own(id)
      requireEnabled(destination)
      const retried = await retryQueued(pool, id)
      await recordChange(pool, actor, {
        ...{ action: 'destination.retry', target: id, tenantId: destination.tenantId },
        after: { id, retried },
      })
      return { id, retried }
    },
    /** Queues all messages since then again, delivered or not. They keep their ids. */
    async replay(id: string, since: string): Promise<{ id: string; since: string; queued: number }> {
      const from = parseTimestamp(since)
      if (from === null) throwIfInvalid([{ pointer: '/since', message: `must be ${TIME_FORMAT}` }])
      const destination = await own(id)
      requireEnabled(destination)
      let queued = 0
      let after: { at: string; id: string } | null = null
      for (;;) {
        const portion = await requeueMessages(pool, destination, { since: from!, after })
        if (portion === null) break
        queued += portion.queued
        after = portion.last
      }
      const result = { id, since: from!.toISOString(), queued }
      const { tenantId } = destination
      const { since: _, ...facts } = result
      await recordChange(pool, actor, {
        ...{ action: 'destination.replay', target: id, tenantId },
        after: { ...facts, since: result.since },
      })
      return result
    },
  }
}

const ALERT = { what: 'alerts', type: 'alert.raised' } as const

async function sendTest(deps: Deps, destination: Destination, text: string): Promise<DestinationTest> {
  const at = await databaseNow(deps.pool)
  const id = newEntryId(at.getTime())
  const data = JSON.stringify({ message: text, destination: destination.id })
  const sender = openSender({ ...deps, now: () => at })
  try {
    const target = buildTarget(destination, deps.secrets, at)
    const sent = await sender.send(target, { id, at, type: 'kontor.test', data })
    return {
      ...{ ok: sent.isDelivered, destination: destination.id, message_id: messageId(id), url: destination.url },
      ...{ status: sent.status, error: sent.error, response: sent.response, duration_ms: sent.durationMs },
    }
  } finally {
    sender.close()
  }
}

function requireEnabled({ enabled }: Destination): void {
  if (enabled) return
  const message = 'The destination is disabled. Enable it, then repeat this request.'
  throw new AdminError('conflict', 'destination_disabled', message)
}

function requireSigned(destination: Destination): void {
  if (isSigned(destination)) return
  const message = 'This destination has no secret. Only messages to destinations of type webhook are signed.'
  throw new AdminError('conflict', 'destination_without_secret', message)
}

export const SentMessage = Type.Object(
  {
    id: Type.String(),
    body: Nullable(Type.String({ description: 'The body as sent; null: the message has expired or was deleted' })),
  },
  {
    examples: [
      {
        id: 'msg_019c1234-5678-7000-8abc-def012345678',
        body: '{"id":"msg_019c1234-5678-7000-8abc-def012345678","type":"event.page_view","timestamp":"2026-01-31T09:30:00.000Z","data":{}}',
      },
    ],
  },
)
export type SentMessage = Static<typeof SentMessage>

export const RetriedMessages = Type.Object(
  { id: Type.String(), retried: Type.Integer({ description: 'Messages that waited for a retry' }) },
  { examples: [{ id: 'dst_4KmT7cVxYp2wRb9L', retried: 3 }] },
)
export type RetriedMessages = Static<typeof RetriedMessages>

/** Kontor itself disables the destination: the audit log names the actor "system". */
export async function disableFailing(pool: pg.Pool, id: string, reason: string): Promise<void> {
  await inTransaction(pool, tx => disableDestination(tx, SYSTEM, id, reason))
}

export async function disableDestination(tx: Db, actor: Actor, id: string, reason: string | null): Promise<void> {
  const destination = await lockDestination(tx, id)
  if (destination === null || !destination.enabled) return
  await updateDestination(tx, destination, { enabled: false, disabledReason: reason })
  await recordChange(tx, actor, {
    ...{ action: 'destination.disable', target: id, tenantId: destination.tenantId },
    before: { enabled: true, disabled_reason: null },
    after: { enabled: false, disabled_reason: reason },
  })
}

async function createDestination(
  tx: Db,
  { actor, secrets }: Deps,
  tenantId: number,
  input: NewDestinationSettings,
): Promise<CreatedDestination> {
  const url = input.url!
  const type = input.type ?? defaultType(url)
  const what = input.what ?? (type === 'webhook' ? ['events', 'conversions'] : ['alerts'])
  throwIfInvalid(validateType({ type, url, what }))
  if ((await listDestinations(tx, tenantId)).length >= MAX_DESTINATIONS)
    throw new AdminError(
      'conflict',
      'too_many_destinations',
      `A tenant can have at most ${MAX_DESTINATIONS} destinations. Delete one first.`,
    )
  const secret = isSigned({ type }) ? newSigningSecret() : null
  const destination = await insertDestination(tx, {
    id: newPublicId('dst'),
    tenantId,
    name: input.name ?? (isMailUrl(url) ? mailAddressOf(url) : new URL(url).hostname).slice(0, MAX_NAME),
    ...{ type, url, what },
    eventTypes: input.event_types ?? [],
    alertRules: input.alert_rules ?? [],
    enabled: input.enabled ?? true,
    secrets: secret === null ? [] : [{ sealed: secrets.seal(secret), hint: hintOf(secret), expires_at: null }],
    headers: encryptHeaders(input.headers ?? {}, secrets),
    createdBy: actor.name,
  })
  const after = toAudited(destination, secrets)
  await recordChange(tx, actor, { action: 'destination.create', target: destination.id, tenantId, after })
  return { ...(await toView(tx, destination, secrets)), secret }
}

/** People cannot check a signature: e-mails and chat messages have none. */
function isSigned({ type }: Pick<Destination, 'type'>): boolean {
  return type === 'webhook'
}

function encryptHeaders(headers: Record<string, string>, secrets: Secrets): string | null {
  return Object.keys(headers).length === 0 ? null : secrets.seal(JSON.stringify(headers))
}

function validateRequired(tenant: unknown, { url }: Unchecked): ValidationError[] {
  const errors: ValidationError[] = []
  if (typeof tenant !== 'string' || tenant === '')
    errors.push({ pointer: '/tenant', message: 'is required: the id or name of a tenant' })
  if (url === undefined) errors.push({ pointer: '/url', message: 'is required' })
  return errors
}

/** Errors that concern the type of the destination. */
function validateType({ type, url, what }: Pick<Destination, 'type' | 'url' | 'what'>): ValidationError[] {
  const errors: ValidationError[] = []
  if ((type === 'email') !== isMailUrl(url))
    errors.push({
      pointer: '/url',
      message:
        type === 'email' ? 'must begin with mailto: for type email' : `must begin with https:// for type ${type}`,
    })
  if (type !== 'webhook' && what.some(name => !READABLE_WHATS.includes(name)))
    errors.push({ pointer: '/what', message: `must contain only ${READABLE_WHATS.join(' and ')} for type ${type}` })
  return errors
}

async function validateInput(input: Unchecked, { allowPrivate, mail }: Deps): Promise<ValidationError[]> {
  const errors = validateSettings(input, DESTINATION_FIELDS)
  const { url } = input
  if (typeof url !== 'string' || errors.some(({ pointer }) => pointer === '/url')) return errors
  const requirement = validateDestinationUrl(url, { allowPrivate })
  // Every connection checks this again, because a host name may resolve to another address later.
  const isChecked = requirement === null && !allowPrivate && !isMailUrl(url)
  const isPrivate = isChecked && (await leadsToPrivate(new URL(url).hostname))
  if (requirement !== null || isPrivate) errors.push({ pointer: '/url', message: `must ${requirement ?? PRIVATE}` })
  else if (isMailUrl(url) && mail === null)
    errors.push({ pointer: '/url', message: 'must not be an e-mail address, because KONTOR_SMTP_URL is not set' })
  return errors
}

/** Only the names of headers: a name does not show whether its value is secret. */
function maskHeaders(destination: Destination, secrets: Secrets): Record<string, string> {
  return Object.fromEntries(Object.keys(openHeaders(destination, secrets)).map(name => [name, '…']))
}

/** The fields that the audit log records. */
function toAudited(destination: Destination, secrets: Secrets) {
  const { id, tenantId, name, type, url, what, enabled } = destination
  return {
    ...{
      id,
      tenant: publicTenantId(tenantId),
      name,
      type,
      url,
      what,
      event_types: destination.eventTypes,
      alert_rules: destination.alertRules,
      enabled,
    },
    disabled_reason: destination.disabledReason,
    headers: maskHeaders(destination, secrets),
    secrets: destination.secrets.map(({ hint, expires_at }) => ({ hint, expires_at })),
  }
}

async function toView(db: Db, destination: Destination, secrets: Secrets): Promise<DestinationView> {
  const state = await readDestinationState(db, destination.id)
  const time = (at: Date | null) => at?.toISOString() ?? null
  return {
    ...toAudited(destination, secrets),
    health: {
      status: !destination.enabled ? 'disabled' : state.failingSince ? 'failing' : 'ok',
      pending: state.pending,
      failing_since: time(state.failingSince),
      last_attempt_at: time(state.lastAttemptAt),
      last_success_at: time(state.lastSuccessAt),
      last_status: state.lastStatus,
      last_error: state.lastError,
    },
    created_by: destination.createdBy,
    created_at: destination.createdAt.toISOString(),
    updated_at: destination.updatedAt.toISOString(),
  }
}

function deliveryView(attempt: Attempt): DeliveryView {
  return {
    id: messageId(attempt.id),
    type: attempt.type,
    outcome: attempt.outcome,
    attempt: attempt.attempt,
    attempted_at: attempt.attemptedAt.toISOString(),
    status: attempt.status,
    error: attempt.error,
    response: attempt.response,
    duration_ms: attempt.durationMs,
    next_attempt_at: attempt.nextAttemptAt?.toISOString() ?? null,
  }
}

// Headers that the sender sets itself, or that would change how a request is parsed.
const OWN_HEADERS = new Set(
  `host content-length content-type content-encoding transfer-encoding
   connection expect upgrade te trailer keep-alive`.split(/\s+/),
)
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$/i
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,2000}$/

function isOwnHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return lower.startsWith('webhook-') || OWN_HEADERS.has(lower)
}

const MAX_NAME = 100
const AlertRule = Type.Enum([...RULE_NAMES])
const RULE_FIELD = { rule: { schema: AlertRule, expects: `one of ${RULE_NAMES.join(', ')}` } }

/** The settings of a destination. The schemas of the admin API and the validation here use the same definitions. */
const DESTINATION_FIELDS = {
  name: { schema: Type.String({ minLength: 1, maxLength: MAX_NAME }), expects: 'a name of 1 to 100 characters' },
  type: { schema: Type.Enum([...DESTINATION_TYPES]), expects: `one of ${DESTINATION_TYPES.join(', ')}` },
  url: {
    schema: Type.String({ minLength: 1, maxLength: 2_000 }),
    expects: 'a URL that begins with https:// or mailto:, for example https://example.com/hooks',
  },
  what: {
    schema: Type.Array(Type.Enum([...WHATS]), { minItems: 1, maxItems: WHATS.length, uniqueItems: true }),
    expects: `a list of ${WHATS.join(', ')}, with at least one item`,
  },
  event_types: {
    schema: Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH + 1 }), { maxItems: 100 }),
    expects: 'a list of up to 100 event types, exact (page_view) or a prefix (order.*); empty: all',
    check: (types: string[]) => types.every(type => !type.slice(0, -1).includes('*')),
  },
  alert_rules: {
    schema: Type.Array(AlertRule, { maxItems: RULE_NAMES.length, uniqueItems: true }),
    expects: `a list of ${RULE_NAMES.join(', ')}; empty: all`,
  },
  enabled: { schema: Type.Boolean(), expects: 'true or false' },
  headers: {
    schema: Type.Record(Type.String(), Type.String(), { maxProperties: 50 }),
    expects:
      'an object of up to 50 header names and one-line values, without host, webhook-*, content-* and connection headers',
    check: (headers: Record<string, string>) =>
      Object.entries(headers).every(
        ([name, value]) => HEADER_NAME.test(name) && !isOwnHeader(name) && HEADER_VALUE.test(value),
      ),
  },
}

export type DestinationSettings = {
  name?: string
  url?: string
  what?: What[]
  event_types?: string[]
  alert_rules?: Rule[]
  enabled?: boolean
  headers?: Record<string, string>
}
/** The type cannot be changed later. */
export type NewDestinationSettings = DestinationSettings & { type?: DestinationType }

/** The settings as documented schema properties. */
export const DESTINATION_SETTINGS = {
  name: DESTINATION_FIELDS.name.schema,
  url: Type.String({
    ...DESTINATION_FIELDS.url.schema,
    description:
      'https, or `mailto:` and one address for type email; private networks are rejected unless KONTOR_ALLOW_PRIVATE_DESTINATIONS=true',
  }),
  what: DESTINATION_FIELDS.what.schema,
  event_types: Type.Array(Type.String(), {
    description: 'Filters events by exact type or prefix (order.*); empty: all',
  }),
  alert_rules: Type.Array(AlertRule, { description: 'Filters alerts by rule; empty: all' }),
  enabled: DESTINATION_FIELDS.enabled.schema,
  headers: Type.Record(Type.String(), Type.String(), { description: 'Sent with every request. Values are shown as …' }),
}

export const DestinationTypeField = Type.Enum([...DESTINATION_TYPES], {
  description:
    'webhook: signed JSON. slack: `{"text": …}` to an incoming webhook of Slack or a compatible service. email: an e-mail; requires KONTOR_SMTP_URL. The last two receive only alerts and digests. Default: email for a `mailto:` URL, otherwise webhook',
})

const DESTINATION_EXAMPLE = {
  id: 'dst_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'warehouse',
  type: 'webhook',
  url: 'https://warehouse.example/hooks',
  what: ['events', 'conversions'],
  event_types: ['order.*'],
  alert_rules: [],
  enabled: true,
  headers: {},
  disabled_reason: null,
  secrets: [{ hint: '…x7Qe', expires_at: null }],
  health: {
    status: 'ok',
    pending: 0,
    failing_since: null,
    last_attempt_at: '2026-01-31T09:30:00.000Z',
    last_success_at: '2026-01-31T09:30:00.000Z',
    last_status: 200,
    last_error: null,
  },
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}

const destinationFields = {
  id: Type.String(),
  tenant: Type.String(),
  type: DestinationTypeField,
  ...DESTINATION_SETTINGS,
  disabled_reason: Nullable(
    Type.String({ description: 'Why Kontor disabled the destination; null: it is enabled, or a user disabled it' }),
  ),
  secrets: Type.Array(Type.Object({ hint: Type.String(), expires_at: NullableText }), {
    description:
      'Two during a rotation: messages are signed with both. Empty for e-mail and chat, which are not signed',
  }),
  health: Type.Object(
    {
      status: Type.Enum(['ok', 'failing', 'disabled']),
      pending: Type.Integer({ description: 'Messages waiting for delivery; counted up to 100,000' }),
      failing_since: NullableTimestamp,
      last_attempt_at: NullableTimestamp,
      last_success_at: NullableTimestamp,
      last_status: Nullable(Type.Integer()),
      last_error: NullableText,
    },
    { description: 'The state of its deliveries' },
  ),
  created_by: CreatedBy,
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const DestinationView = Type.Object(destinationFields, {
  title: 'Destination',
  description: 'Where Kontor sends events, records, alerts or digests: a webhook, a chat or an e-mail address',
  examples: [DESTINATION_EXAMPLE],
})
export type DestinationView = Static<typeof DestinationView>

/** The only response that contains the secret. */
export const CreatedDestination = Type.Object(
  {
    ...destinationFields,
    secret: Nullable(
      Type.String({ description: 'The secret that signs messages, shown only once; null for e-mail and chat' }),
    ),
  },
  {
    title: 'CreatedDestination',
    description: 'A destination with its secret, which is shown only once',
    examples: [{ ...DESTINATION_EXAMPLE, secret: 'whsec_9f…' }],
  },
)
export type CreatedDestination = Static<typeof CreatedDestination>

export const DestinationTest = Type.Object(
  {
    ok: Type.Boolean({
      description:
        'The response had a 2xx status and arrived within 15 seconds; for e-mail, the mail server accepted it',
    }),
    destination: Type.String({ description: 'Id of the destination' }),
    message_id: Type.String(),
    url: Type.String(),
    status: Nullable(Type.Integer()),
    error: NullableText,
    response: Nullable(Type.String({ description: 'The beginning of the response body' })),
    duration_ms: Type.Integer(),
  },
  { title: 'DestinationTest', description: 'The response of a destination to a test message' },
)
export type DestinationTest = Static<typeof DestinationTest>

export const DELIVERY_OUTCOMES = ['delivered', 'retrying', 'failed'] as const

/** One attempt to deliver a message. */
export const DeliveryView = Type.Object(
  {
    id: Type.String({ description: 'The webhook-id header: the same in every attempt' }),
    type: Type.String(),
    outcome: Type.Enum([...DELIVERY_OUTCOMES]),
    attempt: Type.Integer(),
    attempted_at: Timestamp,
    status: Nullable(Type.Integer({ description: 'null: there was no response' })),
    error: NullableText,
    response: Nullable(Type.String({ description: 'The beginning of the response body' })),
    duration_ms: Type.Integer(),
    next_attempt_at: NullableTimestamp,
  },
  { title: 'Delivery', description: 'One attempt to deliver a message' },
)
export type DeliveryView = Static<typeof DeliveryView>
