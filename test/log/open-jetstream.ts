import { openJetStreamLog } from '../../src/log/jetstream/log.ts'
import type { NatsSettings } from '../../src/log/jetstream/nats.ts'
import { testNats } from '../nats.ts'
import { openTestLog, PARTITIONS } from './open.ts'

export function natsSettings(url: string, given: Partial<NatsSettings> = {}): NatsSettings {
  return {
    access: {
      ...{ servers: [new URL(url).host], tls: false, user: null, password: null, token: null },
      credentialsFile: null,
    },
    systemAccess: null,
    stream: 'kontor',
    partitions: PARTITIONS,
    maxBytes: 2 ** 28,
    maxAgeMs: 86_400_000,
    replicas: null,
    isSynced: false,
    takesOver: false,
    ...given,
  }
}

/** A log on its own NATS server and database. */
export async function openJetStreamTestLog(given: Partial<NatsSettings> = {}) {
  const nats = await testNats()
  const postgres = await openTestLog()
  const { pool } = postgres
  const settings = natsSettings(nats.url, given)
  const open = () => openJetStreamLog({ pool, settings, postgres: postgres.log, name: 'log test' })
  const log = open()
  await log.outside.start(10_000)
  return {
    ...{ nats, pool, settings, postgres, log, open },
    readable: postgres.readable,
    async close() {
      await log.close()
      await postgres.close()
      await nats.end()
    },
  }
}
