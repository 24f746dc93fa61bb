import { Nullable } from '../shapes.ts'
import { MAX_NETWORKS } from '../tenants/addresses.ts'
import { type Static, Type } from '../typebox.ts'

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const only = { additionalProperties: false }
export const MAX_RATE_EVENTS = 100_000_000
export const MAX_RATE_SECONDS = 86_400
// Names separated by dots; a number is an index into a list.
const path = Type.String({ maxLength: 200, pattern: '^[^.\\s][^.]*(\\.[^.]+)*$' })

const overrides = [
  Type.Object({ set: text(200) }, { ...only, description: 'Every event has this type' }),
  Type.Object({ prefix: text(100) }, { ...only, description: 'Added before the type of the event' }),
  Type.Object(
    { map: Type.Record(text(200), text(200), { minProperties: 1, maxProperties: 1000 }) },
    { ...only, description: 'By type of the event, the type to store' },
  ),
  Type.Object({ path }, { ...only, description: 'The type is at this path of the body' }),
] as const
const EventTypeOverride = Type.Union([...overrides])
export type EventTypeOverride = Static<typeof EventTypeOverride>

const headerName = Type.String({ maxLength: 100, pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" })

/** The signature of a sender without a preset. */
const CustomSignature = Type.Object(
  {
    /** The location of the signature: a header, or a path into the body. */
    header: Type.Optional(headerName),
    body_path: Type.Optional(path),
    algorithm: Type.Optional(Type.Enum(['sha256', 'sha1', 'sha512'])),
    encoding: Type.Optional(Type.Enum(['hex', 'base64'])),
    /** The text before the signature, such as "sha256=". */
    prefix: Type.Optional(Type.String({ maxLength: 50 })),
    /** The signed content: {body}, {timestamp}, and {any.path} into the body. */
    template: Type.Optional(text(200)),
    timestamp_header: Type.Optional(headerName),
    tolerance_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400 })),
  },
  { ...only, title: 'CustomSignature', description: 'The signature of a sender without a preset' },
)
export type CustomSignature = Static<typeof CustomSignature>
export const DEFAULT_TEMPLATE = '{body}'

/** The settings of a source that are read and changed as one object. */
export const SourceConfig = Type.Object({
  event_type_override: Type.Union([...overrides, Type.Null()], {
    title: 'EventTypeOverride',
    description: 'Where the type of an event comes from; null: the event itself',
  }),
  event_id_path: Nullable(path),
  require_timestamped_signature: Type.Boolean(),
  /** null: required if the preset gives every event an id. */
  require_event_id: Nullable(Type.Boolean()),
  /** Whether its events change the subscription ledger; null: depends on type and preset. */
  billing: Nullable(Type.Boolean()),
  /** The namespace of billing ids; null: the provider's name. */
  namespace: Nullable(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$' })),
  /** Whether products, customers and orders of a shop become records; null: yes. */
  records: Nullable(Type.Boolean()),
  /** The signature, for the preset `custom`. */
  custom: Nullable(CustomSignature),
  rate_limit: Type.Object(
    {
      events: Type.Integer({ minimum: 1, maximum: MAX_RATE_EVENTS }),
      per_seconds: Type.Integer({ minimum: 1, maximum: MAX_RATE_SECONDS }),
    },
    { ...only, title: 'RateLimit', description: 'Events per interval' },
  ),
  overflow: Type.Enum(['defer', 'drop']),
  max_body_bytes: Type.Integer({ minimum: 1, maximum: 8_388_608 }),
  /** Names of additional request headers to store with each event. */
  headers: Type.Array(headerName, { maxItems: 50 }),
  /** Addresses and networks from which requests are accepted; empty: from everywhere. */
  allowed_addresses: Type.Array(Type.String({ maxLength: 50 }), { maxItems: MAX_NETWORKS }),
})
export type SourceConfig = Static<typeof SourceConfig>

export const DEFAULT_SOURCE_CONFIG: SourceConfig = {
  event_type_override: null,
  event_id_path: null,
  require_timestamped_signature: false,
  require_event_id: null,
  billing: null,
  namespace: null,
  records: null,
  custom: null,
  rate_limit: { events: 6000, per_seconds: 60 },
  overflow: 'defer',
  max_body_bytes: 1_048_576,
  headers: [],
  allowed_addresses: [],
}
