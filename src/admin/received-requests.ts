import type pg from 'pg'
import { entryIdOf, isUuid } from '../domain/ids.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Log } from '../log/log.ts'
import type { Actor } from './actor.ts'
import { AdminError } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { ReceivedRequest } from './views.ts'

/** A batch may have 1 MiB; whoever looks at one event is not sent all of it. */
const MOST_SHOWN = 100_000

export type ReceivedRequestAdmin = ReturnType<typeof receivedRequestAdmin>

/** Requests as they came in, for as long as the log keeps them (KONTOR_LOG_RETENTION). */
export function receivedRequestAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    async ofEvent(id: string, tenant: string): Promise<ReceivedRequest> {
      const { id: tenantId } = await tenantNamed(pool, actor, tenant)
      const entry = isUuid(id) ? await log.find(tenantId, entryIdOf(id.toLowerCase()), 'events') : null
      if (!entry)
        throw new AdminError('not_found', 'request_not_found', 'Its request is no longer in the log.')
      return {
        id,
        tenant: publicTenantId(tenantId),
        received_at: entry.receivedAt.toISOString(),
        bytes: Buffer.byteLength(entry.body),
        body: entry.body.slice(0, MOST_SHOWN).toWellFormed(),
        truncated: entry.body.length > MOST_SHOWN,
      }
    },
  }
}
