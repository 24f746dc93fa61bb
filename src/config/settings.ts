import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { archiveSettings } from './archive-settings.ts'
import { readDatabaseUrl, withoutPassword } from './database-url.ts'
import { natsSettings } from './nats-settings.ts'
import { setting, withoutDefault } from './setting.ts'
import { signInSettings } from './sign-in-settings.ts'
import {
  boolean,
  bytes,
  duration,
  headerName,
  host,
  httpUrl,
  integer,
  orOff,
  percent,
  port,
  secretKeys,
  trustedProxies,
  UNIT_MS,
  userName,
  word,
  wordsOf,
} from './values.ts'

export const SURFACES = ['data', 'events', 'inbound', 'console', 'worker'] as const
export type Surface = (typeof SURFACES)[number]

const retention = duration(UNIT_MS.d, 36_500 * UNIT_MS.d)

/** Every setting there is. docs/configuration.md lists the same ones, and a test compares the two. */
export const settings = {
  port: setting({
    name: 'KONTOR_PORT',
    flag: 'port',
    default: '8080',
    meaning: 'The port of the HTTP surfaces. 0 takes any free one.',
    expects: 'a port number from 0 to 65535, for example 8080',
    read: port,
  }),
  host: setting({
    name: 'KONTOR_HOST',
    flag: 'host',
    default: '127.0.0.1',
    meaning: 'The address to listen on. 0.0.0.0 makes Kontor reachable from other machines and containers.',
    expects: 'an IP address or a host name, for example 0.0.0.0',
    read: host,
  }),
  opsPort: setting({
    name: 'KONTOR_OPS_PORT',
    default: '9464',
    meaning:
      'The port of /healthz, /readyz and /metrics. `off` serves none; 0 takes any free one. ' +
      'When it is not set and 9464 is taken, Kontor starts without it and says so.',
    expects: 'a port number from 0 to 65535 or "off", for example 9464',
    read: orOff(port),
  }),
  opsHost: setting({
    name: 'KONTOR_OPS_HOST',
    default: '127.0.0.1',
    meaning: 'The address the operations port listens on. It asks for no credentials: keep it private.',
    expects: 'an IP address or a host name, for example 0.0.0.0',
    read: host,
  }),
  dataDir: setting({
    name: 'KONTOR_DATA_DIR',
    flag: 'data',
    default: './data',
    meaning: 'Where the embedded PostgreSQL and the master key live. Not used with DATABASE_URL.',
    expects: 'a directory, for example /var/lib/kontor',
    read: text => (text.includes('\0') ? undefined : resolve(text)),
    show: text => resolve(text),
  }),
  databaseUrl: withoutDefault({
    name: 'DATABASE_URL',
    meaning:
      'A PostgreSQL of your own (version 15 or newer, also behind a transaction-mode pooler) instead of the embedded one. ' +
      'With several hosts, separated by commas, the one that can be written to is used, and looked for again when it is lost.',
    expects:
      'an address with a database name, for example postgres://kontor:PASSWORD@db.internal:5432/kontor ' +
      'or postgres://kontor:PASSWORD@db-1:5432,db-2:5432/kontor?target_session_attrs=read-write',
    read: readDatabaseUrl,
    show: withoutPassword,
  }),
  surfaces: setting({
    name: 'KONTOR_SURFACES',
    flag: 'surfaces',
    default: SURFACES.join(','),
    meaning:
      'What this process runs: any of data, events, inbound, console, worker, separated by commas, or `all`.',
    expects: `one or more of ${SURFACES.join(', ')}, separated by commas, for example events,inbound`,
    read: wordsOf(SURFACES),
  }),
  secretKeys: withoutDefault({
    name: 'KONTOR_SECRET_KEY',
    meaning:
      'The master key that signing secrets are encrypted under: 32 random bytes as hex or base64. With the embedded ' +
      'PostgreSQL one is made on first use (`secret.key` in the data directory); with DATABASE_URL it must be set before ' +
      'a source can have a signing secret, to the same value on every node. Several, separated by commas: the first one encrypts, all of them decrypt.',
    expects:
      '32 bytes as 64 hex digits or 44 base64 characters (several are separated by commas). Make one with: openssl rand -hex 32',
    read: secretKeys,
    show: () => '(hidden)',
  }),
  logRetentionMs: setting({
    name: 'KONTOR_LOG_RETENTION',
    default: '7d',
    meaning: 'How long accepted entries stay in the log after they have been processed.',
    expects: 'a time of at least a day, for example 7d',
    read: retention,
  }),
  operationsRetentionMs: setting({
    name: 'KONTOR_OPERATIONS_RETENTION',
    default: '30d',
    meaning: 'How long GET /v1/operations/:operationId knows what became of a write.',
    expects: 'a time of at least a day, for example 30d',
    read: retention,
  }),
  receiptsRetentionMs: setting({
    name: 'KONTOR_RECEIPTS_RETENTION',
    default: '30d',
    meaning: 'How long receipts of inbound events are kept.',
    expects: 'a time of at least a day, for example 30d',
    read: retention,
  }),
  archiveRetentionMs: setting({
    name: 'KONTOR_ARCHIVE_RETENTION',
    default: '30d',
    meaning: 'How long the archived results of inbound events are kept.',
    expects: 'a time of at least a day, for example 30d',
    read: retention,
  }),
  deliveriesRetentionMs: setting({
    name: 'KONTOR_DELIVERIES_RETENTION',
    default: '30d',
    meaning: 'How long what was sent to destinations can be replayed, and how long the attempts are listed.',
    expects: 'a time of at least a day, for example 30d',
    read: retention,
  }),
  allowPrivateDestinations: setting({
    name: 'KONTOR_ALLOW_PRIVATE_DESTINATIONS',
    default: 'false',
    meaning:
      'Whether destinations may lie in private networks or on this machine, and be reached without TLS. Whoever may make a destination could then reach what only this machine can.',
    expects: 'true or false',
    read: boolean,
  }),
  processedRetentionMs: setting({
    name: 'KONTOR_PROCESSED_RETENTION',
    default: '90d',
    meaning: 'How long a repeated event is recognised. Not shorter than receipts and archive are kept.',
    expects: 'a time of at least a day, for example 90d',
    read: retention,
  }),
  eventsRetentionMs: setting({
    name: 'KONTOR_EVENTS_RETENTION',
    default: 'off',
    meaning: 'How long normalized events are kept. `off` keeps them for good.',
    expects: 'a time of at least a day or "off", for example 730d',
    read: orOff(retention),
  }),
  eventsFloorMs: setting({
    name: 'KONTOR_EVENTS_FLOOR',
    default: '3650d',
    meaning:
      'How long ago an event of a public tracking key may say it happened. An earlier one counts as of then, and keeps what it said in meta.client_time. `off`: any time.',
    expects: 'a time of at least a day or "off", for example 3650d',
    read: orOff(retention),
  }),
  deadLettersRetentionMs: setting({
    name: 'KONTOR_DEAD_LETTERS_RETENTION',
    default: '365d',
    meaning: 'How long dead letters are kept after they failed, replayed or not. `off` keeps them for good.',
    expects: 'a time of at least a day or "off", for example 365d',
    read: orOff(retention),
  }),
  logPartitions: setting({
    name: 'KONTOR_LOG_PARTITIONS',
    default: '16',
    meaning:
      'Into how many partitions the log is cut: the most workers that can share it. Fixed when the database is initialised.',
    expects: 'a number from 1 to 256, for example 16',
    read: integer(1, 256),
  }),
  logLevel: setting({
    name: 'KONTOR_LOG_LEVEL',
    default: 'info',
    meaning: 'The least severe messages to log: trace, debug, info, warn, error, fatal or silent.',
    expects: 'one of trace, debug, info, warn, error, fatal, silent',
    read: word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  }),
  logFormat: setting({
    name: 'KONTOR_LOG_FORMAT',
    default: 'auto',
    meaning: 'json: one object a line; pretty: for people; auto: pretty on a terminal, else json.',
    expects: 'one of json, pretty, auto',
    read: word('json', 'pretty', 'auto'),
  }),
  poolSize: setting({
    name: 'KONTOR_POOL_SIZE',
    default: '10',
    meaning:
      'The most connections to PostgreSQL that this process opens for requests; its workers have their own.',
    expects: 'a number from 2 to 500, for example 10',
    read: integer(2, 500),
  }),
  processes: setting({
    name: 'KONTOR_PROCESSES',
    default: '1',
    meaning:
      'How many processes serve requests, on one port; auto: one for each processor. With more than one, the pipeline and the jobs ' +
      'run in a process beside them, each has a pool and limits of its own, and budgets of volume protection are counted in postgres.',
    expects: 'a number from 1 to 64, or auto',
    read: text => (text === 'auto' ? Math.min(availableParallelism(), 64) : integer(1, 64)(text)),
  }),
  workers: setting({
    name: 'KONTOR_WORKERS',
    default: '4',
    meaning: 'How many partitions of the log this process works on at a time.',
    expects: 'a number from 1 to 64, for example 4',
    read: integer(1, 64),
  }),
  maxPendingBytes: setting({
    name: 'KONTOR_MAX_PENDING_BYTES',
    default: '64MiB',
    meaning:
      'How much accepted but not yet durable data may wait in memory; beyond it requests are answered 503.',
    expects: 'a size from 1MiB to 16GiB, for example 64MiB',
    read: bytes(2 ** 20, 2 ** 34),
  }),
  maxInFlightBytes: setting({
    name: 'KONTOR_MAX_IN_FLIGHT_BYTES',
    default: '64MiB',
    meaning:
      'How many bytes of request bodies this process holds at a time, from their arrival until the answer; beyond it requests are answered 503. ' +
      'An eighth of it, and at least 2 MiB, is for those whose credential stands in the body.',
    expects: 'a size from 1MiB to 16GiB, for example 64MiB',
    read: bytes(2 ** 20, 2 ** 34),
  }),
  maxBacklog: setting({
    name: 'KONTOR_MAX_BACKLOG',
    default: '10000000',
    meaning:
      'How many accepted entries (a record write, an event, a batch or a webhook is one) may wait in the log to be processed; beyond it events, ' +
      'webhooks and record writes are answered 503 while everything is still read. `off`: any number.',
    expects: 'a number from 1000 to 1000000000 or "off", for example 10000000',
    read: orOff(integer(1_000, 1_000_000_000)),
  }),
  minFreeDisk: setting({
    name: 'KONTOR_MIN_FREE_DISK',
    default: '5%',
    meaning:
      'With less than this free on the disk of the embedded PostgreSQL, events and webhooks are answered 503 while everything is still read. ' +
      'With DATABASE_URL that disk is not known. `off`: never.',
    expects: 'a percentage or "off", for example 5%',
    read: orOff(percent),
  }),
  failedAuthLimit: setting({
    name: 'KONTOR_FAILED_AUTH_LIMIT',
    default: '20',
    meaning:
      'How many failed credentials a second from one address are answered 401; beyond it they are answered 429. Good ones go on. `off`: no limit.',
    expects: 'a number from 1 to 1000000 or "off", for example 20',
    read: orOff(integer(1, 1_000_000)),
  }),
  user: setting({
    name: 'KONTOR_USER',
    default: 'kontor',
    meaning:
      'The user that a server started as root changes to: once its ports are bound, or with the embedded PostgreSQL before that starts, which then runs as the same user. Where that cannot be (no such user, a port below 1024, a data directory of another user) it stays root and says so.',
    expects: 'the name of a user of this machine',
    read: userName,
  }),
  signatureHeader: setting({
    name: 'KONTOR_SIGNATURE_HEADER',
    default: 'x-service-signature',
    meaning: 'The request header that carries the signature of inbound webhooks.',
    expects: 'a header name, for example x-service-signature',
    read: headerName,
  }),
  volumeStore: setting({
    name: 'KONTOR_VOLUME_STORE',
    default: 'memory',
    meaning:
      'Where the budgets of volume protection are counted: memory (one node) or postgres (shared by all nodes).',
    expects: 'memory or postgres',
    read: word('memory', 'postgres'),
  }),
  trustProxy: setting({
    name: 'KONTOR_TRUST_PROXY',
    default: 'off',
    meaning:
      'Whose X-Forwarded-For header is believed: off, all, a number of hops, or addresses and networks separated by commas.',
    expects:
      '"off", "all", a number of hops from 1 to 9, or addresses and networks, for example 10.0.0.0/8,loopback',
    read: trustedProxies,
  }),
  publicUrl: withoutDefault({
    name: 'KONTOR_PUBLIC_URL',
    meaning: 'The address under which clients reach Kontor, for links and printed examples.',
    expects: 'an http or https address, for example https://data.example.com',
    read: httpUrl,
  }),
  ...natsSettings,
  ...archiveSettings,
  stripeApiUrl: setting({
    name: 'KONTOR_STRIPE_API_URL',
    default: 'https://api.stripe.com',
    meaning: 'Where `kontor reconcile stripe --key` asks for what Stripe has.',
    expects: 'an http or https address, for example https://api.stripe.com',
    read: httpUrl,
  }),
  ...signInSettings,
  requestTimeoutMs: setting({
    name: 'KONTOR_REQUEST_TIMEOUT',
    default: '30s',
    meaning: 'How long a client may take to send a request.',
    expects: 'a time from 1s to 10m, for example 30s',
    read: duration(1_000, 600_000),
  }),
  startTimeoutMs: setting({
    name: 'KONTOR_START_TIMEOUT',
    default: '60s',
    meaning:
      'How long a start waits for a PostgreSQL that does not answer or cannot be written to: it may be starting, or failing over. `0s`: not at all.',
    expects: 'a time from 0s to 10m, for example 60s',
    read: duration(0, 600_000),
  }),
  drainTimeoutMs: setting({
    name: 'KONTOR_DRAIN_TIMEOUT',
    default: '10s',
    meaning:
      'How long a stop waits for requests in flight, and then as long again for workers and jobs. Whatever is not done by then ends with the process, whose exit code is 3.',
    expects: 'a time from 1s to 10m, for example 10s',
    read: duration(1_000, 600_000),
  }),
}
