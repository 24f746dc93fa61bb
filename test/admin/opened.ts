import { after } from 'node:test'
import type pg from 'pg'
import { type Actor, commandLineActor } from '../../src/admin/actor.ts'
import { type Admin, type AdminFor, openAdmin } from '../../src/admin/admin.ts'
import { openSecrets, type Secrets } from '../../src/admin/secrets.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { testDatabase } from '../database.ts'

/** A database for one test file, with the admin services. */
export async function openedAdmin(): Promise<{
  pool: pg.Pool
  actor: Actor
  adminFor: AdminFor
  admin: Admin
  secrets: Secrets
  url: string
}> {
  const database = await testDatabase()
  const { url } = database
  const pool = openPool({ connection: { url }, max: 4, name: 'test', onError: () => {} })
  const secrets = openSecrets([Buffer.alloc(32, 1)])
  after(async () => {
    await pool.end()
    await database.drop()
  })
  const actor = commandLineActor('test')
  const adminFor = openAdmin({ pool, log: openPostgresLog({ pool }), secrets })
  return { pool, secrets, url, actor, adminFor, admin: adminFor(actor) }
}
