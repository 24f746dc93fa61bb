import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import { WHOLE_DAY_UTC } from '../../domain/time-zone.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import { type ConcurrencyLimit, openConcurrencyLimit } from '../../overload/limits.ts'
import { CONTENT_TYPES, exportBytes, FORMATS, type Format } from '../../reports/export/export.ts'
import { findTable, shownColumns, TABLES, type Table, type TableName } from '../../reports/export/tables.ts'
import { customerPages } from '../../store/customers/list.ts'
import type { RequestAdmin } from '../admin/routes.ts'
import { ById } from '../admin/schemas.ts'
import type { App } from '../app.ts'
import { customerBody, customerFilters, customerList, untilCurrent } from '../customers/list.ts'
import type { CustomerBody } from '../customers/schemas.ts'
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

const format = Type.Enum([...FORMATS], { default: 'ndjson', description: 'The format of the file' })

const exportQuery = (name: TableName) =>
  Type.Object({
    format,
    since: Type.Optional(Type.String({ format: 'timestamp', description: `Inclusive lower bound of ${BOUNDS[name]}` })),
    until: Type.Optional(
      Type.String({ format: 'timestamp', description: `Inclusive upper bound of ${BOUNDS[name]}. ${WHOLE_DAY_UTC}` }),
    ),
  })

const answer = (name: keyof typeof EXPORTED_ROWS) => ({
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
  'Streams all rows of the table. Each row occurs once, even while new rows arrive. Nested values are JSON strings in CSV and Parquet.'

type Export = { tenantId: number; name: string; format: Format; bytes: AsyncGenerator<Uint8Array> }
type NextPart = <Part>(read: () => Promise<Part>) => Promise<Part>

type ExportOptions = { pool: pg.Pool; exportLimit: ConcurrencyLimit }

/** Whole tables as files. If an export fails midway, the connection breaks, so that the client notices the incomplete file. */
export function exportRoutes(app: App, { pool, exportLimit, now }: ExportOptions & { now: () => Date }): void {
  const send = exportSender(exportLimit)
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
        const file = tableFile(pool, request.caller.tenantId, name, request.query)
        return send(reply, file, read => request.inReadQueue(read))
      },
    )
  app.get(
    '/v1/export/customers',
    {
      exposeHeadRoute: false,
      config: { scope: 'contacts:read', problems: [429] },
      schema: {
        tags: ['Export'],
        summary: 'Export customers',
        description:
          'All rows of `GET /v1/customers` with these filters, in this order. Each person who is in the list at the start of the export occurs once. Nested values are JSON strings in CSV and Parquet.',
        querystring: Type.Object({ format, ...customerFilters }),
        response: answer('customers'),
      },
    },
    async (request, reply) => {
      const { query, caller, headers } = request
      const { tenantId } = caller
      await untilCurrent(pool, tenantId, headers.prefer)
      const list = await customerList(pool, query, { caller, now: now() })
      const table: Table<CustomerBody> = {
        ...CUSTOMERS,
        async *pages(db) {
          for await (const rows of customerPages(db, tenantId, list))
            yield rows.map(row => customerBody(row, caller.key.scopes))
        },
      }
      const bytes = exportBytes(pool, tenantId, { table, window: NO_WINDOW, format: query.format })
      return send(reply, { tenantId, name: 'customers', format: query.format, bytes }, read =>
        request.inReadQueue(read),
      )
    },
  )
}

const NO_WINDOW = { since: null, until: null }

const CUSTOMERS = {
  scope: 'contacts:read',
  columns: shownColumns({
    ...{ profile_id: 'text', contact_id: 'text', customer: 'text', name: 'text', email: 'text', company: 'text' },
    ...{ country: 'text', channel: 'text', plans: 'json', first_seen_at: 'text', last_seen_at: 'text' },
    ...{ customer_since: 'text', orders: 'number', revenue: 'json', mrr: 'json', status: 'text' },
  }),
  text: (row: CustomerBody) => JSON.stringify(row),
} as const

function tableFile(
  pool: pg.Pool,
  tenantId: number,
  name: TableName,
  query: Static<ReturnType<typeof exportQuery>>,
): Export {
  const { format } = query
  const bytes = exportBytes(pool, tenantId, { table: findTable(name), window: timeWindow(query), format })
  return { tenantId, name, format, bytes }
}

/** The same files for the command line, with an admin key. */
export function adminExportRoutes(
  app: App,
  { pool, exportLimit, admin }: ExportOptions & { admin: RequestAdmin },
): void {
  const send = exportSender(exportLimit)
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
        return send(reply, tableFile(pool, tenantId, name, query), read => read())
      },
    )
}

/** Bounds the exports of a server, through the data API and the admin API together. */
export const openExportLimit = (): ConcurrencyLimit => openConcurrencyLimit(MAX_EXPORTS)

function exportSender(exports: ConcurrencyLimit) {
  return async (reply: unknown, { tenantId, name, format, bytes }: Export, inQueue: NextPart): Promise<never> => {
    const end = exports.acquire(tenantId)
    if (!end)
      throw problems.tooManyRequests(
        RETRY_AFTER_S,
        `Too many exports are running. A server runs at most ${MAX_EXPORTS.perTenant} per tenant and ${MAX_EXPORTS.total} in total at the same time. Retry later.`,
      )
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
