import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import { Type } from 'typebox'
import { WHOLE_DAY } from '../../domain/time-zone.ts'
import { openConcurrencyLimit } from '../../overload/limits.ts'
import { CONTENT_TYPES, exportBytes, FORMATS } from '../../reports/export/export.ts'
import { findTable, TABLES, type TableName } from '../../reports/export/tables.ts'
import type { App } from '../app.ts'
import { timeWindow } from '../paging.ts'
import { problems } from '../problems.ts'
import { EXPORTED_ROWS } from './schemas.ts'

// Each export holds some megabytes until the client has read it.
const MAX_EXPORTS = { perTenant: 16, total: 32 }
const RETRY_AFTER_S = 10

const BOUNDS: Record<TableName, string> = {
  products: 'updatedAt',
  contacts: 'updatedAt',
  orders: 'updatedAt',
  events: 'occurred_at',
  conversions: 'occurred_at',
  subscriptions: 'updated_at',
  movements: 'occurred_at',
}

const exportQuery = (name: TableName) =>
  Type.Object({
    format: Type.Enum([...FORMATS], { default: 'ndjson', description: 'The format of the file' }),
    since: Type.Optional(Type.String({ format: 'timestamp', description: `Inclusive lower bound of ${BOUNDS[name]}` })),
    until: Type.Optional(
      Type.String({ format: 'timestamp', description: `Inclusive upper bound of ${BOUNDS[name]}. ${WHOLE_DAY}` }),
    ),
  })

/** Whole tables as files. If an export fails midway, the connection breaks, so that the client notices the incomplete file. */
export function exportRoutes(app: App, { pool }: { pool: pg.Pool }): void {
  const exports = openConcurrencyLimit(MAX_EXPORTS)
  for (const name of TABLES) {
    const table = findTable(name)
    app.get(
      `/v1/export/${name}`,
      {
        // A HEAD request would read the whole table.
        exposeHeadRoute: false,
        config: { scope: table.scope, problems: [429] },
        schema: {
          tags: ['Export'],
          summary: `Export ${name}`,
          description:
            'A stream of rows with the fields of the lists. Each row occurs once, even while new rows arrive. Nested values are JSON strings in CSV and Parquet.',
          querystring: exportQuery(name),
          response: {
            200: {
              description: 'The file. In NDJSON, each line is one object',
              content: Object.fromEntries(
                Object.entries(CONTENT_TYPES).map(([format, type]) => [
                  type.split(';')[0]!,
                  { schema: format === 'ndjson' ? EXPORTED_ROWS[name] : Type.String() },
                ]),
              ),
            },
          },
        },
      },
      async (request, reply) => {
        const { query, caller } = request
        const window = timeWindow(query)
        const end = exports.acquire(caller.tenantId)
        if (!end)
          throw problems.tooManyRequests(
            RETRY_AFTER_S,
            `At most ${MAX_EXPORTS.perTenant} exports can run at a time. Retry later.`,
          )
        const bytes = exportBytes(pool, caller.tenantId, { table, window, format: query.format })
        // Read before the response starts, so that an unavailable database is still a 503.
        const first = await bytes.next().catch(error => {
          end()
          throw error
        })
        const stream = Readable.from(
          whole(first, () => request.inReadQueue(() => bytes.next())),
          { objectMode: true, highWaterMark: 1 },
        )
        stream.once('close', () => {
          end()
          bytes.return(undefined).catch(() => undefined)
        })
        reply.header('content-type', CONTENT_TYPES[query.format])
        reply.header('content-disposition', `attachment; filename="${name}.${query.format}"`)
        return (reply as FastifyReply).send(stream)
      },
    )
  }
}

async function* whole<T>(first: IteratorResult<T>, next: () => Promise<IteratorResult<T>>): AsyncGenerator<T> {
  for (let part = first; !part.done; part = await next()) yield part.value
}
