import { after, before } from 'node:test'
import { openJetStreamLog } from '../../src/log/jetstream/log.ts'
import { connectTo, type NatsSettings } from '../../src/log/jetstream/nats.ts'
import { type TestNats, testNats } from '../nats.ts'
import { anAppend } from './entries.ts'
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

export const anEvent = (body: string) => anAppend({ kind: 'events', body })

const ACCOUNTS = `
accounts {
  SYS { users: [{ user: sys, password: sys-password }] }
  APP { jetstream: enabled, users: [{ user: app, password: app-password }] }
  PLAIN { users: [{ user: plain, password: plain-password }] }
}
system_account: SYS
`

type OpenOptions = { warnings?: string[]; database?: TestLog; directory?: string }
type TestLog = Awaited<ReturnType<typeof openTestLog>>

/** One NATS server and database for the tests of a file, which open logs on streams of their own. */
export function useStreams(prefix: string) {
  let nats: TestNats
  let postgres: TestLog
  let names = 0
  const logs: ReturnType<typeof openJetStreamLog>[] = []
  before(async () => {
    nats = await testNats({ synced: true, settings: ACCOUNTS })
    postgres = await openTestLog()
  })
  const close = () => Promise.all(logs.map(log => log.close()))
  after(async () => {
    await close()
    await postgres.close()
    await nats.end()
  })
  const access = (user: string) => ({ ...natsSettings(nats.url).access, ...{ user, password: `${user}-password` } })
  return {
    get nats() {
      return nats
    },
    get postgres() {
      return postgres
    },
    access,
    /** Closes every log. */
    close,
    createSettings: (given: Partial<NatsSettings> = {}) =>
      natsSettings(nats.url, { access: access('app'), stream: `${prefix}-${++names}`, ...given }),
    /** A log that writes, as a node opens it. */
    async opened(settings: NatsSettings, { warnings = [], database = postgres, directory }: OpenOptions = {}) {
      const warn = (_: object, message: string) => warnings.push(message)
      const log = openJetStreamLog({
        ...{ pool: database.pool, settings, postgres: database.log, name: 'test', isWriter: true },
        ...{ logger: { warn, error: warn, info: () => {} }, directory: directory ?? null },
      })
      await log.outside.start(10_000).catch(async error => {
        await log.close()
        throw error
      })
      logs.push(log)
      return log
    },
    async manage<T>(work: (manager: Awaited<ReturnType<typeof connectTo>>['manager']) => Promise<T>): Promise<T> {
      const { connection, manager } = await connectTo(access('app'), 'test')
      return work(manager).finally(() => connection.close())
    },
  }
}
