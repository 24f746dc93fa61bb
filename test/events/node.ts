import { pino } from 'pino'
import { readConfig } from '../../src/config/config.ts'
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts'
import { TEST_SECRET_KEY, type TestServer } from '../server.ts'

/** Another node of a test server, on the same database, optionally through another URL. */
export async function startNode(
  server: TestServer,
  surfaces: string,
  databaseUrl = server.databaseUrl,
  settings: Record<string, string> = {},
): Promise<Runtime> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    KONTOR_OPS_PORT: 'off',
    KONTOR_PORT: '0',
    KONTOR_SECRET_KEY: TEST_SECRET_KEY,
    KONTOR_SURFACES: surfaces,
    ...settings,
  })
  return startRuntime({
    config,
    connection: { url: databaseUrl },
    log: pino({ level: process.env.KONTOR_TEST_LOG ?? 'silent' }),
  })
}
