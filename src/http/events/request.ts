import type { FastifyRequest } from 'fastify'
import type { EventContext, RejectedItem } from '../../domain/events/events.ts'
import type { Body } from '../../domain/events/normalize/normalize.ts'
import type { Accept } from '../../intake/accept.ts'
import { eventEntry } from '../../intake/events.ts'
import type { Caller } from '../auth.ts'
import { problems } from '../problems.ts'

const KEPT_HEADERS = ['content-type', 'user-agent', 'x-request-id'] as const

type Facts = { ip: string; headers: Record<string, string>; keyId: string; trusted?: true }

/** What is kept of a request beside its body: never a credential. */
export function factsOf(request: FastifyRequest, { key }: Caller): Facts {
  const headers: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value.slice(0, 1_024)
  }
  return { ip: request.ip, headers, keyId: key.id, ...(key.server && { trusted: true }) }
}

/** Accepts the valid events of a request and returns the others; a request without any valid event is a 400. */
export async function acceptEvents(
  accept: Accept,
  tenantId: number,
  body: Body,
  context: EventContext,
  now: Date,
): Promise<RejectedItem[]> {
  if (body.fault !== null) throw problems.malformed(`${body.fault}.`)
  const { inspection, append } = eventEntry(tenantId, body, context, now)
  if (inspection.accepted.length === 0) {
    throw problems.invalid(
      inspection.faults.length > 0
        ? inspection.faults
        : [{ pointer: '/batch', message: 'must not be empty' }],
    )
  }
  await accept([append])
  return inspection.rejected
}
