import type pg from 'pg'
import { isUuid } from '../domain/ids.ts'
import type { ReceiptOutcome } from '../domain/inbound/receipts.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { parseTimestamp } from '../domain/time.ts'
import { countBacklog, listBacklogged } from '../store/inbound/overflow.ts'
import { findArchived, listReceipts, type StoredReceipt } from '../store/inbound/receipts.ts'
import { listRejections, type Rejection } from '../store/inbound/rejections.ts'
import { listSources } from '../store/inbound/sources.ts'
import type { Actor } from './actor.ts'
import { AdminError } from './error.ts'
import { tenantLimit } from './tenants.ts'
import type { ArchiveFacts, BacklogView, ReceiptView, RejectionView } from './views/inbound.ts'

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

/** What inbound events leave behind: receipts, archived results, refused requests, and deferred events. */
export function receiptAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  const tenantIdOf = (tenant: string | undefined) => tenantLimit(pool, actor, tenant)

  return {
    async receipts(query: ReceiptQuery): Promise<ReceiptView[]> {
      const receipts = await listReceipts(pool, {
        tenantId: await tenantIdOf(query.tenant),
        sourceId: query.source ?? null,
        outcome: query.outcome ?? null,
        inboundEventId: query.inbound_event_id ?? null,
        since: parseTimestamp(query.since),
        until: parseTimestamp(query.until),
        limit: query.limit,
        before: query.before ?? null,
      })
      return receipts.map(receiptView)
    },
    /** `result` is JSON text. */
    async archived(id: string, tenant?: string): Promise<{ facts: ArchiveFacts; result: string }> {
      const found = isUuid(id) ? await findArchived(pool, await tenantIdOf(tenant), id) : null
      if (!found)
        throw new AdminError(
          'not_found',
          'archive_not_found',
          `Nothing is archived under ${JSON.stringify(id)}.`,
        )
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

export type ReceiptAdmin = ReturnType<typeof receiptAdmin>

export function receiptView(receipt: StoredReceipt): ReceiptView {
  return {
    id: receipt.id,
    tenant: publicTenantId(receipt.tenantId),
    source_config_id: receipt.sourceId,
    inbound_event_id: receipt.inboundEventId,
    event_type: receipt.eventType,
    outcome: receipt.outcome,
    archived: receipt.isArchived,
    detail: receipt.detail ?? (receipt.firstId && `first: ${receipt.firstId}`),
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
