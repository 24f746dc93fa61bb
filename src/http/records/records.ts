import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { ENTITY_TYPES, type EntityType, type RecordContext } from '../../domain/records/records.ts'
import { parseTimestamp } from '../../domain/time.ts'
import type { Accept } from '../../intake/accept.ts'
import type { Log } from '../../log/log.ts'
import { findProduct, findRecord, listRecords, type StoredRecord } from '../../store/records/records.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { decodeCursor, isTimestamp, PagedList, pageParameters, readPage } from '../paging.ts'
import { problems } from '../problems.ts'
import { validationFaults } from '../validation.ts'
import { batchRoute } from './batch.ts'
import { Accepted, type RecordBody, RecordDeleteBody, RecordWriteBody, StoredRecordBody } from './schemas.ts'
import { type Waiting, waitSeconds } from './waiting.ts'
import { duplicateOf, entryOf, faultsOfRecord, headerKey, isKey, outcomeOf, warningsOf } from './write.ts'

type RecordRouteOptions = {
  pool: pg.Pool
  log: Log
  accept: Accept
  waiting: Waiting
  now: () => Date
}

const WriteHeaders = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      description: 'A repeated key is answered 200 with duplicate: true, and nothing is applied again.',
    }),
  ),
  prefer: Type.Optional(
    Type.String({ description: 'wait=N (up to 10): hold the answer until the change is applied.' }),
  ),
})

const ListQuery = Type.Object({
  ...pageParameters,
  updated_since: Type.Optional(Type.String({ format: 'timestamp' })),
  include_deleted: Type.Boolean({ default: false }),
})

export function recordRoutes(app: App, options: RecordRouteOptions): void {
  for (const entityType of ENTITY_TYPES) {
    const path = `/v1/${entityType}s` as const
    const write = writeHandler('write', entityType, options)
    const remove = writeHandler('delete', entityType, options)
    const responses = { 202: Accepted, 200: Accepted }

    app.post(
      path,
      {
        attachValidation: true,
        config: { scope: `${entityType}s:write` },
        schema: {
          tags: ['Records'],
          summary: `Create or update ${article(entityType)}`,
          headers: WriteHeaders,
          body: RecordWriteBody,
          response: responses,
        },
      },
      write,
    )
    app.delete(
      path,
      {
        attachValidation: true,
        config: { scope: `${entityType}s:write` },
        schema: {
          tags: ['Records'],
          summary: `Delete ${article(entityType)}`,
          headers: WriteHeaders,
          body: RecordDeleteBody,
          response: responses,
        },
      },
      remove,
    )
    app.get(
      `${path}/:id`,
      {
        config: { scope: `${entityType}s:read` },
        schema: {
          tags: ['Records'],
          summary: entityType === 'product' ? 'Get a product by SKU' : `Get ${article(entityType)} by ID`,
          params: Type.Object({ id: Type.String() }),
          response: { 200: StoredRecordBody },
        },
      },
      async (request, reply) => {
        const { tenantId } = request.caller
        const record =
          entityType === 'product'
            ? await findProduct(options.pool, tenantId, request.params.id)
            : await findRecord(options.pool, tenantId, entityType, request.params.id)
        if (!record) throw problems.notFound(`There is no such ${entityType}.`)
        return sendJson(reply, recordText(record))
      },
    )
    app.get(
      path,
      {
        config: { scope: `${entityType}s:read` },
        schema: {
          tags: ['Records'],
          summary: `List ${entityType}s, in the order of their last change here`,
          querystring: ListQuery,
          response: { 200: PagedList(StoredRecordBody) },
        },
      },
      async (request, reply) =>
        sendJson(reply, await listText(options.pool, request.caller.tenantId, entityType, request.query)),
    )
    batchRoute(app, entityType, options)
  }
}

function writeHandler(op: RecordContext['op'], entityType: EntityType, options: RecordRouteOptions) {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const now = options.now()
    const given = request.body as RecordBody
    const key =
      headerKey(request) ?? (typeof given?.idempotencyKey === 'string' ? given.idempotencyKey : undefined)
    const faults = [
      ...validationFaults(request.validationError),
      ...faultsOfRecord(op, entityType, given, request.rawText, key),
    ]
    const { tenantId } = request.caller
    if (faults.length > 0) {
      // A used key is answered as such whatever the body, also one that would be refused.
      const first = key === undefined || !isKey(key) ? null : await options.log.firstUse(tenantId, key)
      if (!first) throw problems.invalid(faults)
      reply.header('location', `/v1/operations/${first.operationId}`)
      return reply.code(200).send({ ...duplicateOf(first), payloadMismatch: true })
    }

    const append = entryOf(op, tenantId, entityType, given, request.rawText, key, now)
    const [appended] = await options.accept([append])
    const outcome = outcomeOf(append, appended!.duplicateOf, entityType, given)
    const warnings = warningsOf(given, now)
    const wait = waitSeconds(request.headers.prefer)
    const status =
      wait === null
        ? undefined
        : ((await options.waiting(tenantId, [outcome.operationId], wait)).get(outcome.operationId) ??
          'queued')
    reply.header('location', `/v1/operations/${outcome.operationId}`)
    if (wait !== null) reply.header('preference-applied', `wait=${wait}`)
    return reply
      .code(outcome.duplicate ? 200 : 202)
      .send({ ...outcome, ...(status && { status }), ...(warnings.length > 0 && { warnings }) })
  }
}

async function listText(
  pool: pg.Pool,
  tenantId: number,
  entityType: EntityType,
  query: Static<typeof ListQuery>,
): Promise<string> {
  // Any text can be an id.
  const after = decodeCursor(query.cursor, isTimestamp, () => true)
  const { rows, nextCursor } = await readPage(
    query,
    limit =>
      listRecords(pool, tenantId, entityType, {
        limit,
        updatedSince: parseTimestamp(query.updated_since),
        includeDeleted: query.include_deleted,
        after: after && { changedAt: after[0], id: after[1] },
      }),
    last => [last.changedAt, last.id],
  )
  const results = rows.map(row => recordText(row, query.include_deleted))
  return `{"results":[${results.join(',')}],"next_cursor":${JSON.stringify(nextCursor)}}`
}

/** The data goes out as it is stored: parsing it would cost time and exact digits. */
function recordText(record: StoredRecord, withDeleted = false): string {
  const deleted = withDeleted ? `,"deleted":${record.deleted}` : ''
  return `{"entityType":"${record.entityType}","id":${JSON.stringify(record.id)},"externalId":${JSON.stringify(record.externalId)},"sourceUpdatedAt":"${record.sourceUpdatedAt.toISOString()}","data":${record.data ?? 'null'},"createdAt":"${record.createdAt.toISOString()}","updatedAt":"${record.updatedAt.toISOString()}"${deleted}}`
}

function article(entityType: EntityType): string {
  return entityType === 'order' ? 'an order' : `a ${entityType}`
}
