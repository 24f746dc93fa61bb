import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { commandLineActor } from '../src/admin/actor.ts'
import { openAdmin } from '../src/admin/admin.ts'
import { openSecrets } from '../src/admin/secrets.ts'
import { type Config, type ConfigFlags, readConfig, sendingSettings } from '../src/config/config.ts'
import { parseTenantId } from '../src/domain/tenants/tenants.ts'
import type { ReadFree } from '../src/overload/disk.ts'
import { openPool } from '../src/postgres/database.ts'
import { openLog, toNatsSettings } from '../src/runtime/log.ts'
import { startRuntime } from '../src/runtime/runtime.ts'
import { testDatabase } from './database.ts'
import { settled } from './settled.ts'

export const TEST_SECRET_KEY = '11'.repeat(32)

/** A tenant with a key of each kind. */
export type TestTenant = { id: string; name: string; privateKey: string; trackingKey: string }

/** A running server, a tenant, and access to its internals for tests. */
export type TestServer = Awaited<ReturnType<typeof connect>>

/** A server of one test file: it can be restarted and inspected. */
export type OwnServer = Awaited<ReturnType<typeof startServer>>

/** `npm test` starts one server for all test files that need no settings. This variable contains its address. */
export const SHARED_SERVER_VARIABLE = 'KONTOR_TEST_SHARED_SERVER'

/**
 * The server that test files share, with a separate tenant for this file. For tests that need no settings and neither change nor
 * count anything outside their tenants. A file that runs alone gets its own server.
 */
export async function sharedServer(): Promise<TestServer> {
  const found = process.env[SHARED_SERVER_VARIABLE]
  if (found === undefined) return startServer()
  const { url, databaseUrl } = JSON.parse(found) as { url: string; databaseUrl: string }
  return connect({ url: () => url, config: testConfig(databaseUrl), databaseUrl, isShared: true })
}

/**
 * The whole server on a separate database and a free port, as `kontor start` runs it. Only on request does the pipeline get
 * its own thread, which takes half a second to start.
 */
export async function startServer(
  settings: Record<string, string> = {},
  flags: ConfigFlags = {},
  { pipelineThread = false, readFree }: { pipelineThread?: boolean; readFree?: ReadFree } = {},
) {
  const database = await testDatabase({ partitioned: true })
  const config = testConfig(database.url, settings, flags)
  const logger = pino({ level: process.env.KONTOR_TEST_LOG ?? 'silent' })
  const threadLogging = pipelineThread ? { level: logger.level, pretty: false } : undefined
  const start = (url = database.url) =>
    startRuntime({
      ...{ config, connection: { url }, log: logger },
      ...(threadLogging && { threadLogging }),
      ...(readFree && { readFree }),
    })
  const connected = await connect({
    url: () => runtime.url,
    config,
    databaseUrl: database.url,
    isShared: false,
  })
  let runtime = await start()

  return {
    ...connected,
    get url() {
      return runtime.url
    },
    get opsUrl() {
      return runtime.opsUrl
    },
    get http() {
      return runtime.http!
    },
    /** Restarts on the same database with a new port. With `url`, connects to the database by that URL. */
    async restart(url?: string) {
      await runtime.close()
      runtime = await start(url)
    },
    /** Stops the server and keeps the database. */
    stop: () => runtime.close(),
    async close() {
      await runtime.close()
      await connected.close()
      await database.drop()
    },
  }
}

function testConfig(databaseUrl: string, settings: Record<string, string> = {}, flags: ConfigFlags = {}) {
  return readConfig(
    {
      DATABASE_URL: databaseUrl,
      KONTOR_OPS_PORT: 'off',
      // Tests send invalid credentials from one address, and faster than people do.
      KONTOR_FAILED_AUTH_LIMIT: 'off',
      KONTOR_PORT: '0',
      KONTOR_SECRET_KEY: TEST_SECRET_KEY,
      ...settings,
    },
    flags,
  )
}

type Connection = { url(): string; config: Config; databaseUrl: string; isShared: boolean }

async function connect({ url, config, databaseUrl, isShared }: Connection) {
  const pool = openPool({
    connection: { url: databaseUrl },
    max: 4,
    name: 'kontor test',
    onError: () => undefined,
  })
  const { log, close: closeLog } = await openLog({
    pool,
    nats: toNatsSettings(config),
    name: 'kontor test',
  })
  const admin = openAdmin({
    pool,
    log,
    secrets: openSecrets([Buffer.from(TEST_SECRET_KEY, 'hex')]),
    ...sendingSettings(config),
  })(commandLineActor('test'))
  const tenantIds: number[] = []
  const createTenant = async (name: string): Promise<TestTenant> => {
    // Another file may use the same name.
    const uniqueName = isShared ? `${name.slice(0, 60)}-${randomUUID()}` : name
    const { id } = await admin.tenants.create({ name: uniqueName })
    tenantIds.push(parseTenantId(id)!)
    const [privateKey, trackingKey] = await Promise.all(
      (['private', 'tracking'] as const).map(async kind => (await admin.keys.create({ tenant: id, kind })).key),
    )
    return { id, name: uniqueName, privateKey: privateKey!, trackingKey: trackingKey! }
  }

  return {
    get url() {
      return url()
    },
    databaseUrl,
    pool,
    log,
    admin,
    tenant: await createTenant('default'),
    anotherTenant: createTenant,
    /** A tenant whose tracking key is a server key: its events may link and merge people. */
    async tenantWithServerKey(name: string): Promise<TestTenant> {
      const tenant = await createTenant(name)
      const { key } = await admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
      return { ...tenant, trackingKey: key }
    },
    request: (path: string, options: RequestInit & { key?: string } = {}) => request(url(), path, options),
    /** Resolves when everything accepted so far is applied; with a shared server, for the tenants of this file. */
    settled: () => settled(pool, log, isShared ? tenantIds : undefined),
    async close() {
      await closeLog()
      await pool.end()
    },
  }
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
  return /[/+]json\b/.test(response.headers.get('content-type') ?? '')
}
