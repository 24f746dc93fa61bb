import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import type { ServerInfo } from '@nats-io/transport-node'
import { newEntryId } from '../../domain/ids.ts'
import { LogUnavailable, type Promised } from '../log.ts'
import {
  type Connected,
  connectTo,
  errorReason,
  isMissingStream,
  NatsRefused,
  type NatsSettings,
  partSubject,
  StreamTaken,
} from './nats.ts'
export const OLDEST_SERVER = '2.10.27'
const PARTITIONS = 'kontor_partitions'
const OWNER = 'kontor_owner'
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
  const canSync = checkVersion(server, settings)
  const found = await readStreamInfo(connected, settings.stream)
  const info = found
    ? await reconcileStream(connected, found, { ...settings, owner, formerOwner })
    : await createStream(connected, { ...settings, owner, formerOwner }, server)
  const { config, created, state } = info
  const replicas = config.num_replicas
  return {
    ...{ created, owner, replicas },
    partitions: readPartitions(config, settings),
    lastSeq: state.last_seq,
    maxBytes: config.max_bytes,
    maxPayload: server.max_payload,
    ...(canSync ? await readPromise(settings, replicas) : { promise: 'process-crash only', doubt: null }),
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

/** Null: not claimed yet. */
export const readStreamOwner = ({ metadata }: Pick<StreamConfig, 'metadata'>): string | null =>
  metadata?.[OWNER] ?? null

const describeTaken = (stream: string) =>
  `The stream ${stream} belongs to another database of Kontor, and so do its entries. Set KONTOR_NATS_STREAM to another stream for this database. ` +
  'If that database is gone for good and this one replaces it (restored, moved or upgraded), start once with KONTOR_NATS_TAKE_OVER=true.'

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

/** Whether the server can sync before it acknowledges. */
function checkVersion({ version }: ServerInfo, { allowsUnsynced }: NatsSettings): boolean {
  if (compareVersions(version, OLDEST_SERVER) >= 0) return true
  if (allowsUnsynced) return false
  throw new NatsRefused(
    `The NATS server is ${version}, and Kontor needs ${OLDEST_SERVER} or newer: an older one cannot sync before it acknowledges. ` +
      'Upgrade it, or set KONTOR_NATS_ALLOW_UNSYNCED=true and accept that acknowledged events are lost when a machine fails.',
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
    metadata: { [PARTITIONS]: String(settings.partitions), [OWNER]: settings.owner },
  }
}

async function createStream(connected: Connected, settings: OwnedSettings, server: ServerInfo): Promise<StreamInfo> {
  const add = (replicas: number) => connected.manager.streams.add({ ...buildConfig(settings), num_replicas: replicas })
  if (settings.replicas !== null) return add(settings.replicas)
  if (!server.cluster) return add(1)
  const known = new Set([...(server.connect_urls ?? []), ...settings.access.servers]).size
  // A cluster of three whose third server is not up yet must not get a stream with one replica.
  if (known >= 3) return add(3)
  return add(3).catch(() => add(1))
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
    throw new NatsRefused(
      `The stream ${stream} ${errors.join(', and it ')}. Correct it with \`nats stream edit ${stream}\`, or set another name in KONTOR_NATS_STREAM.`,
    )
  const { max_age, max_bytes, allow_direct } = wanted
  const isOurs = before === owner
  if (isOurs && config.max_age === max_age && config.max_bytes === max_bytes && config.allow_direct)
    return { config, ...info }
  const metadata = { ...config.metadata, [OWNER]: owner }
  const changed = { ...config, max_age, max_bytes, allow_direct, metadata } as StreamConfig
  const updated = await connected.manager.streams.update(stream, changed)
  if (isOurs) return updated
  await sleep(CLAIM_SETTLES_MS)
  await refuseTaken({ ...connected, stream: { owner } }, stream)
  return updated
}

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
