import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { findPreset, type Headers, type Preset } from '../../domain/inbound/presets.ts'
import { type SignatureFormat, type Verification, verifySignature } from '../../domain/inbound/signatures.ts'
import { isAllowed } from '../../domain/tenants/addresses.ts'
import { hashOfSecret } from '../../domain/tenants/keys.ts'
import type { Source } from '../../store/inbound/sources.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import { bearerToken } from '../auth.ts'
import { type Problem, problems } from '../problems.ts'

/** The source that a request is posted to. */
type Target = { source: Source; credentials: Credentials }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on the inbound route as soon as the source is known, even if the request is then rejected. */
    target: Target | null
  }
}

type Deps = {
  directory: Pick<Directory, 'source'>
  credentials: (source: Source) => Credentials
  now: () => Date
}
type Done = (error?: Error) => void

/** An onRequest hook: finds the source and checks the token before any of the body is read. */
export function admit(deps: Deps) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const settle = (source: Source | null) => {
      let problem: Problem | null
      try {
        problem = checkSource(deps, request, source)
      } catch (error) {
        return done(error as Error)
      }
      done(problem ?? undefined)
    }
    const source = deps.directory.source((request.params as { sourceConfigId: string }).sourceConfigId)
    // A failed look-up does not mean that the source does not exist: 503, never 404.
    if (source instanceof Promise) source.then(settle, error => done(problems.unavailable(undefined, undefined, error)))
    else settle(source)
  }
}

function checkSource(deps: Deps, request: FastifyRequest, source: Source | null): Problem | null {
  if (source === null) return problems.notFound('No such source.', 'source_not_found')
  const credentials = deps.credentials(source)
  request.target = { source, credentials }
  const { headers } = request.raw
  const problem = tokenProblem(credentials, headers, deps.now())
  if (problem) return problem
  const { allowed_addresses } = source.config
  if (!isAllowed(allowed_addresses, request.ip)) return problems.addressNotAllowed(request.ip)
  // Without a token the signature must be valid, which can be checked only after the body is read.
  const hasToken = showsToken(credentials, headers)
  if (hasToken) request.isAuthenticated = true
  // Unauthenticated callers must not learn that a source is disabled: without a token, the signature is checked first.
  return source.enabled || !hasToken ? null : disabled()
}

export function disabled(): Problem {
  return problems.forbidden('source_disabled', 'This source is disabled. Enable it to receive events.')
}

/** The credentials that a source accepts, prepared once for each version of the source. */
type Credentials = {
  preset: Preset | null
  tokens: { hash: Buffer; expiresAt: number }[]
  secrets: { secret: string; expiresAt: number }[]
  hasSecrets: boolean
  /** Set if no master key decrypts a signing secret. A signature that does not match is then answered 503, not 401. */
  unreadable: Error | null
}

export type OpenSecret = (sealed: string) => string

/** Cached by object: the directory returns the same object until the source changes. */
export function credentialsBySource(open: OpenSecret): (source: Source) => Credentials {
  const known = new WeakMap<Source, Credentials>()
  return source => {
    let credentials = known.get(source)
    if (!credentials) {
      credentials = readCredentials(source, open)
      known.set(source, credentials)
    }
    return credentials
  }
}

function readCredentials(source: Source, open: OpenSecret): Credentials {
  const secrets: Credentials['secrets'] = []
  let unreadable: Error | null = null
  for (const { sealed, expires_at } of source.signingSecrets) {
    try {
      secrets.push({ secret: open(sealed), expiresAt: parseExpiry(expires_at) })
    } catch (error) {
      unreadable = error as Error
    }
  }
  return {
    preset: findPreset(source.preset),
    tokens: source.tokens.map(({ hash, expires_at }) => ({
      hash: Buffer.from(hash, 'hex'),
      expiresAt: parseExpiry(expires_at),
    })),
    secrets,
    hasSecrets: source.signingSecrets.length > 0,
    unreadable,
  }
}

function parseExpiry(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
}

/** Whether the provider sends the signing secret itself in the Authorization header, in place of our token. */
function isSecretShown({ preset, hasSecrets }: Credentials): boolean {
  return preset?.authorizes === true && hasSecrets
}

/** Whether the request has a token. `tokenProblem` checks it. */
function showsToken(credentials: Credentials, headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined && !isSecretShown(credentials)
}

/**
 * Why the request's token is rejected, or null. A token may be missing if the provider's own signature is required,
 * because such providers cannot be configured to send a token.
 */
function tokenProblem(credentials: Credentials, headers: IncomingHttpHeaders, now: Date): Problem | null {
  if (!showsToken(credentials, headers)) {
    if (credentials.preset !== null && credentials.hasSecrets) return null
    return problems.unauthorized(
      'missing_credentials',
      'This source requires its token (tok_…). Send it as Authorization: Bearer.',
    )
  }
  const token = bearerToken(headers)
  const hash = token === null ? null : hashOfSecret(token)
  let found: Credentials['tokens'][number] | null = null
  for (const known of credentials.tokens) if (hash && isSame(known.hash, hash)) found = known
  if (found === null)
    return problems.unauthorized(
      'invalid_credentials',
      'The token does not match this source. Send Authorization: Bearer tok_….',
    )
  if (found.expiresAt <= now.getTime())
    return problems.unauthorized('token_expired', 'This token was replaced and has expired. Use the current token.')
  return null
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

const SIGNATURE_ERRORS = {
  signature_missing: 'This source requires a signature, but the request has none.',
  signature_invalid: 'The signature does not match the body and the signing secret of this source.',
  signature_expired: 'The signature is valid, but its timestamp differs from the server time by more than 5 minutes.',
}

/** The format of the valid signature; null if the source has no secret. Throws if the signature is missing or invalid. */
export function verifiedSignature(
  source: Source,
  credentials: Credentials,
  request: { headers: IncomingHttpHeaders; body: Buffer; now: Date; signatureHeader: string },
): SignatureFormat | null {
  if (!credentials.hasSecrets) return null
  const { body, now, signatureHeader } = request
  const headers = request.headers as Headers
  const secrets = credentials.secrets.filter(({ expiresAt }) => expiresAt > now.getTime()).map(({ secret }) => secret)
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
      'The signature cannot be verified at the moment. Retry shortly.',
      undefined,
      credentials.unreadable,
    )
  throw problems.unauthorized(verification.code, SIGNATURE_ERRORS[verification.code])
}
