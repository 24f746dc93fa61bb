import type pg from 'pg'
import { findBatchItem } from '../domain/events/normalize/normalize.ts'
import type { Edit, EventContext } from '../domain/events/types.ts'
import { idToTime, isUuid, itemIndex, toEntryId } from '../domain/ids.ts'
import { RECEIPT_OUTCOMES, type ReceiptOutcome } from '../domain/inbound/receipts.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { endIn, UTC } from '../domain/time-zone.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { Log } from '../log/log.ts'
import { databaseNow } from '../postgres/database.ts'
import { hasErasedSince } from '../store/identity/erasures.ts'
import { countBacklog, listBacklogged } from '../store/inbound/overflow.ts'
import { findArchived, listReceipts, type StoredReceipt } from '../store/inbound/receipts.ts'
import { listRejections, type Rejection } from '../store/inbound/rejections.ts'
import { listSources } from '../store/inbound/sources.ts'
import { type Actor, requireTenant, resolveTenantFilter } from './actor.ts'
import { AdminError } from './error.ts'

type ReceiptQuery = {
  tenant?: string | undefined
  source?: string | undefined
  outcome?: ReceiptOutcome | undefined
  inbound_event_id?: string | undefined
  since?: string | undefined
  until?: string | undefined
  limit: number
  before?: { receivedAt: Date; id: string } | undefined
}

type RejectionQuery = {
  tenant?: string | undefined
  source?: string | undefined
  code?: string | undefined
  route?: string | undefined
  cause?: string | undefined
  limit: number
  before?: number | undefined
}

/** Reads what is recorded about inbound events: receipts, archived results, rejected requests, deferred events. */
export function receiptAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  const tenantIdOf = (tenant: string | undefined) => resolveTenantFilter(pool, actor, tenant)

  return {
    async receipts(query: ReceiptQuery): Promise<ReceiptView[]> {
      const receipts = await listReceipts(pool, {
        tenantId: await tenantIdOf(query.tenant),
        sourceId: query.source ?? null,
        outcome: query.outcome ?? null,
        inboundEventId: query.inbound_event_id ?? null,
        since: parseTimestamp(query.since),
        until: endIn(UTC, query.until),
        limit: query.limit,
        before: query.before ?? null,
      })
      return receipts.map(receiptView)
    },
    /** `result` is a JSON string. */
    async archived(id: string, tenant?: string): Promise<{ facts: ArchiveFacts; result: string }> {
      const found = isUuid(id) ? await findArchived(pool, await tenantIdOf(tenant), id) : null
      if (!found) throw new AdminError('not_found', 'archive_not_found', `No archived result has the id ${quote(id)}.`)
      const { tenantId, sourceId, receivedAt, result } = found
      const facts = {
        id,
        tenant: publicTenantId(tenantId),
        source_config_id: sourceId,
        received_at: receivedAt.toISOString(),
      }
      return { facts, result }
    },
    async rejections(query: RejectionQuery): Promise<RejectionView[]> {
      const rejections = await listRejections(pool, {
        tenantId: await tenantIdOf(query.tenant),
        sourceId: query.source ?? null,
        code: query.code ?? null,
        route: query.route ?? null,
        cause: query.cause ?? null,
        limit: query.limit,
        before: query.before ?? null,
      })
      return rejections.map(rejectionView)
    },
    async backlogs(): Promise<BacklogView[]> {
      const own = actor.tenantId === null ? null : await listSources(pool, actor.tenantId)
      const visible = (id: string) => own === null || own.some(source => source.id === id)
      const backlogs = await countBacklog(pool, (await listBacklogged(pool)).filter(visible))
      return backlogs.map(({ sourceId, events, oldestAt }) => ({
        source_config_id: sourceId,
        events,
        oldest_at: oldestAt.toISOString(),
      }))
    },
  }
}

export function receiptView(receipt: StoredReceipt): ReceiptView {
  return {
    id: receipt.id,
    tenant: publicTenantId(receipt.tenantId),
    source_config_id: receipt.sourceId,
    inbound_event_id: receipt.inboundEventId,
    event_type: receipt.eventType,
    outcome: receipt.outcome,
    archived: receipt.isArchived,
    detail: receipt.detail ?? (receipt.firstId && `same id as event ${receipt.firstId}`),
    received_at: receipt.receivedAt.toISOString(),
    written_at: receipt.writtenAt.toISOString(),
  }
}

function rejectionView(rejection: Rejection): RejectionView {
  return {
    id: String(rejection.id),
    tenant: publicTenantId(rejection.tenantId),
    source_config_id: rejection.sourceId,
    key_id: rejection.keyId,
    route: rejection.route,
    rejected_at: rejection.rejectedAt.toISOString(),
    status: rejection.status,
    code: rejection.code,
    detail: rejection.detail,
    ip: rejection.ip,
    user_agent: rejection.userAgent,
    bytes: rejection.bytes,
    body: rejection.body,
    suppressed: rejection.suppressed,
  }
}

/** A batch may have 1 MiB. The view of one event does not need all of it. */
const MOST_SHOWN = 100_000

type Options = { pool: pg.Pool; log: Log; actor: Actor; logRetentionMs: number | null }

