import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import type { ServerInfo } from '@nats-io/transport-node'
import { newEntryId } from '../../domain/ids.ts'
import { LogUnavailable, type Promised } from '../log.ts'
import {
  type Connected,
  connectTo,
  errorReason,
  hasNoRoom,
  isMissingStream,
  type NatsSettings,
  partSubject,
  StreamRefused,
  StreamTaken,
} from './nats.ts'
export const OLDEST_SERVER = '2.10.27'
const PARTITIONS = 'kontor_partitions'
const OWNER = 'kontor_owner'
/** The max_age that Kontor has set. A stream with another one was edited by hand. */
const MAX_AGE = 'kontor_max_age'
const NANOS_PER_MS = 1_000_000
// A publish with an unknown outcome is repeated within seconds.
const DUPLICATE_WINDOW_MS = 120_000
// If two databases claim a stream without an owner at the same moment, the last one gets it, and both see it after this time.
const CLAIM_SETTLES_MS = 250

/** The current state of the stream. `created` distinguishes streams that had the same name one after the other. */
export type Stream = {
  created: string
  owner: string
  partitions: number
  replicas: number
  lastSeq: number
  promise: Promised
  /** Why Kontor could not find out whether the servers sync; null: it could, or did not ask. */
  doubt: string | null
  maxBytes: number
  /** The limit of one message, including its headers. */
  maxPayload: number
}

export type OpenStream = Connected & { stream: Stream }

/** Creates the stream, or compares an existing one with the settings. */
export async function ensureStream(
  connected: Connected,
  settings: NatsSettings,
  { owner, formerOwner }: Owners,
): Promise<Stream> {
  const server = connected.connection.info
  // Between a disconnect and a reconnect the client has no information about its server.
  if (!server) throw new LogUnavailable('the connection to NATS was lost before its server answered')
  checkVersion(server)
  const found = await readStreamInfo(connected, settings.stream)
  const info = found
    ? await reconcileStream(connected, found, { ...settings, owner, formerOwner })
    : await createStream(connected, { ...settings, owner, formerOwner }, server)
  const { config, created, state } = info
  const replicas = config.num_replicas
  await refuseSmallAccount(connected, settings, replicas)
  return {
    ...{ created, owner, replicas },
    partitions: readPartitions(config, settings),
    lastSeq: state.last_seq,
    maxBytes: config.max_bytes,
    maxPayload: server.max_payload,
    ...(await readPromise(settings, replicas)),
  }
}

/** `formerOwner`: the owner when this process last found the stream. If its database was replaced since, it keeps the stream. */
type Owners = { owner: string; formerOwner: string | null }
type OwnedSettings = NatsSettings & Owners

/** Throws if another database has taken over the stream meanwhile. */
export async function refuseTaken(
  connected: Connected & { stream: Pick<Stream, 'owner'> },
  stream: string,
): Promise<void> {
  const info = await readStreamInfo(connected, stream)
  if (info && readStreamOwner(info.config) !== connected.stream.owner) throw new StreamTaken(describeTaken(stream))
}

/** The same, or if the stream was changed so that it could lose what it acknowledges. */
export async function refuseChanged(opened: OpenStream, settings: NatsSettings): Promise<void> {
  const info = await readStreamInfo(opened, settings.stream)
  if (info === null) return
  if (readStreamOwner(info.config) !== opened.stream.owner) throw new StreamTaken(describeTaken(settings.stream))
  refuseDropping(info.config, buildConfig({ ...settings, owner: opened.stream.owner, formerOwner: null }))
  if (info.config.discard !== 'new') throw new StreamRefused(`The stream ${settings.stream} discards old messages.`)
  await refuseSmallAccount(opened, settings, info.config.num_replicas)
}

/** Null: not claimed yet. */
export const readStreamOwner = ({ metadata }: Pick<StreamConfig, 'metadata'>): string | null =>
  metadata?.[OWNER] ?? null

