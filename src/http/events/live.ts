import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { storableText } from '../../domain/json/json.ts'
import { Type } from '../../domain/typebox.ts'
import { openConcurrencyLimit } from '../../overload/limits.ts'
import { followNewest } from '../../reports/newest.ts'
import { type ConversionRow, listConversions } from '../../store/conversions/conversions.ts'
import { type EventRow, listEvents } from '../../store/events/events.ts'
import { conversionText, eventText } from '../../store/export/row-texts.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { App } from '../app.ts'
import { authenticatePrivate, requireScope } from '../auth.ts'
import { problems } from '../problems.ts'

// Proxies close connections that are idle for a minute.
const KEEP_ALIVE_INTERVAL_MS = 15_000
const NEWEST = 50
// Each stream runs a small query every second.
const MAX_STREAMS = { perTenant: 25, total: 100 }

type Deps = { pool: pg.Pool; directory: Directory; now: () => Date }

/** New events as server-sent events. At a rate higher than a screen can show, some are left out. */
export function liveRoute(app: App, { pool, ...deps }: Deps): void {
  const streams = new Set<AbortController>()
  const followers = openConcurrencyLimit(MAX_STREAMS)
  app.addHook('preClose', async () => {
    for (const stream of streams) stream.abort()
  })
  const authenticate = authenticatePrivate(deps)
  app.get(
    '/v1/events/live',
    {
      config: { scope: 'events:read', problems: [503] },
      schema: {
        tags: ['Events'],
        summary: 'Stream events',
        description: `Streams new events as server-sent events. Every second, Kontor reads the newest ${NEWEST} events and sends the new ones, oldest first, as \`event: event\` with the row of GET /v1/events as data. With \`conversions\`, Kontor also sends conversions, as \`event: conversion\` with the row of GET /v1/conversions. Events that are not among the newest ${NEWEST} are not sent; the lists contain them. The stream ends when the key expires or is revoked. A tenant can have ${MAX_STREAMS.perTenant} streams at a time, or one while most of the ${MAX_STREAMS.total} streams of the server are in use. Further requests get 503.`,
        querystring: Type.Object({
          event_type: Type.Optional(Type.String({ description: 'Exact event type' })),
          conversions: Type.Boolean({
            default: false,
            description: 'Include conversions; requires the scope conversions:read',
          }),
          seconds: Type.Integer({
            ...{ minimum: 0, maximum: 3_600, default: 600 },
            description: 'Duration of the stream; reconnect to continue',
          }),
        }),
        response: {
          200: {
            description: 'text/event-stream',
            content: { 'text/event-stream': { schema: Type.String() } },
          },
        },
      },
    },
    (request, reply) => {
      const { tenantId } = request.caller
      const withSales = request.query.conversions
      if (withSales) requireScope(request.caller, 'conversions:read')
      const leave = followers.acquire(tenantId)
      if (!leave) throw problems.unavailable('Too many concurrent event streams. Retry shortly.')
      // Not AbortSignal.any(): a combined signal may be garbage-collected before a source aborts, and then never fires.
      const ending = new AbortController()
      streams.add(ending)
      const timer = setTimeout(() => ending.abort(), request.query.seconds * 1000)
      reply.raw.once('close', () => {
        clearTimeout(timer)
        streams.delete(ending)
        leave()
        ending.abort()
      })
      const eventType = request.query.event_type === undefined ? null : storableText(request.query.event_type)
      const page = { limit: NEWEST, offset: 0, since: null, until: null, after: null, eventType }
      const stream = follow({
        newest: () =>
          request.inReadQueue(async () => {
            const events = (await listEvents(pool, tenantId, page)).rows.map(eventMessage)
            if (!withSales) return events
            const sales = (await listConversions(pool, tenantId, page)).map(conversionMessage)
            return [...events, ...sales].sort((a, b) => b.at - a.at)
          }),
        isAllowed: () => isStillAllowed(authenticate, request, reply),
        signal: ending.signal,
      })
      return (
        reply
          .header('content-type', 'text/event-stream; charset=utf-8')
          .header('x-accel-buffering', 'no')
          // a cast, because the schema declares a string and the stream sends it in parts
          .send(Readable.from(stream) as never) as never
      )
    },
  )
}

/** A row as it is sent. The id is unique among events and conversions. */
type Message = { id: string; at: number; text: string }

function eventMessage(row: EventRow): Message {
  const text = `event: event\nid: ${row.id}\ndata: ${eventText(row)}\n\n`
  return { id: row.id, at: row.occurredAt.getTime(), text }
}

function conversionMessage(row: ConversionRow): Message {
  const text = `event: conversion\nid: ${row.id}\ndata: ${conversionText(row)}\n\n`
  return { id: `conversion ${row.id}`, at: row.occurredAt.getTime(), text }
}

type Following = { newest(): Promise<Message[]>; isAllowed(): Promise<boolean>; signal: AbortSignal }

async function* follow({ newest, isAllowed, signal }: Following): AsyncGenerator<string> {
  let lastSentAt: number | null = null
  for await (const fresh of followNewest({ newest, signal })) {
    if (!(await isAllowed())) return
    if (lastSentAt === null) {
      // Sent after the first query: every event stored after this line is sent.
      lastSentAt = performance.now()
      yield ': following\n\n'
      continue
    }
    if (fresh.length === 0 && performance.now() - lastSentAt < KEEP_ALIVE_INTERVAL_MS) continue
    yield fresh.map(({ text }) => text).join('') || ': \n\n'
    lastSentAt = performance.now()
  }
}

/** The key may expire or be revoked during the stream. */
function isStillAllowed(
  authenticate: ReturnType<typeof authenticatePrivate>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<boolean> {
  return new Promise(resolve => authenticate(request, reply, error => resolve(error === undefined)))
}
