import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { newEntryId } from '../../domain/ids.ts'
import {
  arrayItems,
  findUnstorable,
  isObject,
  objectFields,
  parseJson,
  pointerToken,
  storable,
  UNSTORABLE,
} from '../../domain/json/json.ts'
import {
  deleteTarget,
  ENTITY_TYPES,
  type EntityType,
  isTooLongForName,
  type OperationOutcome,
  type RecordContext,
  recordOrderingKey,
} from '../../domain/records/records.ts'
import { DAY_MS, parseTimestamp } from '../../domain/time.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Accept } from '../../intake/accept.ts'
import type { Append, FirstUse } from '../../log/log.ts'
import { findFirstUse } from '../../log/postgres/claims.ts'
import { coalesce } from '../../overload/coalesce.ts'
import { findOperations } from '../../store/records/records.ts'
import type { App } from '../app.ts'
import { NOT_UTF8, type RawBody } from '../body.ts'
import { problems } from '../problems.ts'
import type { RejectedRecord } from '../rejections.ts'
import { readValidationErrors, validatorCompiler } from '../validation.ts'
import { waitSeconds } from '../wait.ts'
import { readRoutes } from './read.ts'
import {
  Accepted,
  BatchResult,
  buildBodies,
  MAX_ITEMS,
  type RecordBody,
  RecordWriteBody,
  withArticle,
} from './schemas.ts'

type WriteOptions = { pool: pg.Pool; accept: Accept; awaitOutcomes: AwaitOutcomes; now: () => Date }

const WriteHeaders = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      description: 'A repeated key returns 200 with duplicate: true, and the change is not applied again.',
    }),
  ),
  prefer: Type.Optional(
    Type.String({
      description: 'wait=N: waits up to N seconds (at most 10) until the change is applied, then responds.',
    }),
  ),
})

const BatchHeaders = Type.Object({
  ...WriteHeaders.properties,
  'x-idempotency-key': Type.Optional(
    Type.String({ description: 'A record without its own key uses this key with "#" and its index.' }),
  ),
})

function writeRoutes(app: App, entityType: EntityType, options: WriteOptions): void {
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
          'A later write with a newer `sourceUpdatedAt` than the deletion restores the record; a write with an older one does not. You can also delete a record that Kontor has never received.',
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
      ...nameMissing(entityType, readValidationErrors(request.validationError)),
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
    request.leaveWriteQueue()
    const outcomes = wait === null ? null : await options.awaitOutcomes(tenantId, [operationId], wait)
    return reply.code(accepted.duplicate ? 200 : 202).send({
      ...accepted,
      ...(outcomes && { status: outcomes.get(operationId) ?? 'queued' }),
      ...(warnings.length > 0 && { warnings }),
    })
  }
}

const MAX_BYTES = 8 * 1_048_576

const validateWrite = validatorCompiler()({ schema: RecordWriteBody, httpPart: 'body' })

type Result = Static<typeof BatchResult>['results'][number]

type BatchOptions = { accept: Accept; awaitOutcomes: AwaitOutcomes; now: () => Date }

