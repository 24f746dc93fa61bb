import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import {
  archiveUrl,
  boolean,
  bytes,
  claimName,
  duration,
  filePath,
  headerName,
  hideNatsCredentials,
  hidePassword,
  hideSmtpPassword,
  host,
  httpUrl,
  integer,
  issuerUrl,
  line,
  listOfWords,
  mailAddress,
  orOff,
  percent,
  port,
  type Read,
  readDatabaseUrl,
  readNatsUrl,
  roleMappings,
  secretKeys,
  smtpUrl,
  trustedProxies,
  UNIT_MS,
  userName,
  word,
} from './values.ts'

export type Setting<T> = {
  /** The environment variable. */
  name: string
  /** The command-line flag, if there is one. */
  flag?: string
  /** In the form in which a user sets it; null: no default. */
  default: string | null
  meaning: string
  /** Completes "must be …" and gives an example to copy. */
  expects: string
  read: Read<T>
  /** Hides secret parts of the value in output. */
  show?: (text: string) => string
}

const setting = <T>(definition: Setting<T>): Setting<T> => definition
const withoutDefault = <T>(definition: Omit<Setting<T>, 'default'>): Setting<T> & { default: null } => ({
  ...definition,
  default: null,
})

export const SURFACES = ['data', 'events', 'inbound', 'console', 'worker'] as const
export type Surface = (typeof SURFACES)[number]

/** The archive. The variables of S3 are those that AWS tools read. */
const archiveSettings = {
  archiveUrl: withoutDefault({
    name: 'KONTOR_ARCHIVE_URL',
    meaning:
      'Where Kontor writes events and conversions as Parquet files: a directory (`file:///srv/archive`) or a bucket ' +
      '(`s3://bucket/prefix`, with the AWS_… variables). Data that arrived before you set it is not written.',
    expects: 'file:///directory or s3://bucket/prefix, for example file:///srv/archive',
    read: archiveUrl,
  }),
  archiveFlushMs: setting({
    name: 'KONTOR_ARCHIVE_FLUSH',
    default: '60s',
    meaning:
      'How often Kontor closes archive files. A shorter interval makes the archive more current and the files smaller.',
    expects: 'a duration from 1s to 1h, for example 60s',
    read: duration(1_000, 3_600_000),
  }),
  awsEndpointUrl: withoutDefault({
    name: 'AWS_ENDPOINT_URL',
    meaning: 'The URL of an S3-compatible service other than AWS (MinIO, R2, …).',
    expects: 'an http or https URL, for example https://minio.internal:9000',
    read: httpUrl,
  }),
  awsRegion: withoutDefault({
    name: 'AWS_REGION',
    meaning: 'The region of the bucket. If it is not set: AWS_DEFAULT_REGION, otherwise us-east-1.',
    expects: 'a region name, for example eu-central-1',
    read: line,
  }),
  awsDefaultRegion: withoutDefault({
    name: 'AWS_DEFAULT_REGION',
    meaning: 'The region of the bucket if AWS_REGION is not set.',
    expects: 'a region name, for example eu-central-1',
    read: line,
  }),
  awsAccessKeyId: withoutDefault({
    name: 'AWS_ACCESS_KEY_ID',
    meaning: 'The id of the access key that may write objects to the bucket.',
    expects: 'an access key id without spaces',
    read: line,
  }),
  awsSecretAccessKey: withoutDefault({
    name: 'AWS_SECRET_ACCESS_KEY',
    meaning: 'The secret of the access key.',
    expects: 'a secret without spaces',
    read: line,
    show: () => '(hidden)',
  }),
  awsSessionToken: withoutDefault({
    name: 'AWS_SESSION_TOKEN',
    meaning: 'The session token of temporary credentials.',
    expects: 'a token without spaces',
    read: (text: string) => (/^[\x21-\x7e]{1,4000}$/.test(text) ? text : undefined),
    show: () => '(hidden)',
  }),
}

