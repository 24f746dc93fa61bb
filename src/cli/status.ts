import type { Command } from '@commander-js/extra-typings'
import { findHome } from '../../embedded-postgres/home.ts'
import { type Config, readConfig } from '../config/config.ts'
import { version } from '../config/version.ts'
import { type SeenStream, streamsSeen } from '../log/jetstream/known-streams.ts'
import { type OutsideLog, type Promised, totalUnread } from '../log/log.ts'
import { diskReader, isLow } from '../overload/disk.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { listStalled, type StalledPartition } from '../store/entries/parked.ts'
import { retentionHeldBy } from '../store/entries/retention-clock.ts'
import { newestMigration } from '../store/tenants/tenants.ts'
import { examples } from './options.ts'
import type { Output } from './output.ts'
import { requireLocal } from './remote.ts'
import { fetchServer, isResponding } from './running-server.ts'
import { readServerFile } from './server-file.ts'
import { type Database, dataOption, openSession, type Session, schemaProblem, withBareDatabase } from './session.ts'

const NOTES = `
Prints one JSON object. Its fields include:
  version          version of the running server
  command_version  version of this command
  ops_url          URL of the operations port (/healthz, /readyz, /metrics), or null if it is off
  schema           newest migration of the database
  pipeline         accepted entries that wait to be processed; "stalled" lists the partitions of the log whose processing fails
  jetstream        entries that wait in NATS JetStream, or null without NATS_URL
  streams          the JetStream streams that servers of this database have used
  backlog          waiting entries in total, and the limit above which requests are rejected (KONTOR_MAX_BACKLOG)
  dead_letters     number of open dead letters: neither replayed nor resolved
  expiring_keys    keys that expire within 14 days
  retention_held   the reason why Kontor currently deletes no expired data, or null
Exit code 0 if a server is running and responds, otherwise 1.
If the schema of the database is older than this version, the command prints the schema version and how to migrate, and changes nothing.
With DATABASE_URL, the server is found through its operations port on this machine (KONTOR_OPS_HOST, KONTOR_OPS_PORT).`

export function addStatus(program: Command, out: Output): void {
  program
    .command('status')
    .description('Show whether a server is running, its URL, and how many requests wait to be processed.')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText('after', examples('kontor status', 'kontor status --data /srv/kontor | jq .pipeline'))
    .action(async options => {
      await requireLocal(options)
      const config = readConfig(undefined, { dataDir: options.data })
      const server = await findServer(config, out)
      const isFresh = config.databaseUrl === null && (await findHome(config.dataDir)) === null
      const database = isFresh
        ? EMPTY_DATABASE
        : await withBareDatabase(options, out, bare => readSchemaOrAll(bare, out))
      const data = config.databaseUrl === null ? config.dataDir : null
      out.json({ ...server, command_version: version, data, disk: await readDisk(config), ...database })
      out.exitCode = server.running ? 0 : 1
    })
}

/** Null if unknown: the disk of an external PostgreSQL. */
async function readDisk(config: Config) {
  const free = await diskReader(config)()
  if (free === null) return null
  return { free_percent: Math.round(free * 1_000) / 10, is_low: isLow(free, config.minFreeDisk) }
}

const EMPTY_DATABASE = {
  schema: null,
  tenants: 0,
  pipeline: null,
  jetstream: null,
  streams: [],
  backlog: null,
  dead_letters: 0,
  expiring_keys: [],
  retention_held: null,
}

/** Exit code 0 if a server is running and responds, otherwise 1.
For a database of an older version, reports only the schema: a server of that version may be using it. */
async function readSchemaOrAll(bare: Database, out: Output) {
  const problem = await schemaProblem(bare)
  if (problem === null) return readDatabase(await openSession(bare))
  out.say(problem)
  return {
    ...EMPTY_DATABASE,
    schema: await newestMigration(bare.pool),
    tenants: null,
    dead_letters: null,
    expiring_keys: null,
  }
}