const describeTaken = (stream: string) =>
  `The stream ${stream} belongs to another database of Kontor, and so do its entries. Set KONTOR_NATS_STREAM to another stream for this database. ` +
  'If that database is permanently lost and this one replaces it (restored, moved or upgraded), start once with KONTOR_NATS_TAKE_OVER=true.'

export async function readStreamInfo({ manager }: Connected, stream: string): Promise<StreamInfo | null> {
  try {
    return await manager.streams.info(stream)
  } catch (error) {
    if (isMissingStream(error)) return null
    throw error
  }
}

/** The id of one of Kontor's messages, according to the stream's leader. Null: no message has this number. */
export async function readMessageId({ manager }: Connected, stream: string, seq: number): Promise<string | null> {
  const message = seq < 1 ? null : await manager.streams.getMessage(stream, { seq })
  return message?.header.get('Nats-Msg-Id') ?? null
}

export const CONFIRMED_WITHIN_MS = 2_000

/** A message that a majority of the servers has just stored. A server that has it also has everything acknowledged before. */
export type Marker = { seq: number; subject: string }

export async function withMarker<T>(
  { js, manager }: Connected,
  stream: string,
  work: (marker: Marker) => Promise<T>,
): Promise<T> {
  const group = newEntryId(Date.now())
  const subject = partSubject(stream, 0, group, 0)
  const { seq } = await js.publish(subject, '', {
    ...{ timeout: CONFIRMED_WITHIN_MS, retries: 0, expect: { streamName: stream } },
  })
  try {
    return await work({ seq, subject })
  } finally {
    // If this fails, it is a part that no message names. Such parts are purged later.
    await manager.streams.purge(stream, { filter: partSubject(stream, 0, group, '*') }).catch(() => {})
  }
}

/**
 * The number of the last message that a majority of the servers has. A server that was cut off believes for some seconds that it is
 * still the leader, and reports an older number: positions would move back, and entries would be read twice. A stream that accepts
 * a new message is the newest one.
 */
export async function confirmedLastSeq(
  connected: Connected,
  stream: string,
  { config, state }: Pick<StreamInfo, 'config' | 'state'>,
): Promise<number> {
  if (config.num_replicas === 1) return state.last_seq
  return withMarker(connected, stream, async ({ seq }) => seq - 1)
}

function checkVersion({ version }: ServerInfo): void {
  if (compareVersions(version, OLDEST_SERVER) >= 0) return
  throw new StreamRefused(
    `The NATS server is ${version}, and Kontor needs ${OLDEST_SERVER} or newer: an older one cannot sync before it acknowledges. Upgrade it.`,
  )
}

export function compareVersions(a: string, b: string): number {
  const numbers = (version: string) => version.split(/[-+]/)[0]!.split('.').map(Number)
  const [first, second] = [numbers(a), numbers(b)]
  for (let i = 0; i < 3; i++) if (first[i] !== second[i]) return (first[i] ?? 0) - (second[i] ?? 0)
  return 0
}

function buildConfig(settings: OwnedSettings): Partial<StreamConfig> & { name: string } {
  const { stream, maxBytes, maxAgeMs } = settings
  return {
    name: stream,
    subjects: [`${stream}.log.>`],
    storage: 'file',
    retention: 'limits',
    discard: 'new',
    max_bytes: maxBytes,
    max_age: maxAgeMs * NANOS_PER_MS,
    duplicate_window: DUPLICATE_WINDOW_MS * NANOS_PER_MS,
    allow_direct: true,
    metadata: {
      [PARTITIONS]: String(settings.partitions),
      [OWNER]: settings.owner,
      [MAX_AGE]: String(maxAgeMs * NANOS_PER_MS),
    },
  }
}

async function createStream(connected: Connected, settings: OwnedSettings, server: ServerInfo): Promise<StreamInfo> {
  const add = (replicas: number) =>
    connected.manager.streams
      .add({ ...buildConfig(settings), num_replicas: replicas })
      .catch(error => throwIfTooSmall(error, settings))
  if (settings.replicas !== null) return add(settings.replicas)
  if (!server.cluster) return add(1)
  const known = new Set([...(server.connect_urls ?? []), ...settings.access.servers]).size
  // A cluster of three whose third server is not up yet must not get a stream with one replica.
  if (known >= 3) return add(3)
  return add(3).catch(() => add(1))
}

