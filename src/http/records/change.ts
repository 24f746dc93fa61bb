import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import { newEntryId } from '../../domain/ids.ts'
import { isObject, pointerToken, storable, unstorablePointers } from '../../domain/json/json.ts'
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
import type { ValidationError } from '../../domain/validation-error.ts'
import type { Append, FirstUse } from '../../log/log.ts'
import { coalesce } from '../../overload/coalesce.ts'
import { findOperations } from '../../store/records/records.ts'
import type { RecordBody } from './schemas.ts'

const WRITE_FIELDS = new Set(['entityType', 'id', 'sourceUpdatedAt', 'externalId', 'idempotencyKey', 'data'])
// 1–255 printable characters: keys are shown in logs and lists
const KEY = /^[\x20-\x7e\u00a0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]{1,255}$/u

export function isIdempotencyKey(text: string): boolean {
  return KEY.test(text)
}

/** The idempotency key in the header. It takes precedence over the one in the body. */
export function idempotencyHeader(request: FastifyRequest): string | undefined {
  const header = request.headers['x-idempotency-key']
  return header === undefined ? undefined : String(header)
}

/** Validation errors of a change that the schema of its body cannot express. */
export function validateChange(
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
    const pointers = unstorablePointers(body)
    // With a repeated JSON key, the character may be in the value that parsing discards. The text still contains it.
    for (const pointer of pointers.length > 0 ? pointers : ['']) {
      errors.push({
        pointer,
        message: 'contains a NUL character, an unpaired surrogate or a number out of range',
      })
    }
  }
  return errors
}

/** An id of the wrong type is already a validation error of the schema. */
function hasNoIdentifier(body: Record<string, unknown>): boolean {
  return body.id === undefined && body.externalId === undefined
}

function missingTarget(entityType: EntityType, { data }: Record<string, unknown>): ValidationError {
  if (entityType !== 'product')
    return { pointer: '/id', message: 'is required: identify the record by id or externalId' }
  for (const name of ['sku', 'code']) {
    const value = isObject(data) ? data[name] : undefined
    if (typeof value === 'string' && isTooLongForName(value)) {
      return { pointer: `/data/${name}`, message: 'must have at most 255 characters to identify a product' }
    }
  }
  const message = 'is required: identify the record by id, externalId, data.sku or data.code'
  return { pointer: '/id', message }
}

/** Warnings about a valid body. It is accepted, and the response contains them. */
export function findWarnings(body: RecordBody, now: Date): ValidationError[] {
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
export function acceptedBody(append: Append, first: FirstUse | null, entityType: EntityType, body: RecordBody) {
  if (!first) {
    return { accepted: true, duplicate: false, operationId: append.entry.id, entityType, id: body.id ?? null }
  }
  const isAnotherBody = !append.claim!.bodyHash.equals(first.bodyHash)
  return { ...duplicateBody(first), ...(isAnotherBody && { payloadMismatch: true }) }
}

export function duplicateBody({ operationId, entityType, recordId }: FirstUse) {
  // Only record routes claim keys.
  return { accepted: true, duplicate: true, operationId, entityType: entityType as EntityType, id: recordId }
}

// One query at a time serves all requests that wait, so that polling this often costs little.
const POLLS = { maxItems: 10_000, maxInFlight: 1, minIntervalMs: 15 }
const MAX_WAIT_S = 10

/** The seconds of `Prefer: wait=N`, at most ten; null without the header. */
export function waitSeconds(prefer: string | string[] | undefined): number | null {
  if (prefer === undefined) return null
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?(?:$|[,;\s])/i.exec(String(prefer))?.[1]
  return seconds === undefined ? null : Math.min(Number(seconds), MAX_WAIT_S)
}

/** Waits until the outcomes of all operations are known, or until the time is up. Returns those that are known. */
export type AwaitOutcomes = (
  tenantId: number,
  operationIds: string[],
  seconds: number,
) => Promise<Map<string, OperationOutcome>>

type OperationKey = { tenantId: number; id: string }

export function openOutcomes({ pool }: { pool: pg.Pool }): AwaitOutcomes {
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
