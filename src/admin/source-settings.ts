import { type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Fault } from '../domain/fault.ts'
import { PRESET_NAMES } from '../domain/inbound/presets.ts'
import { pointerToken, unstorablePointers } from '../domain/json/json.ts'
import type { SourceConfig } from '../store/inbound/sources.ts'

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength })
const only = { additionalProperties: false }
// Names separated by dots; a number is an index into a list.
const path = Type.String({ maxLength: 200, pattern: '^[^.\\s][^.]*(\\.[^.]+)*$' })

/** Kept headers go with every event: nothing that lets anybody in may be among them. */
const CREDENTIAL_HEADER = /^(proxy-)?authorization$|cookie|signature|hmac|token|secret|api-?key|write-?key/i

type Field = {
  schema: TSchema
  /** Completes "must be …". */
  expects: string
  /** What the schema cannot say. */
  check?: (value: never) => boolean
}

/** What can be set on a source, one by one. The admin API's schemas and the checks here are made of the same parts. */
export const SOURCE_FIELDS = {
  name: { schema: text(100), expects: 'a name of 1 to 100 characters' },
  enabled: { schema: Type.Boolean(), expects: 'true or false' },
  preset: {
    schema: Type.Union([Type.Enum([...PRESET_NAMES]), Type.Null()]),
    expects: `one of ${PRESET_NAMES.join(', ')}, or null`,
  },
  event_type_override: {
    schema: Type.Union([
      Type.Object({ set: text(200) }, only),
      Type.Object({ prefix: text(100) }, only),
      Type.Object(
        { map: Type.Record(text(200), text(200), { minProperties: 1, maxProperties: 1000 }) },
        only,
      ),
      Type.Object({ path }, only),
      Type.Null(),
    ]),
    expects: 'one of {"set": "x"}, {"prefix": "x."}, {"map": {"a": "b"}}, {"path": "payload.kind"}, or null',
  },
  event_id_path: {
    schema: Type.Union([path, Type.Null()]),
    expects: 'a path like "payload.id", or null',
  },
  require_timestamped_signature: { schema: Type.Boolean(), expects: 'true or false' },
  rate_limit: {
    schema: Type.Object(
      {
        events: Type.Integer({ minimum: 1, maximum: 100_000_000 }),
        per_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }),
      },
      only,
    ),
    expects: 'like {"events": 6000, "per_seconds": 60}: whole numbers, a period of at most 86400 seconds',
  },
  overflow: {
    schema: Type.Enum(['defer', 'drop']),
    expects: '"defer" or "drop"',
  },
  max_body_bytes: {
    schema: Type.Integer({ minimum: 1, maximum: 8_388_608 }),
    expects: 'a whole number of bytes up to 8388608 (8 MiB)',
  },
  headers: {
    schema: Type.Array(Type.String({ maxLength: 100, pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }), {
      maxItems: 50,
    }),
    expects: 'a list of up to 50 header names, none of them a credential or a signature',
    check: (names: string[]) => !names.some(name => CREDENTIAL_HEADER.test(name)),
  },
} satisfies Record<string, Field>

/** Given when a source is made; changed by rotating. */
export const SECRET_FIELDS = {
  token: {
    schema: Type.String({ pattern: '^[\\x21-\\x7e]{8,500}$' }),
    expects: '8 to 500 printable characters without blanks',
  },
  signing_secret: {
    schema: Type.Union([Type.String({ pattern: '^[\\x21-\\x7e]{8,500}$' }), Type.Null()]),
    expects: '8 to 500 printable characters without blanks, "generate", or null for none',
  },
} satisfies Record<string, Field>

export type SourceSettings = Partial<SourceConfig & { name: string; enabled: boolean; preset: string | null }>
export type SecretSettings = { token?: string; signing_secret?: string | null }

/** Every fault of the given settings at once. */
export function faultsOfSettings(given: object, fields: Record<string, Field>): Fault[] {
  return Object.entries(given).flatMap(([name, value]): Fault[] => {
    const pointer = `/${pointerToken(name)}`
    if (value === undefined) return []
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!field)
      return [{ pointer, message: `is not a setting here; there are ${Object.keys(fields).join(', ')}` }]
    const isGood =
      Value.Check(field.schema, value) &&
      unstorablePointers(value).length === 0 &&
      (field.check?.(value as never) ?? true)
    return isGood ? [] : [{ pointer, message: `must be ${field.expects}` }]
  })
}