function throwIfTooSmall(error: unknown, { stream, maxBytes }: NatsSettings): never {
  if (!hasNoRoom(error)) throw error
  throw new StreamRefused(
    `JetStream has less space than KONTOR_NATS_MAX_BYTES (${maxBytes} bytes) requires for the stream ${stream}: ` +
      'lower the setting, or raise the storage limit of the NATS account (max_file) or of the NATS servers (max_file_store).',
    { cause: error },
  )
}

/** An account without tiers counts every replica. */
async function refuseSmallAccount({ manager }: Connected, settings: NatsSettings, replicas: number): Promise<void> {
  // Without permission to read the limits, a full account is found when it is full.
  const account = await manager.getAccountInfo().catch(() => null)
  const tier = account?.tiers?.[`R${replicas}`]?.limits.max_storage
  const limit = tier ?? account?.limits?.max_storage ?? -1
  const needed = settings.maxBytes * (tier === undefined ? replicas : 1)
  if (limit <= 0 || limit >= needed) return
  throw new StreamRefused(
    `The storage of the NATS account is limited to ${limit} bytes, and KONTOR_NATS_MAX_BYTES requires ${needed} bytes for the stream ${settings.stream}. ` +
      'Raise the limit of the account (max_file), or lower KONTOR_NATS_MAX_BYTES.',
  )
}

/** Refuses a stream whose configuration weakens the guarantees. Limits of size and age are changed to follow the settings. */
async function reconcileStream(
  connected: Connected,
  { config, ...info }: StreamInfo,
  settings: OwnedSettings,
): Promise<StreamInfo> {
  const { stream, replicas, owner, formerOwner } = settings
  const before = readStreamOwner(config)
  if (![null, owner, formerOwner].includes(before) && !settings.takesOver) throw new StreamTaken(describeTaken(stream))
  const errors: string[] = []
  const wanted = buildConfig(settings)
  if (config.storage !== 'file') errors.push(`stores its messages in ${config.storage}, not in files`)
  if (config.discard !== 'new') errors.push('discards old messages when it is full, not new ones')
  if (config.retention !== 'limits') errors.push(`has the retention ${config.retention}, not limits`)
  if (replicas !== null && config.num_replicas < replicas)
    errors.push(`has ${config.num_replicas} replicas, and KONTOR_NATS_REPLICAS is ${replicas}`)
  if (!config.subjects?.includes(wanted.subjects![0]!)) errors.push(`does not have the subjects ${wanted.subjects![0]}`)
  if (!/^[1-9]\d{0,2}$/.test(config.metadata?.[PARTITIONS] ?? ''))
    errors.push('has no number of partitions in its metadata: Kontor did not create it')
  if (errors.length > 0)
    throw new StreamRefused(
      `The stream ${stream} ${errors.join(', and it ')}. Correct it with \`nats stream edit ${stream}\`, or set another name in KONTOR_NATS_STREAM.`,
    )
  refuseDropping(config, wanted)
  const { max_age, max_bytes, allow_direct } = wanted
  const isOurs = before === owner
  if (isOurs && config.max_age === max_age && config.max_bytes === max_bytes && config.allow_direct)
    return { config, ...info }
  const metadata = { ...config.metadata, [OWNER]: owner, [MAX_AGE]: wanted.metadata![MAX_AGE]! }
  const changed = { ...config, max_age, max_bytes, allow_direct, metadata } as StreamConfig
  const updated = await connected.manager.streams
    .update(stream, changed)
    .catch(error => throwIfTooSmall(error, settings))
  if (isOurs) return updated
  await sleep(CLAIM_SETTLES_MS)
  await refuseTaken({ ...connected, stream: { owner } }, stream)
  return updated
}

