import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { newEntryId } from '../../src/domain/ids.ts'
import { hashOfSecret, NO_LIMITS, newKey, newPublicId } from '../../src/domain/tenants/keys.ts'
import { inTransaction, openPool } from '../../src/postgres/database.ts'
import { lockPeople } from '../../src/postgres/locks.ts'
import { insertErasure } from '../../src/store/identity/erasures.ts'
import { configVersion, holdConfigVersion, watchConfigVersion } from '../../src/store/tenants/config-version.ts'
import { openDirectory } from '../../src/store/tenants/directory.ts'
import { insertKey, revokeKey } from '../../src/store/tenants/keys.ts'
import { createTenant, updateTenant } from '../../src/store/tenants/tenants.ts'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 6, name: 'test', onError: () => {} })
})
after(async () => {
  await pool.end()
  await database.drop()
})

async function hasWaitingSession(): Promise<boolean> {
  const { rows } = await pool.query(
    `select from pg_locks l join pg_stat_activity a using (pid)
     where not l.granted and l.locktype = 'advisory' and a.datname = current_database()`,
  )
  return rows.length > 0
}

/** The lock and the receipt of an erasure, without deleting anything. */
async function erase(client: pg.PoolClient, tenantId: number): Promise<void> {
  await lockPeople(client, tenantId)
  const requestedAt = new Date()
  const id = newEntryId(requestedAt.getTime())
  await insertErasure(client, {
    id,
    tenantId,
    requestedAt,
    subjectHash: Buffer.alloc(32),
    status: 'completed',
    subject: null,
    receipt: '{}',
  })
}

test('a transaction that waited for an erasure has the version that the erasure created', async () => {
  const before = await configVersion(pool)
  let held: Promise<number> | undefined
  await inTransaction(pool, async client => {
    await erase(client, 7)
    held = inTransaction(pool, async worker => (await holdConfigVersion(worker, [7, 8])).configVersion)
    await eventually('the worker to wait', hasWaitingSession)
  })
  assert.equal(await held, before + 1)
})

test('an erasure waits for the transactions that hold a version, except those of other tenants', async () => {
  const before = await configVersion(pool)
  let erased: Promise<void> | undefined
  await inTransaction(pool, async worker => {
    assert.equal((await holdConfigVersion(worker, [7])).configVersion, before)
    await inTransaction(pool, client => erase(client, 8))
    erased = inTransaction(pool, client => erase(client, 7))
    await eventually('the erasure to wait', hasWaitingSession)
    assert.equal(await configVersion(pool), before + 1)
  })
  await erased
  assert.equal(await configVersion(pool), before + 2)
})

test('a transaction over any number of tenants takes a bounded number of locks', async () => {
  const tenantIds = Array.from({ length: 5_000 }, (_, i) => i + 1)
  await inTransaction(pool, async worker => {
    await holdConfigVersion(worker, tenantIds)
    const { rows } = await worker.query<{ count: number }>(
      `select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
    )
    assert.equal(rows[0]!.count, 64)
  })
})

test('a watcher is notified of a change, even if notifications are lost', async () => {
  const tenant = (await createTenant(pool, 'watched'))!
  for (const channel of ['with notifications', 'without']) {
    let notified = 0
    const watcher = await watchConfigVersion(pool, () => notified++)
    if (channel === 'without') {
      await eventually('the listener to listen', async () => {
        const { rowCount } = await pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query = 'listen kontor_config' and datname = current_database()`,
        )
        return rowCount === 1
      })
    }
    await updateTenant(pool, { ...tenant, conversionTypes: ['signed up'] })
    await eventually('the watcher to be notified', async () => notified === 1)
    await watcher.stop()
  }
})

test('a process that receives no notifications rejects a revoked key after its next check', async () => {
  const tenant = (await createTenant(pool, 'revoking'))!
  const secret = newKey('tracking')
  const id = newPublicId('key')
  await insertKey(pool, {
    ...{ id, tenantId: tenant.id, kind: 'tracking', hash: hashOfSecret(secret), hint: '', name: null },
    ...{
      scopes: [],
      server: false,
      role: null,
      allowedAddresses: [],
      limits: NO_LIMITS,
      createdBy: 'test',
      expiresAt: null,
    },
  })
  let checks = 0
  // The pool of the other process. It cannot listen.
  const other = new Proxy(pool, {
    get(own, name) {
      if (name === 'connect') return () => Promise.reject(new Error('no connection'))
      const value = Reflect.get(own, name)
      return typeof value === 'function' ? value.bind(own) : value
    },
  })
  const directory = openDirectory({ pool })
  const counting = new Proxy(other, {
    get(own, name) {
      if (name === 'query') checks++
      return Reflect.get(own, name)
    },
  })
  const watcher = await watchConfigVersion(counting, directory.forget)
  try {
    assert.equal((await directory.key(secret))?.revokedAt, null)
    await revokeKey(pool, id)
    const before = checks
    await eventually('the key to be rejected', async () => (await directory.key(secret))?.revokedAt != null)
    // One may have been under way.
    assert.ok(checks - before <= 2, `${checks - before} checks`)
  } finally {
    await watcher.stop()
  }
})