async function readDatabase({ pool, config, admin, log }: Session) {
  const { entries, oldestAt } = totalUnread(await log.lag({ withinPostgres: true }))
  const streams = await streamsSeen(pool)
  const jetstream = log.outside && (await readJetstream(log.outside, streams))
  return {
    schema: await newestMigration(pool),
    tenants: (await admin.tenants.list()).length,
    pipeline: {
      ...{ waiting: entries, oldest_at: oldestAt?.toISOString() ?? null },
      stalled: (await listStalled(pool)).map(stalledView),
    },
    jetstream,
    streams: streams.map(streamView),
    backlog: computeBacklog(entries, jetstream, config.maxBacklog),
    dead_letters: await countDeadLetters(pool),
    expiring_keys: (await admin.keys.expiringSoon()).map(({ id, kind, tenant, expires_at }) => ({
      id,
      kind,
      tenant,
      expires_at,
    })),
    retention_held: await retentionHeldBy(pool),
  }
}

const NOT_RUNNING = {
  running: false,
  url: null,
  ops_url: null,
  pid: null,
  version: null,
  processes: null,
  started_at: null,
}

const PROMISES: Promised[] = ['process-crash only', 'replicated', 'synced']

/**
 * The log in JetStream; `pipeline` describes the one in PostgreSQL. `promise`: the durability of an acknowledged event, according to
 * the servers that write to the stream: this command may have other settings than they have. Of several, the weakest.
 */
async function readJetstream(outside: OutsideLog, streams: SeenStream[]) {
  const { maxBytes, skippedMessages, lost, ...status } = await outside.status()
  const writers = streams.find(({ name }) => name === outside.stream)?.writers ?? []
  const promises = writers.flatMap(({ promise }) => promise ?? [])
  if (promises.length > 0) status.promise = PROMISES.find(promise => promises.includes(promise))!
  const { foreign, unreadable } = skippedMessages
  return {
    ...{ ...status, max_bytes: maxBytes, lost: lost?.entries ?? 0 },
    passed_over: { foreign: foreign?.messages ?? 0, unreadable: unreadable?.messages ?? 0 },
  }
}

/** As recorded in PostgreSQL, whether NATS_URL is set for this command or not. */
function streamView({ name, servers, unread, seenAt, readAt, leftAt, writers }: SeenStream) {
  return {
    ...{ name, servers, unread, seen_at: seenAt.toISOString(), read_at: readAt.toISOString() },
    left_at: leftAt?.toISOString() ?? null,
    writers: writers.map(({ secondsAgo, ...writer }) => ({ ...writer, seconds_ago: secondsAgo })),
  }
}

/** Unprocessed entries in both logs (null while NATS is unavailable), and the limit above which requests are answered 503. */
function computeBacklog(inPostgres: number, jetstream: { unread: number | null } | null, max: number | null) {
  const outside = jetstream === null ? 0 : jetstream.unread
  const isFull = max !== null && inPostgres + (outside ?? 0) >= max
  return { entries: outside === null ? null : inPostgres + outside, max, is_full: isFull }
}

async function findServer(config: Config, out: Output) {
  if (config.databaseUrl !== null) return findOpsServer(config, out)
  const server = await readServerFile(config.dataDir)
  const answers = server !== null && (await isResponding(server.ops_url ? `${server.ops_url}/healthz` : server.url))
  if (!server || !answers) return NOT_RUNNING
  return { running: true, ...server }
}

/** Servers of an external database may run on any machine. A server on this machine has an operations port here. */
async function findOpsServer({ opsHost, opsPort }: Config, out: Output) {
  const opsUrl = opsPort === null ? null : `http://${opsHost}:${opsPort}`
  const server = opsUrl && (await fetchServer(opsUrl))
  if (server) return { ...NOT_RUNNING, ...server, running: true, ops_url: opsUrl }
  const why = opsUrl ? `No server responds at ${opsUrl} (KONTOR_OPS_PORT)` : 'KONTOR_OPS_PORT is off'
  out.say(`${why}. This report covers only the database. Servers on other machines may be using the database.`)
  return { ...NOT_RUNNING, ops_url: opsUrl }
}

function stalledView({ partition, failedAt, error }: StalledPartition) {
  return { partition, failed_at: failedAt.toISOString(), error }
}