/** The mail server for alerts and digests. */
const mailSettings = {
  smtpUrl: withoutDefault({
    name: 'KONTOR_SMTP_URL',
    meaning:
      'The mail server that sends alerts and weekly digests. `smtp://` requires STARTTLS (port 587), `smtps://` uses TLS ' +
      'from the start (port 465). `?tls=off` turns encryption off; a password is then accepted only for a server on ' +
      'this machine.',
    expects: 'a URL like smtp://USER:PASSWORD@mail.example.com:587, smtps://… or smtp://mailpit:1025?tls=off',
    read: smtpUrl,
    show: hideSmtpPassword,
  }),
  smtpFrom: withoutDefault({
    name: 'KONTOR_SMTP_FROM',
    meaning: 'The e-mail address of the sender. Required with KONTOR_SMTP_URL.',
    expects: 'an e-mail address, for example kontor@example.com',
    read: mailAddress,
  }),
}

/** The log on NATS JetStream, for events and inbound requests. */
const natsSettings = {
  natsUrl: withoutDefault({
    name: 'NATS_URL',
    meaning:
      'The servers of a NATS cluster, separated by commas. Kontor then keeps events and inbound requests in JetStream ' +
      'until they are processed (docs/guides/scaling.md). The URL may contain a user and password, or a token. ' +
      '`tls://` encrypts the connection.',
    expects: 'URLs separated by commas, for example nats://kontor:PASSWORD@nats-1:4222,nats://nats-2:4222',
    read: readNatsUrl,
    show: hideNatsCredentials,
  }),
  natsCreds: withoutDefault({
    name: 'NATS_CREDS',
    meaning: 'The path of the credentials file for NATS_URL.',
    expects: 'a file path, for example /etc/kontor/nats.creds',
    read: filePath,
  }),
  natsStream: setting({
    name: 'KONTOR_NATS_STREAM',
    default: 'kontor',
    meaning:
      'The name of the stream. A stream belongs to one database, so installations that share a NATS cluster need ' +
      'different names.',
    expects: 'letters, digits, - and _, for example kontor',
    read: (text: string) => (/^[A-Za-z0-9_-]{1,64}$/.test(text) ? text : undefined),
  }),
  natsPartitions: setting({
    name: 'KONTOR_NATS_PARTITIONS',
    default: '4',
    meaning:
      'The number of subjects of the stream, which is also the maximum number of workers that can share it. Kontor ' +
      'writes entries in groups and sends one message per group to each subject, so keep the number low if NATS syncs ' +
      'every message. Fixed when the stream is created.',
    expects: 'a number from 1 to 256, for example 4',
    read: integer(1, 256),
  }),
  natsMaxBytes: setting({
    name: 'KONTOR_NATS_MAX_BYTES',
    default: '4GiB',
    meaning:
      'The maximum size of the stream. When half of it is used, Kontor purges processed entries. When unprocessed ' +
      'entries fill it, Kontor answers events and inbound requests with 503.',
    expects: 'a size from 1MiB to 16384GiB, for example 4GiB',
    read: bytes(2 ** 20, 2 ** 44),
  }),
  natsReplicas: withoutDefault({
    name: 'KONTOR_NATS_REPLICAS',
    meaning:
      'The number of servers that keep a copy of the stream. If it is not set: three in a cluster of three or more ' +
      'servers, otherwise one.',
    expects: 'a number from 1 to 5, for example 3',
    read: integer(1, 5),
  }),
  natsSynced: setting({
    name: 'KONTOR_NATS_SYNCED',
    default: 'false',
    meaning:
      'Declares that every NATS server has `sync_interval: always`. Without it, a power failure can lose events that ' +
      'were acknowledged in the last two minutes, and Kontor logs a warning.',
    expects: 'true or false',
    read: boolean,
  }),
  natsTakeOver: setting({
    name: 'KONTOR_NATS_TAKE_OVER',
    default: 'false',
    meaning:
      'Takes over a stream that belongs to another database. Set it only if this database permanently replaces the other ' +
      'one (after a restore, a move or an upgrade), and remove it after Kontor has started once.',
    expects: 'true or false',
    read: boolean,
  }),
  natsSystemUrl: withoutDefault({
    name: 'KONTOR_NATS_SYSTEM_URL',
    meaning:
      'The URLs of the same servers, with a user of the system account. Kontor then checks whether the servers sync every message.',
    expects: 'URLs separated by commas, for example nats://sys:PASSWORD@nats-1:4222',
    read: readNatsUrl,
    show: hideNatsCredentials,
  }),
  natsSystemCreds: withoutDefault({
    name: 'KONTOR_NATS_SYSTEM_CREDS',
    meaning: 'The path of the credentials file of the system user.',
    expects: 'a file path, for example /etc/kontor/nats-system.creds',
    read: filePath,
  }),
}

