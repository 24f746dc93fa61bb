import { DESTINATION_SETTINGS, DestinationTypeField } from '../../admin/destinations.ts'
import { SECRET_FIELDS, SOURCE_SETTINGS } from '../../admin/sources.ts'
import { ConversionTypes, EventsFloor, IpAddresses } from '../../admin/tenants.ts'
import { SOURCE_TYPES } from '../../domain/events/types.ts'
import { isObject, type JsonObject } from '../../domain/json/json.ts'
import { Nullable, OpenObject } from '../../domain/shapes.ts'
import { MAX_NETWORKS } from '../../domain/tenants/addresses.ts'
import { KEY_KINDS, KeyLimits, ROLE_RIGHTS, ROLES, SCOPES } from '../../domain/tenants/keys.ts'
import { WHOLE_DAY_UTC } from '../../domain/time-zone.ts'
import { type TSchema, Type } from '../../domain/typebox.ts'
import { problems } from '../problems.ts'

/** A complete list: none of these lists is too large for one response. */
export const List = (Item: TSchema) => Type.Object({ results: Type.Array(Item), next_cursor: Type.Null() })

export const ById = Type.Object({
  id: Type.String({ description: 'The id of the object. For a tenant, the id or the name' }),
})

/**
 * Options of a body that rejects unknown fields. Admin requests revoke keys and erase people: a misspelled `dry_run`,
 * `overlap_hours` or `tenant` must be rejected, not ignored.
 */
export const whole = { additionalProperties: false } as const

export const ofTenant = Type.Object({ tenant: Type.String({ description: 'Id or name' }) })
export const byTenant = { tenant: Type.Optional(Type.String({ description: 'Id or name; default: all tenants' })) }
export const bySource = { source: Type.Optional(Type.String({ description: 'Id of a source: src_…' })) }
export const timeRange = {
  since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
  until: Type.Optional(Type.String({ format: 'timestamp', description: `Inclusive. ${WHOLE_DAY_UTC}` })),
}

export const NewTenantBody = Type.Object(
  { name: Type.String() },
  { title: 'NewTenant', description: 'A tenant to create', ...whole, examples: [{ name: 'acme' }] },
)
export const TenantChangeBody = Type.Object(
  {
    conversion_types: Type.Optional(ConversionTypes),
    events_floor: Type.Optional(EventsFloor),
    ip_addresses: Type.Optional(IpAddresses),
  },
  {
    title: 'TenantChange',
    description: 'The settings of a tenant to change',
    ...{ ...whole, minProperties: 1 },
    examples: [{ conversion_types: ['purchase', 'demo.booked'], events_floor: '3650d', ip_addresses: 'truncate' }],
  },
)

export const PolicyBody = OpenObject({
  description:
    'Any of pause, trial_on_paying, past_due_grace_days, time_zone, net_within_day, retention_base, reporting_currency, channels, plan_groups; other names are rejected',
  minProperties: 1,
  maxProperties: 100,
  examples: [{ pause: 'keep', time_zone: 'Europe/Berlin' }],
})

const { origins, event_types, rate_limit } = KeyLimits.properties
const keyLimits = {
  origins: Type.Optional(origins),
  event_types: Type.Optional(event_types),
  rate_limit: Type.Optional(rate_limit),
}
export const KeyChangeBody = Type.Object(keyLimits, {
  title: 'KeyChange',
  description: 'The limits of a tracking key to change',
  ...whole,
  examples: [{ origins: ['https://shop.example'], rate_limit: { events: 100, per_seconds: 1 } }],
})

