import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { arrayItems, isObject, objectFields, parseJson } from '../../domain/json/json.ts'
import type { EntityType, RecordContext } from '../../domain/records/records.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Accept } from '../../intake/accept.ts'
import type { Append } from '../../log/log.ts'
import { findFirstUse } from '../../log/postgres/claims.ts'
import type { App } from '../app.ts'
import type { RawBody } from '../body.ts'
import { problems } from '../problems.ts'
import type { RejectedRecord } from '../rejections.ts'
import { readValidationErrors, validatorCompiler } from '../validation.ts'
import {
  type AwaitOutcomes,
  acceptedBody,
  buildAppend,
  duplicateBody,
  findWarnings,
  idempotencyHeader,
  isIdempotencyKey,
  validateChange,
  waitSeconds,
} from './change.ts'
import { Accepted, BatchResult, buildBodies, type RecordBody, RecordWriteBody, withArticle } from './schemas.ts'

type WriteOptions = { pool: pg.Pool; accept: Accept; awaitOutcomes: AwaitOutcomes; now: () => Date }

const WriteHeaders = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      description: 'A repeated key returns 200 with duplicate: true, and the change is not applied again.',
    }),
  ),
  prefer: Type.Optional(Type.String({ description: 'wait=N (up to 10 seconds): respond when the change is applied.' })),
})

export function writeRoutes(app: App, entityType: EntityType, options: WriteOptions): void {
  const shared = { attachValidation: true, config: { scope: `${entityType}s:write` as const } }
  const bodies = buildBodies(entityType)
  const documented = { tags: ['Records'], headers: WriteHeaders, response: { 202: Accepted, 200: Accepted } }
  app.post(
    `/v1/${entityType}s`,
    {
      ...shared,
      schema: {
        ...documented,
        summary: `Create or update ${withArticle(entityType)}`,
        description:
          'The write is durable when the response arrives, and is applied shortly after (see `GET /v1/operations/:operationId`, or send `Prefer: wait=N`). The version with the newest `sourceUpdatedAt` wins, in any order of arrival.',
        body: bodies.write,
      },
    },
    changeHandler('write', entityType, options),
  )
  app.delete(
    `/v1/${entityType}s`,
    {
      ...shared,
      schema: {
        ...documented,
        summary: `Delete ${withArticle(entityType)}`,
        description:
          'A write older than the deletion does not restore the record, a newer one does. A record that was never received can be deleted too.',
        body: bodies.remove,
      },
    },
    changeHandler('delete', entityType, options),
  )
}

function changeHandler(op: RecordContext['op'], entityType: EntityType, options: WriteOptions) {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const now = options.now()
    const body = request.body as RecordBody
    const text = request.rawText
    const key =
      idempotencyHeader(request) ?? (typeof body?.idempotencyKey === 'string' ? body.idempotencyKey : undefined)
    const { tenantId } = request.caller
    const errors = [
      ...readValidationErrors(request.validationError),
      ...validateChange(op, entityType, { body, text, key }),
    ]
    if (errors.length > 0) {
      // A repeated idempotency key returns the first response, even with an invalid body.
      const isValidKey = key !== undefined && isIdempotencyKey(key)
      const first = isValidKey ? await findFirstUse(options.pool, tenantId, key) : null
      if (!first) throw problems.invalid(errors)
      reply.header('location', `/v1/operations/${first.operationId}`)
      return reply.code(200).send({ ...duplicateBody(first), payloadMismatch: true })
    }

    const append = buildAppend({ op, tenantId, entityType, body, text, key, now })
    const [appended] = await options.accept([append])
    const accepted = acceptedBody(append, appended!.duplicateOf, entityType, body)
    const { operationId } = accepted
    const warnings = findWarnings(body, now)
    reply.header('location', `/v1/operations/${operationId}`)
    const wait = waitSeconds(request.headers.prefer)
    if (wait !== null) reply.header('preference-applied', `wait=${wait}`)
    // A request that waits for the pipeline does not hold a place in the fair queue.
    request.leaveWriteQueue?.()
    const outcomes = wait === null ? null : await options.awaitOutcomes(tenantId, [operationId], wait)
    return reply.code(accepted.duplicate ? 200 : 202).send({
      ...accepted,
      ...(outcomes && { status: outcomes.get(operationId) ?? 'queued' }),
      ...(warnings.length > 0 && { warnings }),
    })
  }
}

const MAX_ITEMS = 1_000
const MAX_BYTES = 8 * 1_048_576

const BatchBody = Type.Object({ records: Type.Array(RecordWriteBody, { minItems: 1, maxItems: MAX_ITEMS }) })

const validateWrite = validatorCompiler()({ schema: RecordWriteBody, httpPart: 'body' })

type Result = Static<typeof BatchResult>['results'][number]

type BatchOptions = { accept: Accept; awaitOutcomes: AwaitOutcomes; now: () => Date }

