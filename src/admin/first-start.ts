import type pg from 'pg'
import { SCOPES } from '../domain/tenants/keys.ts'
import { inTransaction } from '../postgres/database.ts'
import { LOCKS, lock } from '../postgres/locks.ts'
import { deleteSource } from '../store/inbound/sources.ts'
import { revokeKey } from '../store/tenants/keys.ts'
import { readSetting, writeSetting } from '../store/tenants/settings.ts'
import { createTenant, findTenant } from '../store/tenants/tenants.ts'
import { makeKey } from './keys.ts'
import type { Secrets } from './secrets.ts'
import { makeSource } from './sources.ts'
import { tenantView } from './tenants.ts'
import type { CreatedKey, CreatedSource } from './views.ts'

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
 * On the first start of an installation: makes the tenant "default" with keys and a source and has them shown. What a
 * start made that was killed before it could show it is revoked by the next one, which makes its own: nobody ever
 * saw those keys. Returns whether this was the first start.
 */
export async function onFirstStart(
  { pool, secrets }: { pool: pg.Pool; secrets: Secrets },
  show: (made: FirstStart) => Promise<void>,
): Promise<boolean> {
  if ((await readSetting(pool, SHOWN)) !== null) return false
  // Held until the keys have been shown: a second node must not take them for unseen.
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.firstStart)
    if ((await readSetting(client, SHOWN)) !== null) return false
    await show(await inTransaction(pool, maker => make(maker, secrets)))
    await writeSetting(client, SHOWN, new Date().toISOString())
    return true
  })
}

async function make(client: pg.PoolClient, secrets: Secrets): Promise<FirstStart> {
  await removeUnseen(client)
  const tenant = (await createTenant(client, TENANT)) ?? (await findTenant(client, TENANT))!
  const key = (kind: 'private' | 'tracking' | 'admin') =>
    makeKey(client, {
      tenantId: kind === 'admin' ? null : tenant.id,
      kind,
      scopes: kind === 'private' ? [...SCOPES] : [],
      expiresAt: null,
    })
  const made = {
    tenant: tenantView(tenant),
    privateKey: await key('private'),
    trackingKey: await key('tracking'),
    adminKey: await key('admin'),
    source: await makeSource(client, secrets, tenant.id, { type: 'webhook', name: 'default' }),
  }
  const keys = [made.privateKey.id, made.trackingKey.id, made.adminKey.id]
  await writeSetting(client, UNSEEN, JSON.stringify({ keys, source: made.source.id }))
  return made
}

async function removeUnseen(client: pg.PoolClient): Promise<void> {
  const unseen = await readSetting(client, UNSEEN)
  if (unseen === null) return
  const { keys, source } = JSON.parse(unseen) as { keys: string[]; source: string }
  for (const id of keys) await revokeKey(client, id)
  await deleteSource(client, source)
}