export const NewKeyBody = Type.Object(
  {
    tenant: Type.Optional(
      Nullable(
        Type.String({ description: 'Id or name; for an admin key: the only tenant it can access (default: all)' }),
      ),
    ),
    kind: Type.Enum([...KEY_KINDS]),
    name: Type.Optional(Nullable(Type.String({ description: 'What the key is for; at most 100 characters' }))),
    scopes: Type.Optional(
      Type.Array(Type.String(), { maxItems: 100, description: `For a private key; default: ${SCOPES.join(', ')}` }),
    ),
    server: Type.Optional(
      Type.Boolean({
        description:
          'A server key: a tracking key whose events create verified links between identifiers and can merge people. Keep it secret',
      }),
    ),
    role: Type.Optional(
      Type.Enum([...ROLES], {
        description: `For an admin key (default: admin): ${ROLE_RIGHTS}`,
      }),
    ),
    allowed_addresses: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: MAX_NETWORKS,
        description: 'For a private or admin key: IP addresses and networks (CIDR) from which it is accepted',
      }),
    ),
    ...keyLimits,
    expires_at: Type.Optional(Nullable(Type.String({ format: 'timestamp' }))),
  },
  {
    title: 'NewKey',
    description: 'A key to create',
    ...whole,
    examples: [{ tenant: 'acme', kind: 'private', scopes: ['orders:read', 'orders:write'] }],
  },
)

export const KeyRotationBody = Type.Object(
  {
    overlap_hours: Type.Optional(
      Type.Number({ description: 'How long the previous value remains valid; default: 24' }),
    ),
  },
  {
    title: 'KeyRotation',
    description: 'How long the previous key remains valid',
    ...whole,
    examples: [{ overlap_hours: 24 }],
  },
)
export const RevocationBody = Type.Object(
  {
    with_made: Type.Optional(
      Type.Boolean({
        description: 'Also revoke keys and disable sources and destinations that were created with it. Default: false',
      }),
    ),
  },
  { title: 'KeyRevocation', description: 'What else to revoke', ...whole, examples: [{ with_made: true }] },
)

const optional = (fields: Record<string, TSchema>) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)]))

export const NewSourceBody = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    type: Type.Enum([...SOURCE_TYPES]),
    ...optional(SOURCE_SETTINGS),
    token: Type.Optional(SECRET_FIELDS.token.schema),
    signing_secret: Type.Optional(SECRET_FIELDS.signing_secret.schema),
  },
  {
    title: 'NewSource',
    description: 'A source to create',
    examples: [{ tenant: 'acme', type: 'webhook', name: 'shop', signing_secret: 'generate' }],
  },
)
export const SourceChangeBody = Type.Object(optional(SOURCE_SETTINGS), {
  title: 'SourceChange',
  description: 'The settings of a source to change',
  examples: [{ rate_limit: { events: 100, per_seconds: 60 } }],
})

const { name, what, enabled, headers, ...destination } = DESTINATION_SETTINGS
const { url, event_types: types, alert_rules } = destination
const destinationSettings = optional({ name, what, event_types: types, alert_rules, enabled, headers })
export const NewDestinationBody = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    type: Type.Optional(DestinationTypeField),
    url,
    ...destinationSettings,
  },
  {
    title: 'NewDestination',
    description: 'A destination to create',
    examples: [{ tenant: 'acme', url: 'https://example.com/hooks', what: ['events'], event_types: ['order.*'] }],
  },
)
export const DestinationChangeBody = Type.Object(
  { url: Type.Optional(url), ...destinationSettings },
  {
    title: 'DestinationChange',
    description: 'The settings of a destination to change',
    examples: [{ what: ['events', 'records'] }],
  },
)

/** The body of a request whose settings are checked by admin. */
export function settingsIn(body: unknown): JsonObject {
  if (!isObject(body)) throw problems.invalid([{ pointer: '', message: 'must be an object' }])
  return body
}

export const RotationBody = Type.Object(
  {
    what: Type.Enum(['token', 'signing_secret']),
    value: Type.Optional(Type.String({ description: 'The new value; default: a random one' })),
    overlap_hours: Type.Optional(
      Type.Number({ description: 'How long the previous value remains valid; default: 24' }),
    ),
  },
  {
    title: 'CredentialRotation',
    description: 'The credential to rotate',
    ...whole,
    examples: [{ what: 'token', overlap_hours: 24 }],
  },
)
