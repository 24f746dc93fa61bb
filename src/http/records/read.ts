import type pg from 'pg'
import { storableText } from '../../domain/json/json.ts'
import type { EntityType } from '../../domain/records/records.ts'
import { parseTimestamp, timestampText } from '../../domain/time.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import { type Column, RECORD_COLUMNS } from '../../reports/export/tables.ts'
import { recordText } from '../../store/export/row-texts.ts'
import { contactNames, findProduct, findRecord, type ListedRecord, listRecords } from '../../store/records/records.ts'
import type { App } from '../app.ts'
import {
  decodeCursor,
  isTimestamp,
  type ListOfPortions,
  PagedList,
  pageParameters,
  rowLimit,
  sendJson,
  sendList,
} from '../paging.ts'
import { problems } from '../problems.ts'
import { buildBodies, withArticle } from './schemas.ts'

const DELETED: Column<ListedRecord> = { name: 'deleted', type: 'boolean', of: row => row.deleted }

const ListQuery = Type.Object({
  ...pageParameters,
  updated_since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive lower bound of updatedAt' })),
  include_deleted: Type.Boolean({ default: false, description: 'Also list deleted records, with deleted: true' }),
  order: Type.Enum(['oldest', 'newest'], { default: 'oldest', description: 'By the last change' }),
})

export function readRoutes(app: App, entityType: EntityType, { pool }: { pool: pg.Pool }): void {
  const { stored } = buildBodies(entityType)
  app.get(
    `/v1/${entityType}s/:id`,
    {
      config: { scope: `${entityType}s:read` },
      schema: {
        tags: ['Records'],
        summary: entityType === 'product' ? 'Get a product by SKU' : `Get ${withArticle(entityType)} by ID`,
        description: `The latest version received.${entityType === 'product' ? ' Kontor searches by `data.sku` first, then by id.' : ''} 404: the record was deleted or never received.`,
        params: Type.Object({
          id: Type.String({
            description: entityType === 'product' ? 'SKU or id' : `Your identifier for the ${entityType}`,
          }),
        }),
        response: { 200: stored },
      },
    },
    async (request, reply) => {
      const { tenantId } = request.caller
      const { id } = request.params
      const record =
        entityType === 'product'
          ? await findProduct(pool, tenantId, id)
          : await findRecord(pool, tenantId, entityType, id)
      if (!record) throw problems.unknown(entityType, id)
      return sendJson(reply, recordText(record))
    },
  )
  app.get(
    `/v1/${entityType}s`,
    {
      config: { scope: `${entityType}s:read` },
      schema: {
        tags: ['Records'],
        summary: `List ${entityType}s`,
        description:
          'In the order of their last change, the oldest first by default. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: ListQuery,
        response: { 200: PagedList(stored) },
      },
    },
    async (request, reply) => {
      const list = buildList(pool, request.caller.tenantId, entityType, request.query)
      const columns = request.query.include_deleted ? [...RECORD_COLUMNS, DELETED] : RECORD_COLUMNS
      return sendList(request, reply, list, columns)
    },
  )
}

function buildList(
  pool: pg.Pool,
  tenantId: number,
  entityType: EntityType,
  query: Static<typeof ListQuery>,
): ListOfPortions<ListedRecord> {
  // Any string can be an id.
  const begin = decodeCursor(
    query.cursor,
    type => type === entityType,
    isTimestamp,
    () => true,
  )
  const after = begin && { changedAt: timestampText(begin[1])!, id: storableText(begin[2]) }
  return {
    limit: rowLimit(query),
    read: (limit, last) =>
      listRecords(pool, tenantId, entityType, {
        limit,
        newestFirst: query.order === 'newest',
        updatedSince: parseTimestamp(query.updated_since),
        includeDeleted: query.include_deleted,
        after: last ?? after,
      }),
    text: row => recordText(row, query.include_deleted),
    placeOf: ({ changedAt, id }) => [entityType, changedAt, id],
    end: cursor => `],"next_cursor":${JSON.stringify(cursor)}}`,
  }
}

const MAX_NAMES = 200

/** For lists that show people by their contact id. */
export function contactNamesRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/contact-names',
    {
      config: { scope: 'contacts:read' },
      schema: {
        tags: ['Records'],
        summary: 'Get the names of contacts',
        description: `The name of each contact, else its e-mail address. Contacts with neither are omitted. At most ${MAX_NAMES} ids.`,
        querystring: Type.Object({
          ids: Type.String({ maxLength: 60_000, description: 'Separated by line breaks', examples: ['c-1'] }),
        }),
        response: {
          200: Type.Object({
            results: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }), {
              description: 'One row per contact with a name',
            }),
          }),
        },
      },
    },
    async ({ query, caller }) => {
      const ids = storableText(query.ids).split('\n').slice(0, MAX_NAMES)
      return { results: await contactNames(pool, caller.tenantId, ids) }
    },
  )
}
