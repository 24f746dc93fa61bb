import type pg from 'pg'
import { NO_LIMITS, SCOPES } from '../domain/tenants/keys.ts'
import { inTransaction } from '../postgres/database.ts'
import { LOCKS, lock } from '../postgres/locks.ts'
import { lockKey } from '../store/tenants/keys.ts'
import { findTenant, readSetting, writeSetting } from '../store/tenants/tenants.ts'
import type { Actor } from './actor.ts'
import { type CreatedKey, createKey, revokeKeyRecorded } from './keys.ts'
import type { Secrets } from './secrets.ts'
import { type CreatedSource, createSource, removeSource } from './sources.ts'
import { insertTenantRecorded, tenantView } from './tenants.ts'
export type FirstStart = {
  tenant: { id: string; name: string }
  privateKey: CreatedKey
  trackingKey: CreatedKey
  adminKey: CreatedKey
  source: CreatedSource
}

const TENANT = 'default'
const SHOWN = 'first_start_shown_at'
const UNSEEN = 'first_start_unseen'

/**
 * On the first start of an installation, creates the tenant "default" with keys and a source, and shows them. If a start
 * was killed before it could show its keys, the next start revokes them, because no one has seen them, and creates new ones.
 * Returns whether this was the first start.
 */
export async function onFirstStart(
  { pool, secrets, actor }: { pool: pg.Pool; secrets: Secrets; actor: Actor },
  show: (created: FirstStart) => Promise<void>,
): Promise<boolean> {
  if ((await readSetting(pool, SHOWN)) !== null) return false
  // Held until the keys are shown, so that a second node does not treat them as unseen.
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.firstStart)
    if ((await readSetting(client, SHOWN)) !== null) return false
    await show(await inTransaction(pool, tx => createFirst(tx, { secrets, actor })))
    await writeSetting(client, SHOWN, new Date().toISOString())
    return true
  })
}

async function createFirst(
  tx: pg.PoolClient,
  { secrets, actor }: { secrets: Secrets; actor: Actor },
): Promise<FirstStart> {
  await revokeUnseen(tx, actor)
  const tenant = (await insertTenantRecorded(tx, actor, TENANT)) ?? (await findTenant(tx, TENANT))!
  const key = (kind: 'private' | 'tracking' | 'admin') =>
    createKey(tx, actor, {
      tenantId: kind === 'admin' ? null : tenant.id,
      kind,
      name: null,
      scopes: kind === 'private' ? [...SCOPES] : [],
      server: false,
      role: kind === 'admin' ? 'admin' : null,
      allowedAddresses: [],
      limits: NO_LIMITS,
      expiresAt: null,
    })
  const created = {
    tenant: tenantView(tenant),
    privateKey: await key('private'),
    trackingKey: await key('tracking'),
    adminKey: await key('admin'),
    source: await createSource(tx, { actor, secrets }, tenant.id, { type: 'webhook', name: 'default' }),
  }
  const keys = [created.privateKey.id, created.trackingKey.id, created.adminKey.id]
  await writeSetting(tx, UNSEEN, JSON.stringify({ keys, source: created.source.id }))
  return created
}

async function revokeUnseen(tx: pg.PoolClient, actor: Actor): Promise<void> {
  const unseen = await readSetting(tx, UNSEEN)
  if (unseen === null) return
  const { keys, source } = JSON.parse(unseen) as { keys: string[]; source: string }
  for (const id of keys) {
    const key = await lockKey(tx, id)
    if (key) await revokeKeyRecorded(tx, actor, key)
  }
  await removeSource(tx, actor, source)
}