/** Console sign-in through OpenID Connect. If none of these is set, users sign in with keys. */
const signInSettings = {
  oidcIssuer: withoutDefault({
    name: 'KONTOR_OIDC_ISSUER',
    meaning:
      'The OpenID Connect provider through which users sign in to the console. Requires KONTOR_OIDC_CLIENT_ID, ' +
      'KONTOR_OIDC_CLIENT_SECRET, KONTOR_OIDC_ROLES and KONTOR_PUBLIC_URL.',
    expects: 'an https URL (http only on localhost), for example https://login.example.com/realms/staff',
    read: issuerUrl,
  }),
  oidcClientId: withoutDefault({
    name: 'KONTOR_OIDC_CLIENT_ID',
    meaning:
      "Kontor's client id at the provider. Register KONTOR_PUBLIC_URL followed by /console/oidc/callback as the " +
      'redirect URI.',
    expects: 'a client id without spaces, for example kontor',
    read: line,
  }),
  oidcClientSecret: withoutDefault({
    name: 'KONTOR_OIDC_CLIENT_SECRET',
    meaning: "Kontor's client secret at the provider. Set the same value on every server.",
    expects: 'at least 16 characters without spaces',
    read: text => (text.length >= 16 ? line(text) : undefined),
    show: () => '(hidden)',
  }),
  oidcRoleClaim: setting({
    name: 'KONTOR_OIDC_ROLE_CLAIM',
    default: 'groups',
    meaning:
      'The claim that determines the role of a user: a string or a list of strings. Dots select nested fields ' +
      '(`realm_access.roles`). The claim `email` counts only if the provider has verified it.',
    expects: 'a claim name, for example groups',
    read: claimName,
  }),
  oidcRoles: withoutDefault({
    name: 'KONTOR_OIDC_ROLES',
    meaning:
      'Maps values of the claim to roles (viewer, operator, admin), for all tenants or for one: ' +
      '`admins=admin,support=viewer,acme-team=operator@acme`. The first match applies. A user without a match cannot ' +
      'sign in.',
    expects: 'a list of value=role or value=role@tenant, for example admins=admin,support=viewer',
    read: roleMappings,
  }),
}

const retention = duration(UNIT_MS.d, 36_500 * UNIT_MS.d)

