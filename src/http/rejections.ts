import type { FastifyRequest } from 'fastify'
import { storableText } from '../domain/json/json.ts'
import { withoutCredentials } from '../domain/tenants/credentials.ts'
import { headerWithoutAddresses, type IpMode, keptAddress, withoutAddresses } from '../domain/tenants/ip-addresses.ts'
import { type ValidationError, validationErrorSentence } from '../domain/validation-error.ts'
import type { KeyRejection, Rejections } from '../intake/rejections.ts'
import type { SourceRejection } from '../store/inbound/rejections.ts'
import type { KeyOfTenant } from '../store/tenants/keys.ts'
import type { App } from './app.ts'
import type { RawBody } from './body.ts'
import { ADDRESS_NOT_ALLOWED, type Problem, problems } from './problems.ts'

/** An item of a batch, as received. */
export type RejectedRecord = { index: number; errors: ValidationError[]; text: string }

/** Records what a route rejects. */
type RouteRejections = {
  request(request: FastifyRequest, problem: Problem): void
  /** Items of a batch whose other items are accepted. */
  items(request: FastifyRequest, items: RejectedRecord[]): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    rejections?: RouteRejections
  }
  interface FastifyRequest {
    /** A known key that was rejected. */
    rejectedKey: KeyOfTenant | null
  }
}

const WRITES = ['POST', 'DELETE']
// Not found, or not received: no data was rejected.
const NOT_RECORDED = [404, 408]
const MAX_TEXT = 500
const MAX_BODY = 2_000

/** Records rejected writes with a known key, for the tenant's operators. Accepted requests cost nothing extra. */
export function recordRejections(app: App, { rejections, now }: { rejections: Rejections; now: () => Date }): void {
  const recorder: RouteRejections = {
    request(request, problem) {
      const key = request.caller?.key ?? request.rejectedKey
      const isClientError = problem.status < 500 && !NOT_RECORDED.includes(problem.status)
      if (key && key.tenantId !== null && isClientError)
        rejections.recordForKey(toKeyRejection({ ...{ request, key, problem }, tenantId: key.tenantId, at: now() }))
    },
    items(request, items) {
      const { key, tenantId } = request.caller
      const at = now()
      for (const { index, errors, text } of items) {
        const problem = problems.invalid(errors, `Item ${index}: ${errors.map(validationErrorSentence).join('; ')}`)
        rejections.recordForKey(toKeyRejection({ request, key, problem, tenantId, at, text }))
      }
    },
  }
  app.addHook('onRoute', route => {
    if ([route.method].flat().some(method => WRITES.includes(method)))
      route.config = { ...route.config, rejections: recorder }
  })
}

type RejectionFacts = {
  request: FastifyRequest
  key: KeyOfTenant
  tenantId: number
  problem: Problem
  at: Date
  /** The text of a batch item. Default: the body. */
  text?: string
}

function toKeyRejection({ request, key, tenantId, problem, at, text = request.rawText }: RejectionFacts): KeyRejection {
  const ip = keptAddress(key.ipAddresses, request.ip)
  return {
    ...{ tenantId, keyId: key.id, at, status: problem.status, code: problem.code },
    route: `${request.method} ${request.routeOptions.url}`,
    detail: storableText(rejectionDetail(problem, ip).slice(0, MAX_TEXT)),
    example: () => ({
      ip,
      userAgent: readUserAgent(request, key.ipAddresses),
      bytes: countBytes(request, text),
      body: storableBeginning(text, key),
    }),
  }
}

function readUserAgent({ headers }: FastifyRequest, mode: IpMode): string | null {
  const agent = headers['user-agent']?.slice(0, 2 * MAX_TEXT)
  if (agent === undefined) return null
  return headerWithoutAddresses(mode, 'user-agent', agent)?.slice(0, MAX_TEXT) ?? null
}

/** All validation errors, without credentials that they may quote. */
function rejectionDetail({ code, detail, errors }: Problem, ip: string | null): string {
  // The detail contains the address: replace it by the address as the tenant stores it.
  if (code === ADDRESS_NOT_ALLOWED) return problems.addressNotAllowed(ip ?? 'this address').detail
  // With several errors the detail is only their number; the detail of an item lists them itself.
  const isCount = errors && errors.length > 1 && !detail.includes(errors[0]!.message)
  const words = isCount ? errors.map(validationErrorSentence).join('; ') : detail
  return withoutCredentials(words.slice(0, 2 * MAX_TEXT))
}

/** The beginning of a body or item, without credentials and addresses. */
function storableBeginning(text: string, { ipAddresses }: KeyOfTenant): string | null {
  if (text === '') return null
  // Cut before redacting: a key or an address that crosses the end is removed with its field.
  const beginning = text.slice(0, 2 * MAX_BODY)
  return storableText(withoutCredentials(withoutAddresses(ipAddresses, beginning)).slice(0, MAX_BODY))
}

function countBytes({ headers }: FastifyRequest, text: string): number | null {
  return storableInt(text === '' ? Number(headers['content-length']) : Buffer.byteLength(text))
}

/** Limits a number to PostgreSQL's integer. Null: not a number. */
function storableInt(number: number): number | null {
  return Number.isSafeInteger(number) ? Math.min(number, 2_147_483_647) : null
}

/** A rejected request to a source, for its operators; null: the request was not rejected. */
export function toSourceRejection(request: FastifyRequest, now: Date): Omit<SourceRejection, 'suppressed'> | null {
  const { problem, target } = request
  // A 5xx is not the sender's error.
  if (problem === null || target === null || problem.status >= 500) return null
  const { source } = target
  const ip = keptAddress(source.ipAddresses, request.ip)
  const body = request.body as RawBody | undefined
  return {
    tenantId: source.tenantId,
    sourceId: source.id,
    rejectedAt: now,
    status: problem.status,
    code: problem.code === 'malformed_json' ? 'unparsable_json' : problem.code,
    detail: rejectionDetail(problem, ip).slice(0, MAX_TEXT),
    ip,
    userAgent: readUserAgent(request, source.ipAddresses),
    bytes: storableInt(body?.raw.length ?? Number(request.headers['content-length'])),
    isAuthenticated: request.isAuthenticated,
  }
}
