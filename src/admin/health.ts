import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Log } from '../log/log.ts'
import { failuresOf } from '../store/health/failures.ts'
import type { Actor } from './actor.ts'
import { tenantNamed } from './tenants.ts'
import type { HealthView } from './views.ts'

/** How a tenant stands, for those who look after it. */
export function healthAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  return {
    async show(tenant: string): Promise<Omit<HealthView, 'disk_free'>> {
      const { id } = await tenantNamed(pool, actor, tenant)
      const failures = await failuresOf(pool, id)
      return {
        tenant: publicTenantId(id),
        // The log is everybody's: whoever has one tenant is not told how busy the others are.
        waiting: actor.tenantId === null ? await waitingIn(log) : null,
        dead_letters: { open: failures.openLetters, by_hour: failures.lettersByHour },
        refused: { last_24_hours: failures.refused, by_hour: failures.refusedByHour },
        deferred: { events: failures.deferred, oldest_at: failures.deferredSince?.toISOString() ?? null },
      }
    },
  }
}

export type HealthAdmin = ReturnType<typeof healthAdmin>

async function waitingIn(log: Log): Promise<HealthView['waiting']> {
  const partitions = await log.lag()
  const oldest = partitions.flatMap(({ oldestAt }) => (oldestAt ? [oldestAt.getTime()] : []))
  return {
    entries: partitions.reduce((sum, { entries }) => sum + entries, 0),
    oldest_at: oldest.length > 0 ? new Date(Math.min(...oldest)).toISOString() : null,
  }
}