/** All settings. A test compares them with docs/configuration.md. */
export const settings = {
  port: setting({
    name: 'KONTOR_PORT',
    flag: 'port',
    default: '8080',
    meaning: 'The port of the HTTP surfaces. 0 selects any free port.',
    expects: 'a port number from 0 to 65535, for example 8080',
    read: port,
  }),
  host: setting({
    name: 'KONTOR_HOST',
    flag: 'host',
    default: '127.0.0.1',
    meaning:
      'The IP address or host name to listen on. 0.0.0.0 makes Kontor reachable from other machines and containers.',
    expects: 'an IP address or a host name, for example 0.0.0.0',
    read: host,
  }),
  opsPort: setting({
    name: 'KONTOR_OPS_PORT',
    default: '9464',
    meaning:
      'The port of /healthz, /readyz and /metrics. `off` disables it; 0 selects any free port. If the variable is not ' +
      'set and 9464 is in use, Kontor logs a warning and starts without this port.',
    expects: 'a port number from 0 to 65535 or "off", for example 9464',
    read: orOff(port),
  }),
  opsHost: setting({
    name: 'KONTOR_OPS_HOST',
    default: '127.0.0.1',
    meaning: 'The IP address or host name of the operations port, which requires no credentials: keep it private.',
    expects: 'an IP address or a host name, for example 0.0.0.0',
    read: host,
  }),
  dataDir: setting({
    name: 'KONTOR_DATA_DIR',
    flag: 'data',
    default: './data',
    meaning: 'The directory of the embedded PostgreSQL and the secret key. Not used with DATABASE_URL.',
    expects: 'a directory, for example /var/lib/kontor',
    read: text => (text.includes('\0') ? undefined : resolve(text)),
    show: text => resolve(text),
  }),
  databaseUrl: withoutDefault({
    name: 'DATABASE_URL',
    meaning:
      'The URL of your own PostgreSQL (version 15 or newer, also behind a transaction-mode pooler), which replaces ' +
      'the embedded one. With several hosts, separated by commas, Kontor uses the host that accepts writes, and ' +
      'searches for it again when the connection is lost.',
    expects:
      'a URL with a database name, for example postgres://kontor:PASSWORD@db.internal:5432/kontor ' +
      'or postgres://kontor:PASSWORD@db-1:5432,db-2:5432/kontor?target_session_attrs=read-write',
    read: readDatabaseUrl,
    show: hidePassword,
  }),
  surfaces: setting({
    name: 'KONTOR_SURFACES',
    flag: 'surfaces',
    default: SURFACES.join(','),
    meaning: 'What this process runs: any of data, events, inbound, console, worker, separated by commas, or `all`.',
    expects: `one or more of ${SURFACES.join(', ')}, separated by commas, for example events,inbound`,
    read: listOfWords(SURFACES),
  }),
  secretKeys: withoutDefault({
    name: 'KONTOR_SECRET_KEY',
    meaning:
      'The secret key that encrypts signing secrets: 32 random bytes as hex or base64. With the embedded PostgreSQL, ' +
      'Kontor creates one on first use (`secret.key` in the data directory). With DATABASE_URL, set it to the same ' +
      'value on every server before you add a signing secret to a source. With several keys, separated by commas, the ' +
      'first key encrypts and all keys decrypt.',
    expects:
      '32 bytes as 64 hex digits or 44 base64 characters (several are separated by commas). Create one with: openssl rand -hex 32',
    read: secretKeys,
    show: () => '(hidden)',
  }),
  logRetentionMs: setting({
    name: 'KONTOR_LOG_RETENTION',
    default: '7d',
    meaning:
      'How long accepted entries stay in the log after their arrival. The PostgreSQL log keeps unprocessed entries longer; ' +
      'NATS JetStream does not.',
    expects: 'a duration of at least 1d, for example 7d',
    read: retention,
  }),
  operationsRetentionMs: setting({
    name: 'KONTOR_OPERATIONS_RETENTION',
    default: '30d',
    meaning: 'How long GET /v1/operations/:operationId returns the outcome of a write.',
    expects: 'a duration of at least 1d, for example 30d',
    read: retention,
  }),
  receiptsRetentionMs: setting({
    name: 'KONTOR_RECEIPTS_RETENTION',
    default: '30d',
    meaning: 'How long receipts are kept: one per inbound event, with its time, id and outcome.',
    expects: 'a duration of at least 1d, for example 30d',
    read: retention,
  }),
  archiveRetentionMs: setting({
    name: 'KONTOR_ARCHIVE_RETENTION',
    default: '30d',
    meaning: 'How long event results (the normalized inbound events) are kept. Does not affect the Parquet archive.',
    expects: 'a duration of at least 1d, for example 30d',
    read: retention,
  }),
  deliveriesRetentionMs: setting({
    name: 'KONTOR_DELIVERIES_RETENTION',
    default: '30d',
    meaning: 'How long messages to destinations can be replayed and their delivery attempts are listed.',
    expects: 'a duration of at least 1d, for example 30d',
    read: retention,
  }),
  allowPrivateDestinations: setting({
    name: 'KONTOR_ALLOW_PRIVATE_DESTINATIONS',
    default: 'false',
    meaning:
      'Whether destinations may be in private networks or on this machine, and may use HTTP without TLS. A user who can ' +
      'create destinations can then send requests to services that only this machine can reach.',
    expects: 'true or false',
    read: boolean,
  }),
  processedRetentionMs: setting({
    name: 'KONTOR_PROCESSED_RETENTION',
    default: '90d',
    meaning:
      'How long Kontor recognizes a repeated event. Must be at least as long as KONTOR_RECEIPTS_RETENTION and ' +
      'KONTOR_ARCHIVE_RETENTION.',
    expects: 'a duration of at least 1d, for example 90d',
    read: retention,
  }),
  eventsRetentionMs: setting({
    name: 'KONTOR_EVENTS_RETENTION',
    default: 'off',
    meaning: 'How long normalized events are kept. `off` keeps them forever.',
    expects: 'a duration of at least 1d or "off", for example 730d',
    read: orOff(retention),
  }),
  eventsFloorMs: setting({
    name: 'KONTOR_EVENTS_FLOOR',
    default: '3650d',
    meaning:
      'The maximum age of an event that is sent with a public tracking key. The time of an older event is set to this limit, and ' +
      'its original time is kept in meta.client_time. `off` allows any age.',
    expects: 'a duration of at least 1d or "off", for example 3650d',
    read: orOff(retention),
  }),
  deadLettersRetentionMs: setting({
    name: 'KONTOR_DEAD_LETTERS_RETENTION',
    default: '365d',
    meaning:
      'How long dead letters are kept after the failure, whether they were replayed or not. `off` keeps them forever.',
    expects: 'a duration of at least 1d or "off", for example 365d',
    read: orOff(retention),
  }),
  logPartitions: setting({
    name: 'KONTOR_LOG_PARTITIONS',
    default: '16',
    meaning:
      'The number of partitions of the log, which is also the maximum number of workers that can share it. Fixed when ' +
      'the database is initialized.',
    expects: 'a number from 1 to 256, for example 16',
    read: integer(1, 256),
  }),
  logLevel: setting({
    name: 'KONTOR_LOG_LEVEL',
    default: 'info',
    meaning: 'The lowest level to log: trace, debug, info, warn, error, fatal or silent.',
    expects: 'one of trace, debug, info, warn, error, fatal, silent',
    read: word('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  }),
  logFormat: setting({
    name: 'KONTOR_LOG_FORMAT',
    default: 'auto',
    meaning:
      'json prints one JSON object per line, pretty prints readable lines, auto prints pretty on a terminal and json ' +
      'elsewhere.',
    expects: 'one of json, pretty, auto',
    read: word('json', 'pretty', 'auto'),
  }),
  poolSize: setting({
    name: 'KONTOR_POOL_SIZE',
    default: '10',
    meaning:
      'The maximum number of PostgreSQL connections that this process opens for requests. Workers have their own ' +
      'connections.',
    expects: 'a number from 2 to 500, for example 10',
    read: integer(2, 500),
  }),
  processes: setting({
    name: 'KONTOR_PROCESSES',
    default: '1',
    meaning:
      'The number of processes that serve requests on one port. `auto` starts one per core. With more than one, the ' +
      'pipeline and the jobs run in a separate process, each process has its own connection pool and limits, and the ' +
      'rate limits of sources and tracking keys are counted in PostgreSQL.',
    expects: 'a number from 1 to 64 or "auto", for example 4',
    read: text => (text === 'auto' ? Math.min(availableParallelism(), 64) : integer(1, 64)(text)),
  }),
  workers: setting({
    name: 'KONTOR_WORKERS',
    default: '4',
    meaning:
      'How many transactions process the log at the same time in this process. Each takes several partitions of the log.',
    expects: 'a number from 1 to 64, for example 4',
    read: integer(1, 64),
  }),
  maxPendingBytes: setting({
    name: 'KONTOR_MAX_PENDING_BYTES',
    default: '64MiB',
    meaning:
      'The maximum size of accepted data that waits in memory to become durable. Above it, Kontor answers requests with ' +
      '503.',
    expects: 'a size from 1MiB to 16GiB, for example 64MiB',
    read: bytes(2 ** 20, 2 ** 34),
  }),
  maxInFlightBytes: setting({
    name: 'KONTOR_MAX_IN_FLIGHT_BYTES',
    default: '64MiB',
    meaning:
      'The maximum size of all request bodies that this process holds between arrival and response. Above it, Kontor ' +
      'answers requests with 503. Requests that are not authenticated before their body arrives have a separate limit: an ' +
      'eighth of this size, and at least 2 MiB.',
    expects: 'a size from 1MiB to 16GiB, for example 64MiB',
    read: bytes(2 ** 20, 2 ** 34),
  }),
  maxBacklog: setting({
    name: 'KONTOR_MAX_BACKLOG',
    default: '10000000',
    meaning:
      'The maximum number of accepted entries that wait in the log to be processed. A record write, an event, a batch ' +
      'and a webhook are one entry each. Above it, Kontor answers events, webhooks and record writes with 503 and still ' +
      'serves reads. `off` removes the limit.',
    expects: 'a number from 1000 to 1000000000 or "off", for example 10000000',
    read: orOff(integer(1_000, 1_000_000_000)),
  }),
  minFreeDisk: setting({
    name: 'KONTOR_MIN_FREE_DISK',
    default: '5%',
    meaning:
      'The minimum free space on the disk of the embedded PostgreSQL. Below it, Kontor answers events and webhooks with ' +
      '503 and still serves reads. With DATABASE_URL, Kontor cannot measure the disk. `off` disables the check.',
    expects: 'a percentage or "off", for example 5%',
    read: orOff(percent),
  }),
  failedAuthLimit: setting({
    name: 'KONTOR_FAILED_AUTH_LIMIT',
    default: '20',
    meaning:
      'The number of invalid credentials per second and client IP address that Kontor answers with 401. It answers ' +
      'further ones with 429. Valid credentials are unaffected. `off` removes the limit.',
    expects: 'a number from 1 to 1000000 or "off", for example 20',
    read: orOff(integer(1, 1_000_000)),
  }),
  user: setting({
    name: 'KONTOR_USER',
    default: 'kontor',
    meaning:
      'The user that a server started as root switches to. With DATABASE_URL, it switches after binding its ports. With ' +
      'the embedded PostgreSQL, it switches before starting PostgreSQL, which then runs as the same user. If the switch ' +
      'is impossible (no such user, a port below 1024, a data directory that belongs to another user), the server logs ' +
      'a warning and continues as root.',
    expects: 'the name of a user on this machine, for example kontor',
    read: userName,
  }),
  signatureHeader: setting({
    name: 'KONTOR_SIGNATURE_HEADER',
    default: 'x-service-signature',
    meaning: 'The request header that contains the signature of inbound webhooks.',
    expects: 'a header name, for example x-service-signature',
    read: headerName,
  }),
  volumeStore: setting({
    name: 'KONTOR_VOLUME_STORE',
    default: 'memory',
    meaning:
      'Where the rate limits of sources and tracking keys are counted: memory (each node separately) or postgres (all ' +
      'nodes together).',
    expects: 'memory or postgres',
    read: word('memory', 'postgres'),
  }),
  trustProxy: setting({
    name: 'KONTOR_TRUST_PROXY',
    default: 'off',
    meaning:
      'The proxies whose X-Forwarded-For header Kontor trusts: off, all, a number of hops, or IP addresses and networks ' +
      'separated by commas.',
    expects:
      '"off", "all", a number of hops from 1 to 9, or IP addresses and networks, for example 10.0.0.0/8,loopback',
    read: trustedProxies,
  }),
  publicUrl: withoutDefault({
    name: 'KONTOR_PUBLIC_URL',
    meaning: 'The URL at which clients reach Kontor. It is used in links and printed examples.',
    expects: 'an http or https URL, for example https://data.example.com',
    read: httpUrl,
  }),
  ...natsSettings,
  ...archiveSettings,
  ...mailSettings,
  stripeApiUrl: setting({
    name: 'KONTOR_STRIPE_API_URL',
    default: 'https://api.stripe.com',
    meaning: 'The URL of the Stripe API that `kontor import stripe` and `kontor reconcile stripe` read from.',
    expects: 'an http or https URL, for example https://api.stripe.com',
    read: httpUrl,
  }),
  ...signInSettings,
  requestTimeoutMs: setting({
    name: 'KONTOR_REQUEST_TIMEOUT',
    default: '30s',
    meaning:
      'How long a client may take to send a request, and how long a database query of a request may take (exports may ' +
      'take longer).',
    expects: 'a duration from 1s to 10m, for example 30s',
    read: duration(1_000, 600_000),
  }),
  startTimeoutMs: setting({
    name: 'KONTOR_START_TIMEOUT',
    default: '60s',
    meaning:
      'How long Kontor waits at startup for a PostgreSQL that does not answer or does not accept writes, for example ' +
      'during a failover. `0s` does not wait.',
    expects: 'a duration from 0s to 10m, for example 60s',
    read: duration(0, 600_000),
  }),
  drainTimeoutMs: setting({
    name: 'KONTOR_DRAIN_TIMEOUT',
    default: '10s',
    meaning:
      'How long a server that stops waits for requests in flight, and then for workers and jobs. If something is still ' +
      'running after both waits, the process exits with code 3.',
    expects: 'a duration from 1s to 10m, for example 10s',
    read: duration(1_000, 600_000),
  }),
}