/** Many writes in one request. Each item is accepted or rejected separately. */
function batchRoute(app: App, entityType: EntityType, options: BatchOptions): void {
  app.post(
    `/v1/${entityType}s/batch`,
    {
      config: { scope: `${entityType}s:write`, body: 'raw', bodyLimit: MAX_BYTES },
      schema: {
        tags: ['Records'],
        summary: `Create or update up to 1,000 ${entityType}s`,
        description:
          'The body is {"records": [...]}, or one record per line with Content-Type: application/x-ndjson. Results are in the order of the records.',
        headers: BatchHeaders,
        body: buildBodies(entityType).batch,
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
        reply.header('preference-applied', `wait=${wait}`)
        const ids = accepted.map(({ index }) => results[index]!.operationId!)
        // A request that waits for the pipeline does not hold a place in the fair queue.
        request.leaveWriteQueue()
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
  const { raw, text } = request.body as RawBody
  const texts = itemTexts(text, String(request.headers['content-type'] ?? ''))
  if (!isUtf8(raw)) throw problems.malformed(NOT_UTF8, 'malformed_text')
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
    body = parseJson(text, 'the record')
  } catch (error) {
    return { body: null, key: undefined, errors: [{ pointer: '', message: (error as Error).message }] }
  }
  const own = isObject(body) && typeof body.idempotencyKey === 'string' ? body.idempotencyKey : undefined
  const key = own ?? fallbackKey
  const schemaErrors = validateWrite(body) ? [] : readValidationErrors({ validation: validateWrite.errors })
  return {
    body,
    key,
    errors: [...nameMissing(entityType, schemaErrors), ...validateChange('write', entityType, { body, text, key })],
  }
}

export function recordRoutes(
  app: App,
  { pool, accept, now }: { pool: pg.Pool; accept: Accept; now: () => Date },
): void {
  const awaitOutcomes = openOutcomes({ pool })
  for (const entityType of ENTITY_TYPES) {
    writeRoutes(app, entityType, { pool, accept, awaitOutcomes, now })
    readRoutes(app, entityType, { pool })
    batchRoute(app, entityType, { accept, awaitOutcomes, now })
  }
}

const WRITE_FIELDS = new Set(['entityType', 'id', 'sourceUpdatedAt', 'externalId', 'idempotencyKey', 'data'])
// 1–255 printable characters: keys are shown in logs and lists
const KEY = /^[\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]{1,255}$/u

function isIdempotencyKey(text: string): boolean {
  return KEY.test(text)
}

/** The idempotency key in the header. It takes precedence over the one in the body. */
function idempotencyHeader(request: FastifyRequest): string | undefined {
  const header = request.headers['x-idempotency-key']
  return header === undefined ? undefined : String(header)
}

/** Says what to send for a missing field. */
function nameMissing(entityType: EntityType, errors: ValidationError[]): ValidationError[] {
  const values: Record<string, string> = {
    '/entityType': ` and must be ${JSON.stringify(entityType)}`,
    '/sourceUpdatedAt': ': the time of the last change in your system, for example 2026-01-31T09:30:00Z',
  }
  return errors.map(({ pointer, message }) => {
    const value = message === 'is required' ? values[pointer] : undefined
    return { pointer, message: value === undefined ? message : message + value }
  })
}

/** Validation errors of a change that the schema of its body cannot express. */
function validateChange(
  op: RecordContext['op'],
  entityType: EntityType,
  { body, text, key }: { body: unknown; text: string; key: string | undefined },
): ValidationError[] {
  const errors: ValidationError[] = []
  if (key !== undefined && !isIdempotencyKey(key)) {
    errors.push({ pointer: '/idempotencyKey', message: 'must have 1 to 255 printable characters' })
  }
  if (!isObject(body)) return errors
  if (body.entityType !== entityType && ENTITY_TYPES.includes(body.entityType as EntityType)) {
    errors.push({ pointer: '/entityType', message: `must be ${entityType}, as in the path` })
  }
  if (op === 'delete' && deleteTarget(entityType, body as RecordBody) === null && hasNoIdentifier(body)) {
    errors.push(missingTarget(entityType, body))
  }
  if (!storable(text)) {
    const found = findUnstorable(body)
    // With a repeated JSON key, the character may be in the value that parsing discards. The text still contains it.
    errors.push(...(found.length > 0 ? found : [{ pointer: '', message: UNSTORABLE }]))
  }
  return errors
}

/** An id of the wrong type is already a validation error of the schema. */
function hasNoIdentifier(body: Record<string, unknown>): boolean {
  return body.id === undefined && body.externalId === undefined
}

function missingTarget(entityType: EntityType, { data }: Record<string, unknown>): ValidationError {
  if (entityType !== 'product') return { pointer: '/id', message: 'is required, unless externalId is given' }
  for (const name of ['sku', 'code']) {
    const value = isObject(data) ? data[name] : undefined
    if (typeof value === 'string' && isTooLongForName(value)) {
      return { pointer: `/data/${name}`, message: 'must have at most 255 characters to identify a product' }
    }
  }
  const message = 'is required, unless externalId, data.sku or data.code is given'
  return { pointer: '/id', message }
}

/** Warnings about a valid body. It is accepted, and the response contains them. */
function findWarnings(body: RecordBody, now: Date): ValidationError[] {
  const warnings: ValidationError[] = []
  for (const field of Object.keys(body)) {
    if (!WRITE_FIELDS.has(field))
      warnings.push({ pointer: `/${pointerToken(field)}`, message: 'is not a known field and is ignored' })
  }
  if (parseTimestamp(body.sourceUpdatedAt)!.getTime() > now.getTime() + DAY_MS) {
    warnings.push({
      pointer: '/sourceUpdatedAt',
      message: 'is more than 24 hours in the future: changes with an earlier sourceUpdatedAt will be ignored',
    })
  }
  return warnings
}

/** The entry for the log, and the claim of its idempotency key. `text` is the body as received. */
export function buildAppend(change: {
  op: RecordContext['op']
  tenantId: number
  entityType: EntityType
  body: RecordBody
  text: string
  key: string | undefined
  now: Date
}): Append {
  const { op, tenantId, entityType, body, text, key, now } = change
  const context: RecordContext = { op, entityType }
  const target = op === 'delete' ? deleteTarget(entityType, body)! : { name: 'id' as const, value: body.id! }
  return {
    entry: {
      id: newEntryId(now.getTime()),
      tenantId,
      kind: 'record',
      orderingKey: recordOrderingKey(entityType, target),
      receivedAt: now,
      context: JSON.stringify(context),
      body: text,
    },
    claim: key === undefined ? null : { key, bodyHash: hashBody(op, body), entityType, recordId: body.id ?? null },
  }
}

/** Hashes the content of the body, not its text: a retry may order the fields differently. */
function hashBody(op: string, body: RecordBody): Buffer {
  const { idempotencyKey: _, ...content } = body
  return createHash('sha256').update(op).update(canonical(content)).digest()
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  )
}

/** The response to an accepted or repeated change. */
function acceptedBody(append: Append, first: FirstUse | null, entityType: EntityType, body: RecordBody) {
  if (!first) {
    return { accepted: true, duplicate: false, operationId: append.entry.id, entityType, id: body.id ?? null }
  }
  const isAnotherBody = !append.claim!.bodyHash.equals(first.bodyHash)
  return { ...duplicateBody(first), ...(isAnotherBody && { payloadMismatch: true }) }
}

function duplicateBody({ operationId, entityType, recordId }: FirstUse) {
  // Only record routes claim keys.
  return { accepted: true, duplicate: true, operationId, entityType: entityType as EntityType, id: recordId }
}

// One query at a time serves all requests that wait, so that polling this often costs little.
const POLLS = { maxItems: 10_000, maxInFlight: 1, minIntervalMs: 15 }

/** Waits until the outcomes of all operations are known, or until the time is up. Returns those that are known. */
type AwaitOutcomes = (
  tenantId: number,
  operationIds: string[],
  seconds: number,
) => Promise<Map<string, OperationOutcome>>

type OperationKey = { tenantId: number; id: string }

function openOutcomes({ pool }: { pool: pg.Pool }): AwaitOutcomes {
  const polls = coalesce({ run: (keys: OperationKey[]) => findOutcomes(pool, keys), ...POLLS })

  return async (tenantId, operationIds, seconds) => {
    const until = performance.now() + seconds * 1000
    const outcomes = new Map<string, OperationOutcome>()
    let pending = [...new Set(operationIds)]
    while (pending.length > 0) {
      // The write is durable whatever happens to this query: when the time is up, the caller receives "queued".
      const found = await polls.submit(pending.map(id => ({ tenantId, id }))).catch(() => [])
      for (const [i, outcome] of found.entries()) if (outcome) outcomes.set(pending[i]!, outcome)
      if (performance.now() >= until) break
      pending = pending.filter(id => !outcomes.has(id))
    }
    return outcomes
  }
}

/** Null for each operation whose outcome is not known yet. */
async function findOutcomes(pool: pg.Pool, keys: OperationKey[]): Promise<(OperationOutcome | null)[]> {
  const found = await findOperations(
    pool,
    keys.map(({ tenantId }) => tenantId),
    keys.map(({ id }) => id),
  )
  const outcomes = new Map(found.map(({ id, status }) => [id, status]))
  return keys.map(({ id }) => outcomes.get(id) ?? null)
}