/** Requests as received, as long as the log keeps them (KONTOR_LOG_RETENTION). */
export function receivedRequestAdmin({ pool, log, actor, logRetentionMs }: Options) {
  /** An erasure deletes the whole request, with everything else in it. */
  async function whyMissing(tenantId: number, id: string): Promise<ReceivedRequest['missing']> {
    const age = (await databaseNow(pool)).getTime() - idToTime(id).getTime()
    if (logRetentionMs !== null && age > logRetentionMs) return 'expired'
    return (await hasErasedSince(pool, tenantId, idToTime(id))) ? 'erased' : 'unknown'
  }

  return {
    /** For a batch, only the item of the event; with `whole` the whole batch. */
    async ofEvent(id: string, { tenant, whole }: { tenant: string; whole: boolean }): Promise<ReceivedRequest> {
      const { id: tenantId } = await requireTenant(pool, actor, tenant)
      const known = isUuid(id.toLowerCase()) ? id.toLowerCase() : null
      const entry = known === null ? null : await log.find(tenantId, toEntryId(known), 'events')
      const event = { id, tenant: publicTenantId(tenantId) }
      if (!entry) {
        const missing = known === null ? 'unknown' : await whyMissing(tenantId, known)
        return {
          ...event,
          missing,
          received_at: null,
          bytes: null,
          batch: null,
          body: null,
          edited: null,
          truncated: false,
        }
      }
      const index = itemIndex(known!)
      const context = JSON.parse(entry.context) as EventContext
      const batch = findBatchItem(entry.body, context, index)
      const text = batch === null || whole ? entry.body : batch.text
      return {
        ...{ ...event, missing: null },
        received_at: entry.receivedAt.toISOString(),
        bytes: Buffer.byteLength(entry.body),
        batch: batch && { index, items: batch.items },
        body: text.slice(0, MOST_SHOWN).toWellFormed(),
        edited: context.edited ? editView(context.edited) : null,
        truncated: text.length > MOST_SHOWN,
      }
    },
  }
}

function editView({ by, at, deadLetter }: Edit): ReceivedRequest['edited'] {
  return { by, at, dead_letter: deadLetter }
}

export const ReceiptView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The event id' }),
    tenant: Type.String(),
    source_config_id: Type.String(),
    inbound_event_id: NullableText,
    event_type: NullableText,
    outcome: Type.Enum([...RECEIPT_OUTCOMES]),
    archived: Type.Boolean({ description: 'The result is available at GET /admin/v1/archive/:id' }),
    detail: NullableText,
    received_at: Timestamp,
    written_at: Timestamp,
  },
  {
    title: 'Receipt',
    description: 'The stored outcome of one inbound event',
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300000',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: 'evt_1001',
        event_type: 'order.shipped',
        outcome: 'processed',
        archived: true,
        detail: null,
        received_at: '2026-01-31T09:30:00.000Z',
        written_at: '2026-01-31T09:30:00.040Z',
      },
    ],
  },
)
export type ReceiptView = Static<typeof ReceiptView>

/** An archived result without `result`, which is returned as stored. */
export const ArchiveFacts = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  source_config_id: Type.String(),
  received_at: Timestamp,
})
export type ArchiveFacts = Static<typeof ArchiveFacts>

export const RejectionView = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    source_config_id: Nullable(Type.String({ description: 'The source; null: the request used a key' })),
    key_id: NullableText,
    route: Nullable(Type.String({ description: 'The route of a request with a key, for example POST /v1/track' })),
    rejected_at: Timestamp,
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    ip: NullableText,
    user_agent: NullableText,
    bytes: Nullable(Type.Integer()),
    body: Nullable(
      Type.String({
        description:
          'The first 2,000 characters of a request with a key, without credentials. Deleted by an erasure; not stored if it mentions a suppressed person',
      }),
    ),
    suppressed: Type.Integer({
      description: 'Number of similar requests in the same minute that were counted but not stored',
    }),
  },
  {
    title: 'Rejection',
    description: 'A rejected request',
    examples: [
      {
        id: '81',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        key_id: null,
        route: null,
        rejected_at: '2026-01-31T09:30:00.000Z',
        status: 401,
        code: 'signature_invalid',
        detail:
          'The signature does not match the body and the signing secret of this source. Sign the unchanged body with this secret.',
        ip: '203.0.113.7',
        user_agent: 'curl/8.5.0',
        bytes: 218,
        body: null,
        suppressed: 0,
      },
    ],
  },
)
export type RejectionView = Static<typeof RejectionView>

export const BacklogView = Type.Object(
  {
    source_config_id: Type.String(),
    events: Type.Integer(),
    oldest_at: Timestamp,
  },
  { title: 'Overflow', description: 'Events above the rate limit of a source that wait to be processed' },
)
export type BacklogView = Static<typeof BacklogView>

/** The request that contained an event. */
export const ReceivedRequest = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    missing: Nullable(
      Type.Enum(['expired', 'erased', 'unknown'], {
        description:
          'Why the request is not available. expired: the log keeps requests for a few days (KONTOR_LOG_RETENTION); erased: a person in it was erased or is suppressed, and requests are deleted as a whole; unknown: no event with this id is in the log; null: it is available',
      }),
    ),
    received_at: NullableTimestamp,
    bytes: Nullable(Type.Integer({ minimum: 0, description: 'The size of the whole request' })),
    batch: Nullable(
      Type.Object(
        { index: Type.Integer(), items: Type.Integer() },
        { description: 'The index of the event in the batch and the number of items; null: not a batch' },
      ),
    ),
    body: Nullable(
      Type.String({
        description:
          'As received, at most the first 100,000 characters. For a batch, only the item unless the whole batch is requested',
      }),
    ),
    edited: Nullable(
      Type.Object(
        { by: Type.String(), at: Timestamp, dead_letter: Uuid },
        { description: 'Set if an operator replaced the body: who, when, and the dead letter that has the original' },
      ),
    ),
    truncated: Type.Boolean(),
  },
  { title: 'ReceivedRequest', description: 'The request that contained an event' },
)
export type ReceivedRequest = Static<typeof ReceivedRequest>
