import { isUuid, newEntryId } from '../../domain/ids.ts'
import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { databaseNow } from '../../postgres/clock.ts'
import { inTransaction } from '../../postgres/database.ts'
import { countJoins, findPurge, insertPurge, type StoredPurge } from '../../store/events/purges.ts'
import { readStored } from '../../store/events/stored.ts'
import { listKeys } from '../../store/tenants/keys.ts'
import { type Actor, sees } from '../actor.ts'
import { recordChange } from '../audit.ts'
import { AdminError, notFound, refuse } from '../error.ts'
import { tenantNamed } from '../tenants.ts'
import type { PurgePreview, PurgeReceipt } from '../views/erasures.ts'
import { longWork, MAX_WAIT_MS, type Storage, untilApplied } from './long-work.ts'
import { eventsOf, runPurge, salesOf } from './purge-run.ts'

type PurgeQuery = { tenant: string; key: string; since: string; until?: string | null | undefined }

export type PurgeAdmin = ReturnType<typeof purgeAdmin>

/** Takes out what a tracking key added that got into the wrong hands. */
export function purgeAdmin({ pool, log, actor }: Storage & { actor: Actor }) {
  const storage = { pool, log }
  async function purgeOf(query: PurgeQuery): Promise<StoredPurge> {
    const { id: tenantId } = await tenantNamed(pool, actor, query.tenant)
    const keys = await listKeys(pool, tenantId)
    if (!keys.some(({ id, kind }) => id === query.key && kind === 'tracking'))
      throw notFound('key', query.key)
    const [since, until] = [query.since, query.until ?? undefined].map(parseTimestamp)
    const message = 'must be an ISO 8601 date-time, for example 2026-01-31T00:00:00Z'
    refuse([
      ...(since ? [] : [{ pointer: '/since', message }]),
      ...(query.until && !until ? [{ pointer: '/until', message }] : []),
      ...(since && until && until <= since ? [{ pointer: '/until', message: 'must be after since' }] : []),
    ])
    const requestedAt = await databaseNow(pool)
    return {
      id: newEntryId(requestedAt.getTime()),
      ...{ tenantId, requestedAt, keyId: query.key, receivedSince: since!, receivedUntil: until ?? null },
      ...{ status: 'running', receipt: '' },
    }
  }

  async function begin(query: PurgeQuery): Promise<StoredPurge> {
    const purge = await purgeOf(query)
    const unapplied = await untilApplied(storage, purge.tenantId, purge.requestedAt, MAX_WAIT_MS)
    const receipt = newReceipt(purge, unapplied)
    purge.receipt = JSON.stringify(receipt)
    await inTransaction(pool, async client => {
      await insertPurge(client, purge)
      const { id, since, until } = receipt
      await recordChange(client, actor, {
        ...{ action: 'events.purge', target: purge.keyId, tenantId: purge.tenantId },
        after: { id, since, until },
      })
    })
    return purge
  }

  const { finish, start } = longWork({
    begin,
    run: purge => runPurge(storage, purge),
    receiptNow: async ({ id }): Promise<PurgeReceipt> => JSON.parse((await findPurge(pool, id))!.receipt),
  })

  return {
    purge: finish,
    start,
    async preview(query: PurgeQuery): Promise<PurgePreview> {
      const purge = await purgeOf(query)
      const would_purge = { events: 0, sales: 0, joins: 0 }
      const sales = new Set<string>()
      await inTransaction(pool, async client => {
        for await (const events of readStored(client, purge.tenantId, eventsOf(purge))) {
          const ids = events.map(({ id }) => id)
          would_purge.events += events.length
          would_purge.joins += await countJoins(client, purge.tenantId, ids)
          for (const sale of salesOf(events)) sales.add(sale)
        }
      })
      would_purge.sales = sales.size
      const { tenant, key, since, until } = newReceipt(purge, 0)
      return { dry_run: true, tenant, key, since, until, would_purge }
    },
    async show(id: string): Promise<PurgeReceipt> {
      const purge = isUuid(id) ? await findPurge(pool, id) : null
      if (!purge || !sees(actor, purge.tenantId))
        throw new AdminError('not_found', 'purge_not_found', `There is no purge ${JSON.stringify(id)}.`)
      return JSON.parse(purge.receipt)
    },
  }
}

function newReceipt(purge: StoredPurge, unapplied: number): PurgeReceipt {
  return {
    id: purge.id,
    tenant: publicTenantId(purge.tenantId),
    key: purge.keyId,
    since: purge.receivedSince.toISOString(),
    until: purge.receivedUntil?.toISOString() ?? null,
    status: 'running',
    requested_at: purge.requestedAt.toISOString(),
    completed_at: null,
    purged: { events: 0, conversions: 0, identities: 0, dead_letters: 0, waiting: 0 },
    not_yet_processed: unapplied,
  }
}
