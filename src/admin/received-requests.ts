import type pg from 'pg'
import type { Edit, EventContext } from '../domain/events/events.ts'
import { itemOfBatch } from '../domain/events/normalize/normalize.ts'
import { entryIdOf, indexOf, isUuid, timeOfId } from '../domain/ids.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Log } from '../log/log.ts'
import { databaseNow } from '../postgres/clock.ts'
import { hasErasedSince } from '../store/identity/erasures.ts'
import type { Actor } from './actor.ts'
import { tenantNamed } from './tenants.ts'
import type { ReceivedRequest } from './views/inbound.ts'

/** A batch may have 1 MiB; whoever looks at one event is not sent all of it. */
const MOST_SHOWN = 100_000

export type ReceivedRequestAdmin = ReturnType<typeof receivedRequestAdmin>

type Options = { pool: pg.Pool; log: Log; actor: Actor; logRetentionMs: number | null }

/** Requests as they came in, for as long as the log keeps them (KONTOR_LOG_RETENTION). */
export function receivedRequestAdmin({ pool, log, actor, logRetentionMs }: Options) {
  /** Erasing takes a request as a whole, with what else was in it. */
  async function whyMissing(tenantId: number, id: string): Promise<ReceivedRequest['missing']> {
    const age = (await databaseNow(pool)).getTime() - timeOfId(id).getTime()
    if (logRetentionMs !== null && age > logRetentionMs) return 'expired'
    return (await hasErasedSince(pool, tenantId, timeOfId(id))) ? 'erased' : 'unknown'
  }

  return {
    /** Of a batch the item that the event is; with `whole` all of it. */
    async ofEvent(
      id: string,
      { tenant, whole }: { tenant: string; whole: boolean },
    ): Promise<ReceivedRequest> {
      const { id: tenantId } = await tenantNamed(pool, actor, tenant)
      const known = isUuid(id.toLowerCase()) ? id.toLowerCase() : null
      const entry = known === null ? null : await log.find(tenantId, entryIdOf(known), 'events')
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
      const index = indexOf(known!)
      const context = JSON.parse(entry.context) as EventContext
      const batch = itemOfBatch(entry.body, context, index)
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
