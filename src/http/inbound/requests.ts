import type pg from 'pg'
import { parseTimestamp } from '../../domain/time.ts'
import { Type } from '../../domain/typebox.ts'
import { openConcurrencyLimit } from '../../overload/limits.ts'
import { isRequestCursor, readRequests } from '../../reports/inbound-requests.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { App } from '../app.ts'
import { requireScope } from '../auth.ts'
import { invalidCursor } from '../paging.ts'
import { problems } from '../problems.ts'
import { InboundAnswer, InboundParams } from './receive.ts'

// Each listener runs two small queries every half second.
const MAX_LISTENERS = { perTenant: 25, total: 100 }

const Query = Type.Object({
  since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive lower bound of received_at' })),
  cursor: Type.Optional(
    Type.String({ description: 'next_cursor of the previous response. Without cursor and since: only new requests' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Maximum number of requests' }),
  wait: Type.Integer({
    ...{ minimum: 0, maximum: 30, default: 0 },
    description: 'Seconds to wait for the first request',
  }),
})

const Requests = Type.Object({
  results: Type.Array(
    Type.Object(
      {
        id: Type.String(),
        received_at: Type.String(),
        headers: Type.Array(Type.Array(Type.String()), {
          description: 'Name and value pairs as received, without Authorization, Cookie and keys',
        }),
        answer: InboundAnswer,
        body: Type.String({ description: 'Decompressed, otherwise as received' }),
        body_encoding: Type.Enum(['utf-8', 'base64']),
      },
      { title: 'InboundRequest', description: 'A request to a source as received, and its response' },
    ),
  ),
  next_cursor: Type.String({ description: 'The position to continue from; also set if there are no requests' }),
})

type Deps = { pool: pg.Pool; directory: Directory }

/** The requests of a source as received, for developers of webhook handlers. */
export function requestListRoute(app: App, { pool, directory }: Deps): void {
  const waiting = new Set<AbortController>()
  const listeners = openConcurrencyLimit(MAX_LISTENERS)
  app.addHook('preClose', async () => {
    for (const ending of waiting) ending.abort()
  })
  app.get(
    '/v1/sources/:sourceConfigId/requests',
    {
      config: { scope: 'events:read', problems: [503], skipsReadQueue: true },
      schema: {
        tags: ['Inbound webhooks'],
        summary: 'List requests of a source',
        description:
          'Headers and bodies of accepted requests, duplicates included, oldest first; `kontor listen` shows and forwards them. Kontor records the first 1,000 requests that a source receives within 24 hours of its creation. Kontor records every request of the source for about seven days after each call of this route or of `kontor listen`. Kontor deletes each recorded request after three days. Requires events:read and conversions:read, because a body may contain either.',
        params: InboundParams,
        querystring: Query,
        response: { 200: Requests },
      },
    },
    async (request, reply) => {
      const { caller, params, query } = request
      const source = await directory.source(params.sourceConfigId)
      if (source?.tenantId !== caller.tenantId)
        throw problems.unknown('source', params.sourceConfigId, 'source_not_found')
      requireScope(caller, 'conversions:read')
      if (query.cursor !== undefined && !isRequestCursor(query.cursor)) throw invalidCursor()
      const leave = listeners.acquire(caller.tenantId)
      if (!leave) throw problems.unavailable('Too many concurrent listeners. Retry shortly.')
      const ending = new AbortController()
      const end = () => ending.abort()
      waiting.add(ending)
      reply.raw.once('close', end)
      try {
        const since = parseTimestamp(query.since)
        const page = { cursor: query.cursor ?? null, since, limit: query.limit, waitMs: query.wait * 1000 }
        return await readRequests(pool, { tenantId: caller.tenantId, sourceId: source.id }, page, ending.signal)
      } finally {
        waiting.delete(ending)
        leave()
        reply.raw.off('close', end)
      }
    },
  )
}
