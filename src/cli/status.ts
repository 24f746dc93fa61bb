import { findHome } from '../../embedded-postgres/home.ts'
import { type Config, readConfig } from '../config/config.ts'
import { version } from '../config/version.ts'
import { openPostgresLog } from '../log/postgres/log.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { newestMigration } from '../store/tenants/settings.ts'
import { defineCommand } from './command.ts'
import { announcedServer } from './server-file.ts'
import { databaseFlags, withDatabase } from './session.ts'

export const status = defineCommand({
  name: 'status',
  summary: 'Tell whether a server runs, where, and how the pipeline stands.',
  flags: databaseFlags,
  notes: [
    'Prints one JSON object. Exit code 0 when a server runs and answers, 1 when none does.\n' +
      'With DATABASE_URL it asks the operations port of this machine (KONTOR_OPS_HOST, KONTOR_OPS_PORT).',
  ],
  examples: ['kontor status', 'kontor status --data /var/lib/kontor | jq .pipeline'],
  run: async ({ flags, out }) => {
    const config = readConfig(undefined, { dataDir: flags.data })
    const server = await serverOf(config)
    const isFresh = config.databaseUrl === null && (await findHome(config.dataDir)) === null
    const database = isFresh
      ? { schema: null, tenants: 0, pipeline: null, dead_letters: 0 }
      : await withDatabase(flags, out, async ({ pool, admin }) => {
          const partitions = await openPostgresLog({ pool }).lag()
          return {
            schema: await newestMigration(pool),
            tenants: (await admin.tenants.list()).length,
            pipeline: pipelineOf(partitions),
            dead_letters: await countDeadLetters(pool),
          }
        })
    const place = config.databaseUrl === null ? { data: config.dataDir } : { data: null }
    out.json({ ...server, command_version: version, ...place, ...database })
    return server.running ? 0 : 1
  },
})

async function serverOf(config: Config) {
  if (config.databaseUrl !== null) {
    const opsUrl = config.opsPort === null ? null : `http://${config.opsHost}:${config.opsPort}`
    const answers = opsUrl !== null && (await answersAt(`${opsUrl}/healthz`))
    return { running: answers, url: null, ops_url: opsUrl, pid: null, version: null, started_at: null }
  }
  const server = await announcedServer(config.dataDir)
  const answers =
    server !== null && (await answersAt(server.ops_url ? `${server.ops_url}/healthz` : server.url))
  if (!server || !answers)
    return { running: false, url: null, ops_url: null, pid: null, version: null, started_at: null }
  return { running: true, ...server }
}

async function answersAt(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return response.status < 500
  } catch {
    return false
  }
}

function pipelineOf(partitions: { entries: number; oldestAt: Date | null }[]) {
  const oldest = partitions.flatMap(({ oldestAt }) => (oldestAt ? [oldestAt.getTime()] : []))
  return {
    waiting: partitions.reduce((sum, { entries }) => sum + entries, 0),
    oldest_at: oldest.length > 0 ? new Date(Math.min(...oldest)).toISOString() : null,
  }
}
