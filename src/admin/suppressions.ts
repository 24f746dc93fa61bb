import type pg from 'pg'
import { emailOf } from '../domain/identity/identity.ts'
import { nameHash } from '../domain/identity/suppression.ts'
import { isUuid } from '../domain/ids.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import { deleteSuppressed, listSuppressed, suppressionCount } from '../store/identity/suppressions.ts'
import type { Actor } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { RemovedSuppression, SuppressionList } from './views/erasures.ts'

export type SuppressionAdmin = ReturnType<typeof suppressionAdmin>

const MOST = 1_000

export function suppressionAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Newest first: the last thousand. */
    async list(tenant: string): Promise<SuppressionList> {
      const { id } = await tenantNamed(pool, actor, tenant)
      const [people, count] = await Promise.all([listSuppressed(pool, id, MOST), suppressionCount(pool, id)])
      return {
        results: people.map(({ erasureId, suppressedAt, names }) => ({
          id: erasureId,
          tenant: publicTenantId(id),
          suppressed_at: suppressedAt.toISOString(),
          names,
        })),
        next_cursor: null,
        not_recorded: {
          events: count?.events ?? 0,
          records: count?.records ?? 0,
          last_at: count?.lastAt.toISOString() ?? null,
        },
      }
    },
    /** By the id of the list, an e-mail address, or the hash of a name: all names of that person are recorded again. */
    async remove({ tenant, id: who }: { tenant: string; id: string }): Promise<RemovedSuppression> {
      const { id: tenantId } = await tenantNamed(pool, actor, tenant)
      const email = emailOf(who)
      const hash = /^[\da-f]{64}$/i.test(who)
        ? Buffer.from(who, 'hex')
        : email && nameHash(tenantId, { kind: 'email', value: email })
      return inTransaction(pool, async client => {
        const key = { erasureId: isUuid(who) ? who : null, hash: hash || null }
        // Whoever adds a name of theirs at this moment has added it, and it goes with the others.
        await lockPeople(client, tenantId)
        const removed = await deleteSuppressed(client, tenantId, key)
        if (removed === null)
          throw new AdminError('not_found', 'suppression_not_found', 'Nobody of this name is suppressed.')
        const after = { names: removed.names }
        const change = { action: 'suppression.remove', target: removed.erasureId, tenantId, after }
        await recordChange(client, actor, change)
        return { id: removed.erasureId, tenant: publicTenantId(tenantId), names: removed.names }
      })
    },
  }
}
