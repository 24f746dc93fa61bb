import type { FastifyRequest } from 'fastify'
import { storableText } from '../domain/json/json.ts'
import { withoutCredentials } from '../domain/tenants/credentials.ts'
import {
  headerWithoutAddresses,
  type IpMode,
  keptAddress,
  withoutAddresses,
} from '../domain/tenants/ip-addresses.ts'
import { type ValidationError, validationErrorSentence } from '../domain/validation-error.ts'
import type { Refusal, Refusals } from '../intake/refusals.ts'
import type { KeyOfTenant } from '../store/tenants/keys.ts'
import type { App } from './app.ts'
import { ADDRESS_NOT_ALLOWED, type Problem, problems } from './problems.ts'

/** An item of a batch, as it was written. */
export type RefusedItem = { index: number; faults: ValidationError[]; text: string }

/** Told of what a route refuses. */
export type Refused = {
  request(request: FastifyRequest, problem: Problem): void
  /** Items of a batch that is accepted but for them. */
  items(request: FastifyRequest, items: RefusedItem[]): void
}

declare module 'fastify' {
  interface FastifyContextConfig {
    refused?: Refused
  }
  interface FastifyRequest {
    /** A key that is known, and was refused. */
    refusedKey: KeyOfTenant | null
  }
}

const WRITES = ['POST', 'DELETE']
// What it is asked for is not there, or it never arrived: nobody's data was refused.
const NOT_REFUSED = [404, 408]
const MAX_TEXT = 500
const MAX_BODY = 2_000

/** Writes with a known key that are refused are kept for the tenant's people. What is accepted pays nothing for it. */
export function keepRefused(app: App, { refusals, now }: { refusals: Refusals; now: () => Date }): void {
  const refused: Refused = {
    request(request, problem) {
      const key = request.caller?.key ?? request.refusedKey
      const isTheirs = problem.status < 500 && !NOT_REFUSED.includes(problem.status)
      if (key && key.tenantId !== null && isTheirs)
        refusals.note(refusalOf({ ...{ request, key, problem }, tenantId: key.tenantId, at: now() }))
    },
    items(request, items) {
      const { key, tenantId } = request.caller
      const at = now()
      for (const { index, faults, text } of items) {
        const problem = problems.invalid(
          faults,
          `Item ${index}: ${faults.map(validationErrorSentence).join('; ')}`,
        )
        refusals.note(refusalOf({ request, key, problem, tenantId, at, text }))
      }
    },
  }
  app.addHook('onRoute', route => {
    if ([route.method].flat().some(method => WRITES.includes(method)))
      route.config = { ...route.config, refused }
  })
}

type What = {
  request: FastifyRequest
  key: KeyOfTenant
  tenantId: number
  problem: Problem
  at: Date
  /** Of an item; else the body is meant. */
  text?: string
}

function refusalOf({ request, key, tenantId, problem, at, text = request.rawText }: What): Refusal {
  const ip = keptAddress(key.ipAddresses, request.ip)
  return {
    ...{ tenantId, keyId: key.id, at, status: problem.status, code: problem.code },
    route: `${request.method} ${request.routeOptions.url}`,
    detail: storableText(refusalDetail(problem, ip).slice(0, MAX_TEXT)),
    example: () => ({
      ip,
      userAgent: userAgentOf(request, key.ipAddresses),
      bytes: bytesOf(request, text),
      body: beginningOf(text, key),
    }),
  }
}

export function userAgentOf({ headers }: FastifyRequest, mode: IpMode): string | null {
  const agent = headers['user-agent']?.slice(0, 2 * MAX_TEXT)
  if (agent === undefined) return null
  return headerWithoutAddresses(mode, 'user-agent', agent)?.slice(0, MAX_TEXT) ?? null
}

/** In words, with everything that is wrong, and without a credential that it may quote. */
export function refusalDetail({ code, detail, errors }: Problem, ip: string | null): string {
  // The reason names the address: here as the tenant keeps it.
  if (code === ADDRESS_NOT_ALLOWED) return problems.addressNotAllowed(ip ?? 'its address').detail
  // Of several the detail only says how many; that of an item tells them itself.
  const isCount = errors && errors.length > 1 && !detail.includes(errors[0]!.message)
  const words = isCount ? errors.map(validationErrorSentence).join('; ') : detail
  return withoutCredentials(words.slice(0, 2 * MAX_TEXT))
}

/** Never with a credential. */
function beginningOf(text: string, { ipAddresses }: KeyOfTenant): string | null {
  if (text === '') return null
  // Cut first: a key or an address that ends beyond is cut off with its field.
  const beginning = text.slice(0, 2 * MAX_BODY)
  return storableText(withoutCredentials(withoutAddresses(ipAddresses, beginning)).slice(0, MAX_BODY))
}

function bytesOf({ headers }: FastifyRequest, text: string): number | null {
  const sent = text === '' ? Number(headers['content-length']) : Buffer.byteLength(text)
  return Number.isSafeInteger(sent) ? Math.min(sent, 2_147_483_647) : null
}
