import { parseJson, valueAt } from '../../json/json.ts'
import { type Preset, type PresetRequest, readIdString, wholeBody } from '../preset.ts'
import {
  digestBytes,
  INVALID_SIGNATURE,
  MISSING_SIGNATURE,
  signs,
  type Verification,
  verifyWithTime,
} from '../signatures.ts'
import { type CustomSignature, DEFAULT_TEMPLATE } from '../source-config.ts'

/** A signature that the source's setting `custom` describes. */
export const custom: Preset = {
  name: 'custom',
  keepHeaders: [],
  verify: request =>
    request.custom ? verifyCustom(request, request.custom) : { ok: false, code: 'signature_invalid' },
  eventType: () => null,
  eventId: () => null,
  withoutIds: true,
  subject: wholeBody,
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
  const keys = request.secrets.map(secret => Buffer.from(secret))
  if (timestamp === null) {
    const isValid = keys.some(key => signs({ key, content, given: [bytes], algorithm }))
    return isValid ? { ok: true, format: 'custom' } : INVALID_SIGNATURE
  }
  return verifyWithTime(request, {
    ...{ timestamp, content, keys, given: [bytes], algorithm, format: 'custom' },
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
