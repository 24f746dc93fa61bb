import { pino } from 'pino'
import { readConfig } from '../../src/config/config.ts'
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts'
import { TEST_SECRET_KEY, type TestServer } from '../server.ts'

/** Another node with the inbound surface for a test server, with its own settings. */
export async function startInboundNode(server: TestServer, settings: Record<string, string> = {}): Promise<Runtime> {
  const config = readConfig({
    DATABASE_URL: server.databaseUrl,
    KONTOR_OPS_PORT: 'off',
    KONTOR_PORT: '0',
    KONTOR_SECRET_KEY: TEST_SECRET_KEY,
    KONTOR_SURFACES: 'inbound',
    ...settings,
  })
  return startRuntime({ config, connection: { url: config.databaseUrl! }, log: pino({ level: 'silent' }) })
}