/** Refuses limits that were set by hand and with which the stream drops messages, or rejects those that Kontor sends. */
function refuseDropping(config: StreamConfig, wanted: Partial<StreamConfig>): void {
  const { name, max_msgs, max_msgs_per_subject, max_msg_size, max_age, duplicate_window, no_ack, metadata } = config
  const errors: { is: string; edit: string }[] = []
  if (max_msgs_per_subject > 0)
    errors.push({
      is: `drops all but the newest ${max_msgs_per_subject} messages of a subject`,
      edit: '--max-msgs-per-subject=-1',
    })
  if (max_msgs > 0) errors.push({ is: `is limited to ${max_msgs} messages`, edit: '--max-msgs=-1' })
  if ((max_msg_size ?? -1) > 0)
    errors.push({ is: `is limited to messages of ${max_msg_size} bytes`, edit: '--max-msg-size=-1' })
  const ownMaxAge = metadata?.[MAX_AGE]
  if (ownMaxAge !== undefined && max_age !== Number(ownMaxAge) && max_age !== wanted.max_age)
    errors.push({
      is: `${max_age === 0 ? 'keeps its messages for ever' : `drops its messages after ${seconds(max_age)} s`}, not after ${seconds(wanted.max_age!)} s (KONTOR_LOG_RETENTION)`,
      edit: `--max-age=${seconds(wanted.max_age!)}s`,
    })
  if (duplicate_window < wanted.duplicate_window!)
    errors.push({
      is: `recognizes repeated messages for ${seconds(duplicate_window)} s only`,
      edit: `--dupe-window=${seconds(wanted.duplicate_window!)}s`,
    })
  if (no_ack) errors.push({ is: 'does not acknowledge messages', edit: '--ack' })
  if (errors.length === 0) return
  throw new StreamRefused(
    `The stream ${name} was changed by hand and could lose acknowledged events: it ${errors.map(({ is }) => is).join(', and it ')}. ` +
      `Correct it with \`nats stream edit ${name} ${errors.map(({ edit }) => edit).join(' ')}\`.`,
  )
}

const seconds = (nanos: number) => nanos / NANOS_PER_MS / 1_000

function readPartitions({ metadata }: StreamConfig, { partitions }: NatsSettings): number {
  return Number(metadata?.[PARTITIONS] ?? partitions)
}

/** The number of partitions is fixed when the stream is created: otherwise events of one key would change partitions. */
export function partitionsDiffer({ stream, partitions }: NatsSettings, found: number): string | null {
  if (partitions === found) return null
  return (
    `KONTOR_NATS_PARTITIONS is ${partitions}, but the stream ${stream} was created with ${found} and keeps them. ` +
    `Set it to ${found}; for another number, change to a new stream (KONTOR_NATS_STREAM).`
  )
}

/** Never more than is known. If the system account cannot be asked, events are still accepted. */
async function readPromise(
  settings: NatsSettings,
  replicas: number,
): Promise<{ promise: Promised; doubt: string | null }> {
  const asked = settings.isSynced || (await areServersSynced(settings).catch(describeDoubt))
  if (asked === true) return { promise: 'synced', doubt: null }
  return { promise: replicas >= 3 ? 'replicated' : 'process-crash only', doubt: asked || null }
}

function describeDoubt(error: unknown): string {
  return `KONTOR_NATS_SYSTEM_URL and KONTOR_NATS_SYSTEM_CREDS do not give access to the system account (${errorReason(error)})`
}

const ANSWERS_WITHIN_MS = 1_000

/** Whether every server reports that it always syncs. */
async function areServersSynced({ systemAccess }: NatsSettings): Promise<boolean> {
  if (systemAccess === null) return false
  const { connection } = await connectTo(systemAccess, 'kontor system')
  try {
    const answers = await connection.requestMany('$SYS.REQ.SERVER.PING.JSZ', '{"config":true}', {
      strategy: 'timer',
      maxWait: ANSWERS_WITHIN_MS,
    })
    let servers = 0
    for await (const answer of answers) {
      const { data } = answer.json<{ data?: { config?: { sync_always?: boolean }; disabled?: boolean } }>()
      if (data?.disabled) continue
      if (data?.config?.sync_always !== true) return false
      servers++
    }
    return servers > 0
  } finally {
    await connection.close()
  }
}
