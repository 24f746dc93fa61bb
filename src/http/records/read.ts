import type { Readable } from 'node:stream'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import type { EntityType } from '../../domain/records/records.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { recordText } from '../../store/export/row-texts.ts'
import { findProduct, findRecord, type ListedRecord, listRecords } from '../../store/records/records.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import {
  decodeCursor,
  encodeCursor,
  isTimestamp,
  PagedList,
  pageParameters,
  portionedList,
  rowLimit,
} from '../paging.ts'
import { problems } from '../problems.ts'
import { StoredRecordBody, withArticle } from './schemas.ts'

const ListQuery = Type.Object({
  ...pageParameters,
  updated_since: Type.Optional(Type.String({ format: 'timestamp' })),
  include_deleted: Type.Boolean({ default: false }),
})

export function readRoutes(app: App, entityType: EntityType, { pool }: { pool: pg.Pool }): void {
  app.get(
    `/v1/${entityType}s/:id`,
    {
      config: { scope: `${entityType}s:read` },
      schema: {
        tags: ['Records'],
        summary: entityType === 'product' ? 'Get a product by SKU' : `Get ${withArticle(entityType)} by ID`,
        params: Type.Object({ id: Type.String() }),
        response: { 200: StoredRecordBody },
      },
    },
    async (request, reply) => {
      const { tenantId } = request.caller
      const { id } = request.params
      const record =
        entityType === 'product'
          ? await findProduct(pool, tenantId, id)
          : await findRecord(pool, tenantId, entityType, id)
      if (!record) throw problems.notFound(`There is no such ${entityType}.`)
      return sendJson(reply, recordText(record))
    },
  )
  app.get(
    `/v1/${entityType}s`,
    {
      config: { scope: `${entityType}s:read` },
      schema: {
        tags: ['Records'],
        summary: `List ${entityType}s in the order of their last change here`,
        querystring: ListQuery,
        response: { 200: PagedList(StoredRecordBody) },
      },
    },
    async (request, reply) =>
      sendJson(reply, await listText(pool, request.caller.tenantId, entityType, request.query)),
  )
}

function listText(
  pool: pg.Pool,
  tenantId: number,
  entityType: EntityType,
  query: Static<typeof ListQuery>,
): Promise<string | Readable> {
  // Any text can be an id.
  const begin = decodeCursor(query.cursor, isTimestamp, () => true)
  const after = begin && { changedAt: begin[0], id: begin[1] }
  return portionedList({
    limit: rowLimit(query),
    read: (limit, last: ListedRecord | null) =>
      listRecords(pool, tenantId, entityType, {
        limit,
        updatedSince: parseTimestamp(query.updated_since),
        includeDeleted: query.include_deleted,
        after: last ?? after,
      }),
    text: row => recordText(row, query.include_deleted),
    end(last, hasMore) {
      const cursor = hasMore && last ? encodeCursor([last.changedAt, last.id]) : null
      return `],"next_cursor":${JSON.stringify(cursor)}}`
    },
  })
}
