import type { EntityType } from '../../domain/records/records.ts'
import { parseTenantId } from '../../domain/tenants/tenants.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { Send } from '../../import/send.ts'
import { eventTarget, recordTarget, sourceTarget, type Target } from '../../import/target.ts'
import { findProcessed, processedKey } from '../../store/inbound/processed.ts'
import type { Session } from '../session.ts'

/** Creates the key or source that an import needs; `close` revokes the key. */
export type OpenTarget = (
  session: Session,
  tenant: string,
  send: Send,
) => Promise<{ target: Target; close(): Promise<void> }>

const expires_at = () => new Date(Date.now() + 7 * DAY_MS).toISOString()

export const openRecordTarget =
  (entityType: EntityType): OpenTarget =>
  async ({ admin }, tenant, send) => {
    const scopes = [`${entityType}s:write`]
    const { id, key } = await admin.keys.create({ tenant, kind: 'private', scopes, expires_at: expires_at() })
    return { target: recordTarget(send, key, entityType), close: () => revoke(admin, id) }
  }

/** Uses a server key: its events may be old and may identify people. */
export const openEventTarget: OpenTarget = async ({ admin, pool }, tenant, send) => {
  const { id, key } = await admin.keys.create({
    tenant,
    kind: 'tracking',
    server: true,
    expires_at: expires_at(),
  })
  const tenantId = parseTenantId(tenant)!
  const known = async (ids: string[]) => {
    const byKey = new Map(ids.map(eventId => [processedKey(null, eventId), eventId]))
    const found = await findProcessed(
      pool,
      [...byKey.keys()].map(each => ({ tenantId, key: each })),
    )
    return new Set(found.map(claim => byKey.get(claim.key)!))
  }
  return { target: eventTarget(send, key, known), close: () => revoke(admin, id) }
}

const STRIPE_SOURCE = 'Stripe import'

/** All imports of a tenant share one source, which finds duplicates across imports. Its namespace makes ids match those of live webhooks. */
export const openStripeTarget: OpenTarget = async ({ admin }, tenant, send) => {
  const known = (await admin.sources.list(tenant)).find(({ name }) => name === STRIPE_SOURCE)
  const settings = {
    billing: true,
    namespace: 'stripe',
    rate_limit: { events: 100_000_000, per_seconds: 60 },
  }
  const source = known
    ? await admin.sources.rotate(known.id, { what: 'token', overlapHours: 0 })
    : await admin.sources.create({ tenant, type: 'webhook', name: STRIPE_SOURCE, ...settings })
  if (known && !known.enabled) await admin.sources.update(known.id, { enabled: true })
  return { target: sourceTarget(send, { path: source.path, token: source.token! }), close: async () => {} }
}

async function revoke(admin: Session['admin'], id: string): Promise<void> {
  await admin.keys.revoke(id, {})
}
