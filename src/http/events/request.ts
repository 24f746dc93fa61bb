import type { FastifyRequest } from 'fastify'
import { type Body, countSendable, MAX_NAMED_REJECTIONS, openBody } from '../../domain/events/normalize/normalize.ts'
import type { EventContext, Inspection, RejectedItem } from '../../domain/events/types.ts'
import { isObject } from '../../domain/json/json.ts'
import { headersWithoutAddresses, keptAddress, withoutAddresses } from '../../domain/tenants/ip-addresses.ts'
import { Type } from '../../domain/typebox.ts'
import { type Accept, eventEntry } from '../../intake/accept.ts'
import type { Budgets, RateLimit } from '../../overload/budgets.ts'
import { type Caller, originRefusal, type TrackingCaller } from '../auth.ts'
import { type Problem, problems } from '../problems.ts'

export type EventRouteOptions = {
  accept: Accept
  budgets: Budgets
  trackingCaller: TrackingCaller
  now: () => Date
}

const KEPT_HEADERS = ['content-type', 'user-agent', 'x-request-id'] as const

type RequestContext = {
  ip: string | null
  headers: Record<string, string>
  key: number
  trusted?: true
  allowedTypes?: string[]
  floorDays?: number
}

/** The caller by the key in the header or query, otherwise by writeKey in the body. */
export function findCaller(
  request: FastifyRequest,
  body: unknown,
  options: EventRouteOptions,
): Caller | Promise<Caller> {
  if (request.caller) return request.caller
  const writeKey = isObject(body) ? (body.writeKey ?? firstWriteKey(body)) : undefined
  if (typeof writeKey === 'string' && writeKey !== '') return callerWith(writeKey, request, options)
  throw problems.unauthorized(
    'missing_credentials',
    'Send a tracking key (trk_…) in the header Authorization: Bearer, the query parameter key, or writeKey in the body.',
  )
}

async function callerWith(
  writeKey: string,
  request: FastifyRequest,
  { trackingCaller }: EventRouteOptions,
): Promise<Caller> {
  const caller = await trackingCaller(writeKey, request)
  const refusal = originRefusal(caller.key, request)
  if (refusal) {
    request.rejectedKey = caller.key
    throw refusal
  }
  request.caller = caller
  request.markAuthenticated()
  return caller
}

function firstWriteKey(body: Record<string, unknown>): unknown {
  const first = Array.isArray(body.batch) ? body.batch[0] : undefined
  return isObject(first) ? first.writeKey : undefined
}

/** What is stored of a request in addition to its body; never a credential. */
export function readRequestContext(request: FastifyRequest, { key }: Caller): RequestContext {
  const headers: Record<string, string> = {}
  // The address and the program of an importer say nothing about the people in the events.
  const isImport = request.routeOptions.url === '/v1/import' && key.server
  for (const name of KEPT_HEADERS) {
    if (isImport && name === 'user-agent') continue
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value.slice(0, 1_024)
  }
  const { event_types: allowedTypes } = key.limits
  return {
    ip: isImport ? null : keptAddress(key.ipAddresses, request.ip),
    headers: headersWithoutAddresses(key.ipAddresses, headers),
    key: key.number,
    ...(key.server && { trusted: true }),
    ...(allowedTypes.length > 0 && { allowedTypes }),
    ...(key.eventsFloorDays !== null && !key.server && { floorDays: key.eventsFloorDays }),
  }
}

/** Accepts the valid events of a request and returns the others. Throws if there is no valid event. */
export async function acceptEvents(
  { accept, budgets }: { accept: Accept; budgets: Budgets },
  { tenantId, key }: Caller,
  body: Body,
  context: EventContext,
  now: Date,
): Promise<RejectedItem[]> {
  if (body.error !== null) throw problems.malformed(`${body.error}.`)
  // The limits of the key first: an item that they reject costs nothing else.
  const wanted = countSendable(body, context)
  return withinBudget(budgets, key, wanted, async () => {
    const isUnchanged = key.ipAddresses === 'keep' || wanted === 0
    const kept = isUnchanged ? body : openBody(withoutAddresses(key.ipAddresses, body.original))
    const { inspection, append } = eventEntry(tenantId, kept, context, now)
    const events = inspection.accepted.length
    if (events === 0) throw toRejectionProblem(inspection, '/batch')
    await accept([append])
    return { events, result: inspection.rejected }
  })
}

/** Takes `wanted` events of the key's budget. What is not accepted is given back. */
async function withinBudget<T>(
  budgets: Budgets,
  { id, limits: { rate_limit: limit } }: Caller['key'],
  wanted: number,
  send: () => Promise<{ events: number; result: T }>,
): Promise<T> {
  if (limit === null || wanted === 0) return (await send()).result
  const rejected = await budgets.takeAll(id, limit, wanted)
  if (rejected) throw problems.tooManyRequests(rejected.retryAfterMs / 1000, rateDetail(limit))
  let accepted = 0
  try {
    const { events, result } = await send()
    accepted = events
    return result
  } finally {
    budgets.giveBack(id, limit, wanted - accepted).catch(() => undefined)
  }
}

function rateDetail({ events, per_seconds }: RateLimit): string {
  return `The rate limit of this key is ${events} ${events === 1 ? 'event' : 'events'} per ${per_seconds} s. Retry later.`
}

/** Why a request without any valid event is rejected; `list` is the pointer at which events were expected. */
export function toRejectionProblem({ errors, isTooLarge, isForbidden }: Inspection, list: string): Problem {
  if (isForbidden)
    return problems.forbidden('event_type_not_allowed', 'This key is not allowed to send events of this type.')
  if (isTooLarge) return problems.payloadTooLarge(errors[0]!.message)
  if (errors.length === 0) return problems.invalid([{ pointer: list, message: 'must contain at least one event' }])
  if (errors.length <= MAX_NAMED_REJECTIONS) return problems.invalid(errors)
  return problems.invalid(
    errors.slice(0, MAX_NAMED_REJECTIONS),
    `${errors.length} validation errors. The field errors lists the first ${MAX_NAMED_REJECTIONS}.`,
  )
}

export const RejectedItemBody = Type.Object(
  { index: Type.Integer({ description: 'The position in the request, from 0' }), message: Type.String() },
  { title: 'RejectedItem', description: 'An invalid item of a batch, and why it is invalid' },
)

export const RejectedItems = {
  rejected: Type.Array(RejectedItemBody, {
    description: `Invalid items, kept as dead letters; the first ${MAX_NAMED_REJECTIONS}`,
  }),
  rejected_total: Type.Optional(Type.Integer({ description: 'The number of rejected items, if larger than the list' })),
}

/** For the response: the first rejected items, and their total number if there are more. */
export function namedRejections(rejected: RejectedItem[]): {
  rejected: RejectedItem[]
  rejected_total?: number
} {
  if (rejected.length <= MAX_NAMED_REJECTIONS) return { rejected }
  return { rejected: rejected.slice(0, MAX_NAMED_REJECTIONS), rejected_total: rejected.length }
}
