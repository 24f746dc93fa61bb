import { AdminError, type PersonChoice } from '../admin/error.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { ValidationError, validationErrorSentence, withoutFieldName } from '../domain/validation-error.ts'
import { Overloaded } from '../overload/limits.ts'
import { readValidationErrors } from './validation.ts'

export const ProblemBody = Type.Object(
  {
    type: Type.String({ description: 'A URN formed from the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'Explanation for humans' }),
    code: Type.String({ description: 'Stable error code in snake_case, for programs' }),
    request_id: Type.String({ description: 'The value of the header X-Request-Id' }),
    errors: Type.Optional(Type.Array(ValidationError, { description: 'All validation errors of the request' })),
    choices: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), profile_id: Type.String() }), {
        description:
          'With the code person_ambiguous: the people who have this identifier. `name` is the identifier with its kind, for example user:42',
      }),
    ),
  },
  { title: 'Problem', description: 'Every error response has this format (RFC 9457)' },
)
export type ProblemBody = Static<typeof ProblemBody>

type Facts = {
  status: number
  code: string
  title: string
  detail: string
  errors?: ValidationError[]
  choices?: PersonChoice[] | undefined
  headers?: Record<string, string>
  cause?: unknown
}

/** An error response. Everything in it is meant for the client, except the cause. */
export class Problem extends Error {
  override name = 'Problem'
  readonly status: number
  readonly code: string
  readonly title: string
  readonly detail: string
  readonly errors: ValidationError[] | undefined
  readonly choices: PersonChoice[] | undefined
  readonly headers: Record<string, string> | undefined

  constructor(facts: Facts) {
    super(facts.detail, { cause: facts.cause })
    this.status = facts.status
    this.code = facts.code
    this.title = facts.title
    this.detail = facts.detail
    this.errors = facts.errors
    this.choices = facts.choices
    this.headers = facts.headers
  }
}

// A 503 is meant to be retried soon. SDKs that obey Retry-After would lose time with a larger value; the others ignore it.
const RETRY_AFTER_S = 1
export const ADDRESS_NOT_ALLOWED = 'address_not_allowed'
const MAX_POINTER = 200
const REALM = 'Bearer realm="kontor"'

/** All error responses. No other file decides the status of an error. */
export const problems = {
  invalid(found: ValidationError[], detail?: string) {
    const errors = found.map(shortenPointer)
    return new Problem({
      ...{ status: 400, code: 'invalid_request', title: 'Invalid request' },
      detail: detail ?? invalidDetail(errors),
      errors: errors.map(withoutFieldName),
    })
  },
  malformed(detail: string, code = 'malformed_json', cause?: unknown) {
    return new Problem({ status: 400, code, title: 'Malformed request', detail, cause })
  },
  unauthorized(code: string, detail: string) {
    // RFC 6750: no error attribute where no credential was sent
    const challenge = code === 'missing_credentials' ? REALM : `${REALM}, error="invalid_token"`
    const headers = { 'www-authenticate': challenge }
    return new Problem({ status: 401, code, title: 'Not authenticated', detail, headers })
  },
  insufficientScope(scope: string | readonly string[]) {
    const scopes = typeof scope === 'string' ? [scope] : scope
    return new Problem({
      status: 403,
      code: 'insufficient_scope',
      title: 'Insufficient scope',
      detail: `This route requires a key with the scope ${scopes.join(' or ')}.`,
      headers: { 'www-authenticate': `${REALM}, error="insufficient_scope", scope="${scopes.join(' ')}"` },
    })
  },
  forbidden(code: string, detail: string) {
    return new Problem({ status: 403, code, title: 'Forbidden', detail })
  },
  addressNotAllowed(address: string) {
    const detail = `This credential is not accepted from ${address}. Use an allowed address, or another credential.`
    return problems.forbidden(ADDRESS_NOT_ALLOWED, detail)
  },
  unknown(what: string, id: string, code?: string): Problem {
    return problems.notFound(`No such ${what}: ${quote(id)}.`, code)
  },
  notFound(detail = 'No such resource.', code = 'not_found') {
    return new Problem({ status: 404, code, title: 'Not found', detail })
  },
  methodNotAllowed(method: string, allow: readonly string[]) {
    return new Problem({
      status: 405,
      code: 'method_not_allowed',
      title: 'Method not allowed',
      detail: `${method} is not allowed. This path accepts ${allow.join(', ')}.`,
      headers: { allow: allow.join(', ') },
    })
  },
  requestTimeout() {
    const detail = 'The request did not arrive completely within the time limit. Retry, or send a smaller request.'
    return new Problem({ status: 408, code: 'request_timeout', title: 'Request timeout', detail })
  },
  conflict(code: string, detail: string, choices?: PersonChoice[]) {
    return new Problem({ status: 409, code, title: 'Conflict', detail, choices })
  },
  tooLarge(limitBytes: number, { isCompressed = false } = {}) {
    const how = isCompressed ? ' Compressed bodies are measured after decompression.' : ''
    return problems.payloadTooLarge(`The body is larger than ${groupDigits(limitBytes)} bytes.${how}`)
  },
  payloadTooLarge(detail: string): Problem {
    return new Problem({ status: 413, code: 'payload_too_large', title: 'Payload too large', detail })
  },
  uriTooLong() {
    const detail = 'A segment of the path is too long. Check the id in the path.'
    return new Problem({ status: 414, code: 'uri_too_long', title: 'URI too long', detail })
  },
  unsupportedMediaType(detail = 'The body must be JSON, with Content-Type: application/json.') {
    return new Problem({
      status: 415,
      code: 'unsupported_media_type',
      title: 'Unsupported media type',
      detail,
      headers: { accept: 'application/json' },
    })
  },
  unsupportedEncoding() {
    return new Problem({
      status: 415,
      code: 'unsupported_encoding',
      title: 'Unsupported content encoding',
      detail: 'The body must be sent uncompressed or with Content-Encoding: gzip.',
      headers: { 'accept-encoding': 'gzip' },
    })
  },
  tooManyRequests(retryAfterS: number, detail = 'Too many requests. Retry later.') {
    return new Problem({
      status: 429,
      code: 'too_many_requests',
      title: 'Too many requests',
      detail,
      headers: { 'retry-after': wholeSeconds(retryAfterS) },
    })
  },
  headersTooLarge() {
    const detail = 'The request headers are too large. Send fewer or shorter headers.'
    return new Problem({ status: 431, code: 'headers_too_large', title: 'Headers too large', detail })
  },
  internal(cause: unknown) {
    const detail = 'An internal error occurred. Include the request_id when you report it.'
    return new Problem({ status: 500, code: 'internal_error', title: 'Internal error', detail, cause })
  },
  unavailable(detail = 'The database is unavailable. Retry shortly.', retryAfterS = RETRY_AFTER_S, cause?: unknown) {
    return new Problem({
      status: 503,
      code: 'service_unavailable',
      title: 'Service unavailable',
      detail,
      headers: { 'retry-after': wholeSeconds(retryAfterS) },
      cause,
    })
  },
  backlogFull(retryAfterS: number) {
    return new Problem({
      status: 503,
      code: 'backlog_full',
      title: 'Service overloaded',
      detail: 'The processing backlog is full. Retry later: writes are accepted again when the backlog shrinks.',
      headers: { 'retry-after': wholeSeconds(retryAfterS) },
    })
  },
  overloaded(cause?: unknown) {
    return new Problem({
      status: 503,
      code: 'overloaded',
      title: 'Service overloaded',
      detail: 'The service is overloaded. Retry shortly.',
      headers: { 'retry-after': wholeSeconds(RETRY_AFTER_S) },
      cause,
    })
  },
}