/** Many writes in one request. Each item is accepted or rejected separately. */
export function batchRoute(app: App, entityType: EntityType, options: BatchOptions): void {
  app.post(
    `/v1/${entityType}s/batch`,
    {
      config: { scope: `${entityType}s:write`, body: 'raw', bodyLimit: MAX_BYTES },
      schema: {
        tags: ['Records'],
        summary: `Create or update up to 1,000 ${entityType}s`,
        description:
          'The body is {"records": [...]}, or one record per line with Content-Type: application/x-ndjson. Results are in the order of the records. With the header x-idempotency-key, a record without its own key uses "<key>#<index>".',
        body: BatchBody,
        response: { 202: BatchResult },
      },
    },
    async (request, reply) => {
      const now = options.now()
      const { tenantId } = request.caller
      const { results, accepted, rejected } = readItems(request, tenantId, entityType, now)
      if (rejected.length > 0) request.routeOptions.config.rejections?.items(request, rejected)
      const appended = accepted.length > 0 ? await options.accept(accepted.map(({ append }) => append)) : []
      for (const [i, { index, append, body }] of accepted.entries()) {
        const warnings = findWarnings(body, now)
        const outcome = acceptedBody(append, appended[i]!.duplicateOf, entityType, body)
        results[index] = { index, ...outcome, ...(warnings.length > 0 && { warnings }) }
      }
      const wait = waitSeconds(request.headers.prefer)
      if (wait !== null && accepted.length > 0) {
        const ids = accepted.map(({ index }) => results[index]!.operationId!)
        // A request that waits for the pipeline does not hold a place in the fair queue.
        request.leaveWriteQueue?.()
        const outcomes = await options.awaitOutcomes(tenantId, ids, wait)
        for (const { index } of accepted) {
          const result = results[index]!
          result.status = outcomes.get(result.operationId!) ?? 'queued'
        }
      }
      return reply.code(202).send({ results })
    },
  )
}

type AcceptedItem = { index: number; append: Append; body: RecordBody }

/** The items that can be accepted, and the results of the others. */
function readItems(request: FastifyRequest, tenantId: number, entityType: EntityType, now: Date) {
  const texts = itemTexts((request.body as RawBody).text, String(request.headers['content-type'] ?? ''))
  const batchKey = idempotencyHeader(request)
  const results: Result[] = []
  const accepted: AcceptedItem[] = []
  const rejected: RejectedRecord[] = []
  for (const [index, text] of texts.entries()) {
    const item = readItem(text, entityType, batchKey === undefined ? undefined : `${batchKey}#${index}`)
    if (item.errors.length > 0) {
      results[index] = { index, accepted: false, errors: item.errors }
      rejected.push({ index, errors: item.errors, text })
    } else {
      const body = item.body as RecordBody
      const append = buildAppend({ op: 'write', tenantId, entityType, body, text, key: item.key, now })
      accepted.push({ index, body, append })
    }
  }
  return { results, accepted, rejected }
}

/** The records as received, so that the digits of their numbers stay exact. */
function itemTexts(text: string, contentType: string): string[] {
  const isLines = /ndjson|jsonl|json-lines/i.test(contentType)
  if (!isLines && !/json/i.test(contentType)) {
    throw problems.unsupportedMediaType('The body must be application/json or application/x-ndjson.')
  }
  const items = isLines ? text.split(/\r?\n/).filter(line => line.trim() !== '') : splitRecords(text)
  if (items.length === 0) throw problems.invalid([{ pointer: '/records', message: 'must not be empty' }])
  if (items.length > MAX_ITEMS) {
    throw problems.invalid([{ pointer: '/records', message: `must have at most ${MAX_ITEMS} items` }])
  }
  return items
}

function splitRecords(text: string): string[] {
  let body: unknown
  try {
    body = parseJson(text)
  } catch (error) {
    throw problems.malformed(`${(error as Error).message}.`)
  }
  if (!isObject(body) || !Array.isArray(body.records)) {
    throw problems.invalid([{ pointer: '/records', message: 'must be an array of records' }])
  }
  return arrayItems(objectFields(text).findLast(([field]) => field === 'records')![1])
}

function readItem(
  text: string,
  entityType: EntityType,
  fallbackKey: string | undefined,
): { body: unknown; key: string | undefined; errors: ValidationError[] } {
  let body: unknown
  try {
    body = parseJson(text)
  } catch (error) {
    return { body: null, key: undefined, errors: [{ pointer: '', message: (error as Error).message }] }
  }
  const own = isObject(body) && typeof body.idempotencyKey === 'string' ? body.idempotencyKey : undefined
  const key = own ?? fallbackKey
  const schemaErrors = validateWrite(body) ? [] : readValidationErrors({ validation: validateWrite.errors })
  return { body, key, errors: [...schemaErrors, ...validateChange('write', entityType, { body, text, key })] }
}
