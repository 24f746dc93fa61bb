import { Ajv2020 } from 'ajv/dist/2020.js'
import { type TSchema, Type } from 'typebox'
import { placeholdersOf } from '../../domain/inbound/presets/custom.ts'
import { PRESET_NAMES, type PresetName } from '../../domain/inbound/presets.ts'
import { type CustomSignature, DEFAULT_TEMPLATE, SourceConfig } from '../../domain/inbound/source-config.ts'
import { pointerToken, unstorablePointers } from '../../domain/json/json.ts'
import { Nullable } from '../../domain/shapes.ts'
import { isNetwork, NETWORKS } from '../../domain/tenants/addresses.ts'
import type { ValidationError } from '../../domain/validation-error.ts'

const config = SourceConfig.properties

/** Kept headers are stored with every event: credentials must not be among them. */
const CREDENTIAL_HEADER = /^(proxy-)?authorization$|cookie|signature|hmac|token|secret|api-?key|write-?key/i

type Field = {
  schema: TSchema
  /** Completes "must be …". */
  expects: string
  /** What the schema cannot say. */
  check?: (value: never) => boolean
}

/** What is signed holds the body, or fields of it, and the time where one is to be checked. */
function isWholeSignature(custom: CustomSignature | null): boolean {
  if (custom === null) return true
  const { header, body_path, template = DEFAULT_TEMPLATE, timestamp_header } = custom
  const signed = placeholdersOf(template)
  const isBodySigned = signed.includes('body') || (body_path !== undefined && signed.length > 0)
  return (
    (header === undefined) !== (body_path === undefined) &&
    isBodySigned &&
    signed.includes('timestamp') === (timestamp_header !== undefined)
  )
}

/** What can be set on a source, one by one. The admin API's schemas and the checks here are made of the same parts. */
export const SOURCE_FIELDS = {
  name: { schema: Type.String({ minLength: 1, maxLength: 100 }), expects: 'a name of 1 to 100 characters' },
  enabled: { schema: Type.Boolean(), expects: 'true or false' },
  preset: {
    schema: Nullable(Type.Enum([...PRESET_NAMES])),
    expects: `one of ${PRESET_NAMES.join(', ')}, or null`,
  },
  event_type_override: {
    schema: config.event_type_override,
    expects: 'one of {"set": "x"}, {"prefix": "x."}, {"map": {"a": "b"}}, {"path": "payload.kind"}, or null',
  },
  event_id_path: { schema: config.event_id_path, expects: 'a path like "payload.id", or null' },
  require_timestamped_signature: { schema: config.require_timestamped_signature, expects: 'true or false' },
  require_event_id: {
    schema: config.require_event_id,
    expects: 'true, false, or null (default): true with a preset whose events have ids',
  },
  billing: {
    schema: config.billing,
    expects:
      'true, false, or null (default): true for webhook and automation, false for cdp, shopify and github',
  },
  namespace: {
    schema: config.namespace,
    expects: "1 to 50 letters, digits, dots, dashes or underscores, or null (default): the provider's name",
  },
  records: {
    schema: config.records,
    expects: "true, false, or null (default): true where the preset is a shop's",
  },
  custom: {
    schema: config.custom,
    expects:
      'null, or like {"header": "x-signature", "algorithm": "sha256", "encoding": "hex", "prefix": "sha256=", "template": "{timestamp}.{body}", "timestamp_header": "x-timestamp", "tolerance_s": 300}: one of header and body_path, a template with {body}, and {timestamp} in it just where there is a timestamp_header',
    check: isWholeSignature,
  },
  rate_limit: {
    schema: config.rate_limit,
    expects: 'like {"events": 6000, "per_seconds": 60}: whole numbers, a period of at most 86400 seconds',
  },
  overflow: { schema: config.overflow, expects: '"defer" or "drop"' },
  max_body_bytes: {
    schema: config.max_body_bytes,
    expects: 'a whole number of bytes up to 8388608 (8 MiB)',
  },
  headers: {
    schema: config.headers,
    expects: 'a list of up to 50 header names, none of them a credential or a signature',
    check: (names: string[]) => !names.some(name => CREDENTIAL_HEADER.test(name)),
  },
  allowed_addresses: {
    schema: config.allowed_addresses,
    expects: NETWORKS,
    check: (networks: string[]) => networks.every(isNetwork),
  },
} satisfies Record<string, Field>

/** Given when a source is made; changed by rotating. */
export const SECRET_FIELDS = {
  token: {
    schema: Type.String({ pattern: '^([\\x21-\\x7e]{16,500}|generate)$' }),
    expects: '16 to 500 printable characters without blanks, or "generate"',
  },
  signing_secret: {
    // one blank, after a scheme: some senders show the whole value of a header, "Bearer …"
    schema: Nullable(Type.String({ pattern: '^((?=.{16,500}$)([A-Za-z]+ )?[\\x21-\\x7e]+|generate)$' })),
    expects: '16 to 500 printable characters without blanks, "generate", or null for none',
  },
} satisfies Record<string, Field>

export type SourceSettings = Partial<
  SourceConfig & { name: string; enabled: boolean; preset: PresetName | null }
>
export type SecretSettings = { token?: string; signing_secret?: string | null }

type Schemas<Fields extends Record<string, Field>> = { [Name in keyof Fields]: Fields[Name]['schema'] }

/** The settings of a source as parts of a documented shape. */
export const SOURCE_SETTINGS = Object.fromEntries(
  Object.entries(SOURCE_FIELDS).map(([name, { schema, expects }]) => [
    name,
    { ...schema, description: `Must be ${expects}` },
  ]),
) as unknown as Schemas<typeof SOURCE_FIELDS>

// TypeBox's own check is 330 modules and 0.2 s of every start; this one the routes need anyway.
const ajv = new Ajv2020({ validateSchema: false, strict: false })

/** Every fault of the given settings at once. */
export function faultsOfSettings(given: object, fields: Record<string, Field>): ValidationError[] {
  return Object.entries(given).flatMap(([name, value]): ValidationError[] => {
    const pointer = `/${pointerToken(name)}`
    if (value === undefined) return []
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (!field)
      return [{ pointer, message: `is not a setting; the settings are ${Object.keys(fields).join(', ')}` }]
    const isGood =
      ajv.validate(field.schema, value) &&
      unstorablePointers(value).length === 0 &&
      (field.check?.(value as never) ?? true)
    return isGood ? [] : [{ pointer, message: `must be ${field.expects}` }]
  })
}
