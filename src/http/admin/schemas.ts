import { type TSchema, Type } from 'typebox'
import { SECRET_FIELDS, SOURCE_FIELDS } from '../../admin/source-settings.ts'
import { SOURCE_TYPES } from '../../domain/events/events.ts'
import { Nullable, Timestamp } from '../../domain/shapes.ts'
import { SCOPES } from '../../domain/tenants/keys.ts'

/** Lists are whole: none of these grows beyond what one answer can carry. */
export const List = (Item: TSchema) => Type.Object({ results: Type.Array(Item), next_cursor: Type.Null() })

export const ById = Type.Object({ id: Type.String() })

export const byTenant = {
  tenant: Type.Optional(Type.String({ description: 'Id or name; default: all of them' })),
}
export const bySource = { source: Type.Optional(Type.String({ description: 'Id of a source: src_…' })) }

const TENANT_EXAMPLE = {
  id: 'ten_1',
  name: 'acme',
  conversion_types: null,
  created_at: '2026-01-31T09:30:00.000Z',
}
const ConversionTypes = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
    maxItems: 1000,
    description: 'Event types that count as conversions; null: the default list',
  }),
)

export const TenantBody = Type.Object(
  { id: Type.String(), name: Type.String(), conversion_types: ConversionTypes, created_at: Timestamp },
  { examples: [TENANT_EXAMPLE] },
)
export const NewTenantBody = Type.Object({ name: Type.String() }, { examples: [{ name: 'acme' }] })
export const TenantChangeBody = Type.Object(
  { conversion_types: ConversionTypes },
  { additionalProperties: false, examples: [{ conversion_types: ['purchase', 'demo.booked'] }] },
)

const KEY_EXAMPLE = {
  id: 'key_4fTzQ9aXw2LmN8pB',
  kind: 'private',
  scopes: ['orders:read', 'orders:write'],
  tenant: 'ten_1',
  hint: '…x7Qe',
  created_at: '2026-01-31T09:30:00.000Z',
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
}
const Kind = Type.Enum(['private', 'tracking', 'admin'])
const key = {
  id: Type.String(),
  kind: Kind,
  scopes: Type.Array(Type.Enum([...SCOPES])),
  tenant: Nullable(Type.String()),
  hint: Type.String({ description: 'How the key ends' }),
  created_at: Timestamp,
  expires_at: Nullable(Timestamp),
  revoked_at: Nullable(Timestamp),
  last_used_at: Nullable(Timestamp),
}
export const KeyBody = Type.Object(key, { examples: [KEY_EXAMPLE] })
export const CreatedKeyBody = Type.Object(
  { ...key, key: Type.String({ description: 'The key itself, this once' }) },
  { examples: [{ ...KEY_EXAMPLE, key: 'private-9f…' }] },
)
export const NewKeyBody = Type.Object(
  {
    tenant: Type.Optional(Nullable(Type.String({ description: 'Id or name; not for admin keys' }))),
    kind: Kind,
    scopes: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 100,
        description: `Of a private key; default: ${SCOPES.join(', ')}`,
      }),
    ),
    expires_at: Type.Optional(Nullable(Type.String({ format: 'timestamp' }))),
  },
  { examples: [{ tenant: 'acme', kind: 'private', scopes: ['orders:read', 'orders:write'] }] },
)

const CREDENTIAL = Type.Object({ hint: Type.String(), expires_at: Nullable(Timestamp) })
const settings = Object.fromEntries(
  Object.entries({ ...SOURCE_FIELDS }).map(([name, { schema, expects }]) => [
    name,
    { ...schema, description: `Must be ${expects}` },
  ]),
)
const optional = (fields: Record<string, TSchema>) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(schema)]))

const SOURCE_EXAMPLE = {
  id: 'src_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'shop',
  type: 'webhook',
  preset: null,
  enabled: true,
  path: '/ingest/inbound/src_4fTzQ9aXw2LmN8pB',
  event_type_override: { prefix: 'shop.' },
  event_id_path: null,
  require_timestamped_signature: false,
  rate_limit: { events: 6000, per_seconds: 60 },
  overflow: 'defer',
  max_body_bytes: 1_048_576,
  headers: [],
  tokens: [{ hint: '…x7Qe', expires_at: null }],
  signing_secrets: [],
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}
const source = {
  id: Type.String(),
  tenant: Type.String(),
  type: Type.Enum([...SOURCE_TYPES]),
  path: Type.String({ description: 'Where events are posted to' }),
  ...settings,
  tokens: Type.Array(CREDENTIAL),
  signing_secrets: Type.Array(CREDENTIAL),
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const SourceBody = Type.Object(source, { examples: [SOURCE_EXAMPLE] })
export const CreatedSourceBody = Type.Object(
  {
    ...source,
    token: Type.String({ description: 'The token itself, this once' }),
    signing_secret: Nullable(Type.String({ description: 'The secret itself, this once' })),
  },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_3k…', signing_secret: null }] },
)
export const NewSourceBody = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    type: Type.Enum([...SOURCE_TYPES]),
    ...optional(settings),
    token: Type.Optional(SECRET_FIELDS.token.schema),
    signing_secret: Type.Optional(SECRET_FIELDS.signing_secret.schema),
  },
  { examples: [{ tenant: 'acme', type: 'webhook', name: 'shop', signing_secret: 'generate' }] },
)
export const SourceChangeBody = Type.Object(optional(settings), {
  examples: [{ rate_limit: { events: 100, per_seconds: 60 } }],
})
export const RotationBody = Type.Object(
  {
    what: Type.Enum(['token', 'signing_secret']),
    value: Type.Optional(Type.String({ description: 'The new one; default: a random one' })),
    overlap_hours: Type.Optional(
      Type.Number({ description: 'How long the one before stays good; default: 24' }),
    ),
  },
  { examples: [{ what: 'token', overlap_hours: 24 }] },
)
export const RotatedSourceBody = Type.Object(
  { ...source, token: Type.Optional(Type.String()), signing_secret: Type.Optional(Type.String()) },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_8s…' }] },
)
