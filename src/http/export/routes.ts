import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { WHOLE_DAY } from '../../domain/time-zone.ts'
import { openConcurrencyLimit } from '../../overload/limits.ts'
import { CONTENT_TYPES, exportBytes, FORMATS } from '../../reports/export/export.ts'
import { findTable, TABLES, type TableName } from '../../reports/export/tables.ts'
import type { RequestAdmin } from '../admin/routes.ts'
import { ById } from '../admin/schemas.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
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

const answer = (name: TableName) => ({
  200: {
    description: 'The file. In NDJSON, each line is one object',
    content: Object.fromEntries(
      Object.entries(CONTENT_TYPES).map(([format, type]) => [
        type.split(';')[0]!,
        { schema: format === 'ndjson' ? EXPORTED_ROWS[name] : Type.String() },
      ]),
    ),
  },
})

const DESCRIPTION =
  'A stream of rows with the fields of the lists. Each row occurs once, even while new rows arrive. Nested values are JSON strings in CSV and Parquet.'

type ExportRequest = { tenantId: number; name: TableName; query: Static<ReturnType<typeof exportQuery>> }
type NextPart = <Part>(read: () => Promise<Part>) => Promise<Part>

/** Whole tables as files. If an export fails midway, the connection breaks, so that the client notices the incomplete file. */
export function exportRoutes(app: App, { pool }: { pool: pg.Pool }): void {
  const send = exportSender(pool)
  for (const name of TABLES)
    app.get(
      `/v1/export/${name}`,
      {
        // A HEAD request would read the whole table.
        exposeHeadRoute: false,
        config: { scope: findTable(name).scope, problems: [429] },
        schema: {
          tags: ['Export'],
          summary: `Export ${name}`,
          description: DESCRIPTION,
          querystring: exportQuery(name),
          response: answer(name),
        },
      },
      async (request, reply) => {
        const { query, caller } = request
        return send(reply, { tenantId: caller.tenantId, name, query }, read => request.inReadQueue(read))
      },
    )
}

/** The same files for the command line, with an admin key. */
export function adminExportRoutes(app: App, { pool, admin }: { pool: pg.Pool; admin: RequestAdmin }): void {
  const send = exportSender(pool)
  for (const name of TABLES)
    app.get(
      `/admin/v1/tenants/:id/export/${name}`,
      {
        exposeHeadRoute: false,
        config: { role: 'admin', problems: [429] },
        schema: {
          tags: ['Admin: tenants'],
          security: security.admin,
          summary: `Export ${name} of a tenant`,
          description: `Role: \`admin\`. ${DESCRIPTION} The audit log records the export.`,
          params: ById,
          querystring: exportQuery(name),
          response: answer(name),
        },
      },
      async (request, reply) => {
        const { query, params } = request
        const what = { table: name, format: query.format }
        const tenantId = await admin(request).tenants.openExport(params.id, what)
        return send(reply, { tenantId, name, query }, read => read())
      },
    )
}

function exportSender(pool: pg.Pool) {
  const exports = openConcurrencyLimit(MAX_EXPORTS)
  return async (reply: unknown, { tenantId, name, query }: ExportRequest, inQueue: NextPart): Promise<never> => {
    const { format } = query
    const window = timeWindow(query)
    const end = exports.acquire(tenantId)
    if (!end)
      throw problems.tooManyRequests(
        RETRY_AFTER_S,
        `At most ${MAX_EXPORTS.perTenant} exports can run at a time. Retry later.`,
      )
    const bytes = exportBytes(pool, tenantId, { table: findTable(name), window, format })
    // Read before the response starts, so that an unavailable database is still a 503.
    const first = await bytes.next().catch(error => {
      end()
      throw error
    })
    const stream = Readable.from(
      whole(first, () => inQueue(() => bytes.next())),
      { objectMode: true, highWaterMark: 1 },
    )
    stream.once('close', () => {
      end()
      bytes.return(undefined).catch(() => undefined)
    })
    const response = reply as FastifyReply
    response.header('content-type', CONTENT_TYPES[format])
    response.header('content-disposition', `attachment; filename="${name}.${format}"`)
    return response.send(stream) as never
  }
}

async function* whole<T>(first: IteratorResult<T>, next: () => Promise<IteratorResult<T>>): AsyncGenerator<T> {
  for (let part = first; !part.done; part = await next()) yield part.value
}
