import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Headers, type Preset, presetNamed } from '../../domain/inbound/presets.ts'
import { type SignatureFormat, type Verification, verifySignature } from '../../domain/inbound/signatures.ts'
import { hashOfSecret } from '../../domain/tenants/keys.ts'
import type { Source } from '../../store/inbound/sources.ts'
import { bearerToken } from '../auth.ts'
import { type Problem, problems } from '../problems.ts'

/** What a source accepts, prepared once for each version of it. */
export type Credentials = {
  preset: Preset | null
  tokens: { hash: Buffer; expiresAt: number }[]
  secrets: { secret: string; expiresAt: number }[]
  hasSecrets: boolean
  /** Set where no master key opens a signing secret: what it might have signed is answered 503, not 401. */
  unreadable: Error | null
}

export type OpenSecret = (sealed: string) => string

/** The directory hands out the same object until the source changes. */
export function credentialsBySource(open: OpenSecret): (source: Source) => Credentials {
  const known = new WeakMap<Source, Credentials>()
  return source => {
    let credentials = known.get(source)
    if (!credentials) {
      credentials = credentialsOf(source, open)
      known.set(source, credentials)
    }
    return credentials
  }
}

function credentialsOf(source: Source, open: OpenSecret): Credentials {
  const secrets: Credentials['secrets'] = []
  let unreadable: Error | null = null
  for (const { sealed, expires_at } of source.signingSecrets) {
    try {
      secrets.push({ secret: open(sealed), expiresAt: endOf(expires_at) })
    } catch (error) {
      unreadable = error as Error
    }
  }
  return {
    preset: presetNamed(source.preset),
    tokens: source.tokens.map(({ hash, expires_at }) => ({
      hash: Buffer.from(hash, 'hex'),
      expiresAt: endOf(expires_at),
    })),
    secrets,
    hasSecrets: source.signingSecrets.length > 0,
    unreadable,
  }
}

function endOf(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
}

/** Whether the Authorization header is to hold the signing secret, as some providers show it, in place of our token. */
function isSecretShown({ preset, hasSecrets }: Credentials): boolean {
  return preset?.authorizes === true && hasSecrets
}

/** Whether a token was shown; good or not, `tokenProblem` tells. */
export function showsToken(credentials: Credentials, headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined && !isSecretShown(credentials)
}

/**
 * Why the request's token is refused, or null. A token may be missing where the provider's own signature is required:
 * such senders cannot be configured to send one.
 */
export function tokenProblem(
  credentials: Credentials,
  headers: IncomingHttpHeaders,
  now: Date,
): Problem | null {
  if (!showsToken(credentials, headers)) {
    if (credentials.preset !== null && credentials.hasSecrets) return null
    return problems.unauthorized(
      'missing_credentials',
      'This source needs its token (tok_…), sent as Authorization: Bearer.',
    )
  }
  const token = bearerToken(headers)
  const hash = token === null ? null : hashOfSecret(token)
  let found: Credentials['tokens'][number] | null = null
  for (const known of credentials.tokens) if (hash && isSame(known.hash, hash)) found = known
  if (found === null)
    return problems.unauthorized('invalid_credentials', "This is not the source's token (Bearer tok_…).")
  if (found.expiresAt <= now.getTime())
    return problems.unauthorized('token_expired', 'This token has been replaced and is no longer valid.')
  return null
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

const REFUSALS = {
  signature_missing: 'This source requires a signature, and the request has none.',
  signature_invalid: 'The signature does not match the body and the signing secret of this source.',
  signature_expired: 'The signature is valid, but its timestamp is more than 5 minutes from now.',
}

/** How the request was signed; null where the source has no secret. Throws where it had to be and is not. */
export function verifiedSignature(
  source: Source,
  credentials: Credentials,
  request: { headers: IncomingHttpHeaders; body: Buffer; now: Date; signatureHeader: string },
): SignatureFormat | null {
  if (!credentials.hasSecrets) return null
  const { body, now, signatureHeader } = request
  const headers = request.headers as Headers
  const secrets = credentials.secrets
    .filter(({ expiresAt }) => expiresAt > now.getTime())
    .map(({ secret }) => secret)
  const verification: Verification = credentials.preset
    ? credentials.preset.verify({ headers, body, secrets, now, custom: source.config.custom })
    : verifySignature({
        header: headers[signatureHeader],
        body,
        secrets,
        now,
        requireTimestamped: source.config.require_timestamped_signature,
      })
  if (verification.ok) return verification.format
  if (credentials.unreadable && verification.code === 'signature_invalid')
    throw problems.unavailable(
      'The signature cannot be checked at the moment: try again soon.',
      undefined,
      credentials.unreadable,
    )
  throw problems.unauthorized(verification.code, REFUSALS[verification.code])
}
