import type pg from 'pg'
import { lastDue } from '../domain/alerts/digest.ts'
import { hashToId } from '../domain/ids.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS } from '../domain/time.ts'
import { enqueueMessages } from '../pipeline/deliveries/notify.ts'
import { inTransaction } from '../postgres/database.ts'
import { digestReport } from '../reports/digest.ts'
import { claimDigest, type DigestTenant, listDigestTenants, startDigests } from '../store/alerts/digests.ts'
import { appliedPolicy } from '../store/billing/policies.ts'
import { listSubscribed } from '../store/destinations/destinations.ts'
import type { Job } from './jobs.ts'

type Options = { pool: pg.Pool; now: () => Date }

/** Queues weekly digests when they are due. */
export function digestJob(options: Options): Job {
  return { name: 'digests', everyMs: 60_000, run: () => queueDigests(options) }
}

// A change of the time zone moves a due time by up to 26 hours. It must not send the same digest twice.
const MIN_APART_MS = 2 * DAY_MS

/** A digest that cannot be built delays no other tenant. The job reports the first error and retries a minute later. */
export async function queueDigests({ pool, now }: Options): Promise<void> {
  const errors: unknown[] = []
  for (const tenant of await listDigestTenants(pool))
    await queueDigest(pool, tenant, now()).catch(error => errors.push(error))
  if (errors.length > 0) throw errors[0]
}

/** The claim and the message commit together, so each digest is queued once, by whichever node is first. */
async function queueDigest(pool: pg.Pool, tenant: DigestTenant, now: Date): Promise<void> {
  const { tenantId, name, schedule, dueAt } = tenant
  const due = lastDue(schedule, (await appliedPolicy(pool, tenantId)).timeZone, now)
  if (dueAt === null) return startDigests(pool, tenantId, due)
  if (due.getTime() - dueAt.getTime() < MIN_APART_MS) return
  // Built before the claim: its queries run in a snapshot of their own.
  const digest = await digestReport(pool, { id: tenantId, name }, { due, now })
  await inTransaction(pool, async client => {
    if (!(await claimDigest(client, tenantId, due))) return
    const listeners = (await listSubscribed(client, 'digests')).filter(one => one.tenantId === tenantId)
    await enqueueMessages({ client }, { ofTenant: new Map([[tenantId, listeners]]) }, [
      {
        ...{ tenantId, at: now, what: 'digests', type: 'digest.weekly' },
        id: hashToId(JSON.stringify(['digest', tenantId, due])),
        object: `digest/${publicTenantId(tenantId)}`,
        data: JSON.stringify(digest),
      },
    ])
  })
}