/** Converts any thrown error to a response. Only errors that are meant for clients keep their message. */
export function toProblem(error: unknown, isUnavailable: (error: unknown) => boolean): Problem {
  if (error instanceof Problem) return error
  const errors = readValidationErrors(error)
  if (errors.length > 0) return problems.invalid(errors)
  if (error instanceof AdminError) return toAdminProblem(error)
  if (error instanceof Overloaded) return problems.overloaded(error)
  if (isUnavailable(error)) return problems.unavailable(undefined, undefined, error)
  if (isUnstorableText(error))
    return problems.malformed('The request contains a NUL character. Remove it.', 'malformed_text')
  return toFrameworkProblem(error) ?? problems.internal(error)
}

// PostgreSQL's error codes for a NUL character. It can be in any part of a request, and cannot be stored or searched for.
function isUnstorableText(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '22021' || code === '22P05'
}

function toAdminProblem(error: AdminError): Problem {
  switch (error.kind) {
    case 'not_found':
      return problems.notFound(error.message, error.code)
    case 'forbidden':
      return problems.forbidden(error.code, error.message)
    case 'conflict':
      return problems.conflict(error.code, error.message, error.choices)
    case 'invalid':
      return error.errors.length > 0
        ? problems.invalid(error.errors)
        : new Problem({ status: 400, code: error.code, title: 'Invalid request', detail: error.message })
  }
}

function toFrameworkProblem(error: unknown): Problem | null {
  switch ((error as { code?: unknown } | null)?.code) {
    case 'FST_ERR_BAD_URL':
      return problems.malformed('The path has invalid percent-encoding.', 'malformed_url')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return problems.uriTooLong()
    default:
      return null
  }
}

export function problemBody(problem: Problem, requestId: string): ProblemBody {
  return {
    type: `urn:kontor:problem:${problem.code}`,
    title: problem.title,
    status: problem.status,
    detail: problem.detail,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors && { errors: problem.errors }),
    ...(problem.choices && { choices: problem.choices }),
  }
}

/** A caller may send a field with a name of any length. */
function shortenPointer(error: ValidationError): ValidationError {
  const { pointer } = error
  return pointer.length <= MAX_POINTER
    ? error
    : { ...error, pointer: `${pointer.slice(0, MAX_POINTER).toWellFormed()}…` }
}

function invalidDetail(errors: ValidationError[]): string {
  const [only] = errors
  if (errors.length === 1 && only) return `${validationErrorSentence(only)}.`
  return `${errors.length} validation errors, listed in "errors".`
}

function wholeSeconds(seconds: number): string {
  return String(Math.max(1, Math.ceil(seconds)))
}

/** 1000000 → 1,000,000. Loading the language data of toLocaleString would take 20 ms of each start. */
export function groupDigits(count: number): string {
  let text = String(count)
  for (let at = text.length - 3; at > 0; at -= 3) text = `${text.slice(0, at)},${text.slice(at)}`
  return text
}
