import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { Type } from 'typebox'
import type { EntityType, RecordContext } from '../../domain/records/records.ts'
import type { Accept } from '../../intake/accept.ts'
import { findFirstUse } from '../../log/postgres/claims.ts'
import type { App } from '../app.ts'
import { problems } from '../problems.ts'
import { validationFaults } from '../validation.ts'
import {
  acceptedBody,
  appendOf,
  duplicateBody,
  faultsOfChange,
  idempotencyHeader,
  isIdempotencyKey,
  warningsOf,
} from './change.ts'
import { type AwaitOutcomes, waitSeconds } from './outcomes.ts'
import { Accepted, bodiesOf, type RecordBody, withArticle } from './schemas.ts'

type WriteOptions = { pool: pg.Pool; accept: Accept; awaitOutcomes: AwaitOutcomes; now: () => Date }

const WriteHeaders = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      description: 'A repeated key returns 200 with duplicate: true, and the change is not applied again.',
    }),
  ),
  prefer: Type.Optional(
    Type.String({ description: 'wait=N (up to 10 seconds): respond when the change is applied.' }),
  ),
})

export function writeRoutes(app: App, entityType: EntityType, options: WriteOptions): void {
  const shared = { attachValidation: true, config: { scope: `${entityType}s:write` as const } }
  const bodies = bodiesOf(entityType)
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
      idempotencyHeader(request) ??
      (typeof body?.idempotencyKey === 'string' ? body.idempotencyKey : undefined)
    const { tenantId } = request.caller
    const faults = [
      ...validationFaults(request.validationError),
      ...faultsOfChange(op, entityType, { body, text, key }),
    ]
    if (faults.length > 0) {
      // A used key is answered as such whatever the body, even one that would be refused.
      const isKnowable = key !== undefined && isIdempotencyKey(key)
      const first = isKnowable ? await findFirstUse(options.pool, tenantId, key) : null
      if (!first) throw problems.invalid(faults)
      reply.header('location', `/v1/operations/${first.operationId}`)
      return reply.code(200).send({ ...duplicateBody(first), payloadMismatch: true })
    }

    const append = appendOf({ op, tenantId, entityType, body, text, key, now })
    const [appended] = await options.accept([append])
    const accepted = acceptedBody(append, appended!.duplicateOf, entityType, body)
    const { operationId } = accepted
    const warnings = warningsOf(body, now)
    reply.header('location', `/v1/operations/${operationId}`)
    const wait = waitSeconds(request.headers.prefer)
    if (wait !== null) reply.header('preference-applied', `wait=${wait}`)
    // Who waits for the pipeline keeps nobody else waiting.
    request.leaveWriteQueue?.()
    const outcomes = wait === null ? null : await options.awaitOutcomes(tenantId, [operationId], wait)
    return reply.code(accepted.duplicate ? 200 : 202).send({
      ...accepted,
      ...(outcomes && { status: outcomes.get(operationId) ?? 'queued' }),
      ...(warnings.length > 0 && { warnings }),
    })
  }
}
