import { pino } from 'pino'
import { commandLineActor } from '../src/admin/actor.ts'
import { type Admin, openAdmin } from '../src/admin/admin.ts'
import { openSecrets } from '../src/admin/secrets.ts'
import { type ConfigFlags, readConfig } from '../src/config/config.ts'
import type { ReadFree } from '../src/overload/disk.ts'
import { openPool } from '../src/postgres/database.ts'
import { natsOf, openLog } from '../src/runtime/log.ts'
import { startRuntime } from '../src/runtime/runtime.ts'
import { testDatabase } from './database.ts'
import { settled } from './settled.ts'

export const TEST_SECRET_KEY = '11'.repeat(32)

/** A tenant with a key of each kind. */
export type TestTenant = { id: string; name: string; privateKey: string; trackingKey: string }

export type TestServer = Awaited<ReturnType<typeof startServer>>

/**
 * The whole service on a database of its own and a free port, as `kontor start` runs it; but for the pipeline, which gets
 * its thread only when asked for: it takes half a second to start.
 */
export async function startServer(
  settings: Record<string, string> = {},
  flags: ConfigFlags = {},
  { pipelineThread = false, readFree }: { pipelineThread?: boolean; readFree?: ReadFree } = {},
) {
  const database = await testDatabase({ partitioned: true })
  const config = readConfig(
    {
      DATABASE_URL: database.url,
      KONTOR_OPS_PORT: 'off',
      // Tests fail from one address, and faster than people do.
      KONTOR_FAILED_AUTH_LIMIT: 'off',
      KONTOR_PORT: '0',
      KONTOR_SECRET_KEY: TEST_SECRET_KEY,
      ...settings,
    },
    flags,
  )
  const logger = pino({ level: process.env.KONTOR_TEST_LOG ?? 'silent' })
  const pool = openPool({
    connection: { url: database.url },
    max: 4,
    name: 'kontor test',
    onError: () => undefined,
  })
  const { log, close: closeLog } = await openLog({ pool, nats: natsOf(config), name: 'kontor test' })
  const admin = openAdmin({
    pool,
    log,
    secrets: openSecrets([Buffer.from(TEST_SECRET_KEY, 'hex')]),
    allowPrivateDestinations: config.allowPrivateDestinations,
  })(commandLineActor('test'))
  const tenant = await makeTenant(admin, 'default')
  const threadLogging = pipelineThread ? { level: logger.level, pretty: false } : undefined
  const start = (url = database.url) =>
    startRuntime({
      ...{ config, connection: { url }, log: logger },
      ...(threadLogging && { threadLogging }),
      ...(readFree && { readFree }),
    })
  let runtime = await start()

  return {
    get url() {
      return runtime.url
    },
    get opsUrl() {
      return runtime.opsUrl
    },
    get http() {
      return runtime.http!
    },
    databaseUrl: database.url,
    pool,
    log,
    admin,
    tenant,
    anotherTenant: (name: string) => makeTenant(admin, name),
    /** One whose tracking key is a server's: its events may say who is who. */
    async tenantOfServers(name: string): Promise<TestTenant> {
      const tenant = await makeTenant(admin, name)
      const { key } = await admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
      return { ...tenant, trackingKey: key }
    },
    request: (path: string, options: RequestInit & { key?: string } = {}) =>
      request(runtime.url, path, options),
    /** Stops and starts again on the same database, on a new port; `url` may lead there another way. */
    async restart(url?: string) {
      await runtime.close()
      runtime = await start(url)
    },
    /** Resolves when everything accepted so far has taken effect. */
    settled: () => settled(pool, log),
    async close() {
      await runtime.close()
      await closeLog()
      await pool.end()
      await database.drop()
    },
  }
}

async function makeTenant(admin: Admin, name: string): Promise<TestTenant> {
  const { id } = await admin.tenants.create({ name })
  const [privateKey, trackingKey] = await Promise.all(
    (['private', 'tracking'] as const).map(async kind => (await admin.keys.create({ tenant: id, kind })).key),
  )
  return { id, name, privateKey: privateKey!, trackingKey: trackingKey! }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
export type Answer = { status: number; headers: Headers; body: any }

/** A JSON request; `key` is sent as bearer. An object body is sent as JSON. */
async function request(url: string, path: string, options: RequestInit & { key?: string }): Promise<Answer> {
  const headers = new Headers(options.headers)
  if (options.key) headers.set('authorization', `Bearer ${options.key}`)
  if (options.body && !headers.has('content-type')) headers.set('content-type', 'application/json')
  const response = await fetch(url + path, { ...options, headers })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: isJson(response) ? JSON.parse(text) : text,
  }
}

function isJson(response: Response): boolean {
  return /json/.test(response.headers.get('content-type') ?? '')
}
