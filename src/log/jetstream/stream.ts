import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import type { ServerInfo } from '@nats-io/transport-node'
import { newEntryId } from '../../domain/ids.ts'
import { LogUnavailable, type Promised } from '../log.ts'
import { type Connected, connectTo } from './access.ts'
import { isMissingStream, NatsRefused, reasonOf, StreamTaken } from './errors.ts'
import { type NatsSettings, partSubject } from './settings.ts'

export const OLDEST_SERVER = '2.10.27'
const PARTITIONS = 'kontor_partitions'
const OWNER = 'kontor_owner'
const NANOS_PER_MS = 1_000_000
// An unclear publish is repeated within seconds.
const DUPLICATE_WINDOW_MS = 120_000
// Of two that take a stream without an owner at the same moment, the last one has it, and both have read it by then.
const CLAIM_SETTLES_MS = 250

/** The stream as it stands. `created`: of which life of the name. */
export type Stream = {
  created: string
  owner: string
  partitions: number
  replicas: number
  lastSeq: number
  promise: Promised
  /** Why it could not be found out whether the servers sync; null: it could, or nobody asked. */
  doubt: string | null
  maxBytes: number
  /** Of one message, with its headers. */
  maxPayload: number
}

/** Makes the stream where there is none; holds one that is there against what is asked for. */
export async function ensureStream(
  connected: Connected,
  settings: NatsSettings,
  { owner, formerly }: Owners,
): Promise<Stream> {
  const server = connected.connection.info
  // The client knows nothing of a server from the moment its connection breaks until another one is there.
  if (!server) throw new LogUnavailable('the connection to NATS was lost before its server had answered')
  const canSync = checkVersion(server, settings)
  const found = await infoOf(connected, settings.stream)
  const info = found
    ? await held(connected, found, { ...settings, owner, formerly })
    : await make(connected, { ...settings, owner, formerly }, server)
  const { config, created, state } = info
  const replicas = config.num_replicas
  return {
    ...{ created, owner, replicas },
    partitions: partitionsOf(config, settings),
    lastSeq: state.last_seq,
    maxBytes: config.max_bytes,
    maxPayload: server.max_payload,
    ...(canSync ? await promised(settings, replicas) : { promise: 'process-crash only', doubt: null }),
  }
}

/** `formerly`: who this process was when it last found the stream. Its database was exchanged while it ran, and the stream goes with it. */
type Owners = { owner: string; formerly: string | null }
type OwnedSettings = NatsSettings & Owners

/** Where it was taken over meanwhile, whatever is done with it is not ours to do. */
export async function refuseTaken(
  connected: Connected & { stream: Pick<Stream, 'owner'> },
  stream: string,
): Promise<void> {
  const info = await infoOf(connected, stream)
  if (info && ownerOf(info.config) !== connected.stream.owner) throw new StreamTaken(takenWords(stream))
}

/** Null: nobody has claimed it yet. */
export const ownerOf = ({ metadata }: Pick<StreamConfig, 'metadata'>): string | null =>
  metadata?.[OWNER] ?? null

const takenWords = (stream: string) =>
  `The stream ${stream} belongs to another database of Kontor, and what it holds is that one's. Give this one a stream of its own with KONTOR_NATS_STREAM. ` +
  'Where that database is gone for good and this one is its successor (restored, moved or upgraded), start once with KONTOR_NATS_TAKE_OVER=true.'

export async function infoOf({ manager }: Connected, stream: string): Promise<StreamInfo | null> {
  try {
    return await manager.streams.info(stream)
  } catch (error) {
    if (isMissingStream(error)) return null
    throw error
  }
}

/** Of a message of Kontor's own, as the stream's leader has it; null: there is none with this number. */
export async function idAt({ manager }: Connected, stream: string, seq: number): Promise<string | null> {
  const message = seq < 1 ? null : await manager.streams.getMessage(stream, { seq })
  return message?.header.get('Nats-Msg-Id') ?? null
}

export const CONFIRMED_WITHIN_MS = 2_000

/** A message that a majority of its servers has just taken in: a server that has it has all that was acknowledged before. */
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
    // Left behind it would be a part that nobody names, and those are purged.
    await manager.streams.purge(stream, { filter: partSubject(stream, 0, group, '*') }).catch(() => {})
  }
}

/**
 * The number of its last message, as a majority of its servers has it. One that was cut off takes itself for the leader for some
 * seconds more, and tells what it had then: positions that followed it went back, and what lies between was read twice. What it
 * can add to is the newest there is.
 */
export async function confirmedLastSeq(
  connected: Connected,
  stream: string,
  { config, state }: Pick<StreamInfo, 'config' | 'state'>,
): Promise<number> {
  if (config.num_replicas === 1) return state.last_seq
  return withMarker(connected, stream, async ({ seq }) => seq - 1)
}

/** Whether it can sync before it acknowledges. */
function checkVersion({ version }: ServerInfo, { allowsUnsynced }: NatsSettings): boolean {
  if (compareVersions(version, OLDEST_SERVER) >= 0) return true
  if (allowsUnsynced) return false
  throw new NatsRefused(
    `The NATS server is ${version}, and Kontor needs ${OLDEST_SERVER} or newer: an older one cannot sync before it acknowledges. ` +
      'Upgrade it, or set KONTOR_NATS_ALLOW_UNSYNCED=true and lose acknowledged events when a machine fails.',
  )
}

export function compareVersions(a: string, b: string): number {
  const numbers = (version: string) => version.split(/[-+]/)[0]!.split('.').map(Number)
  const [first, second] = [numbers(a), numbers(b)]
  for (let i = 0; i < 3; i++) if (first[i] !== second[i]) return (first[i] ?? 0) - (second[i] ?? 0)
  return 0
}

function configOf(settings: OwnedSettings): Partial<StreamConfig> & { name: string } {
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

async function make(connected: Connected, settings: OwnedSettings, server: ServerInfo): Promise<StreamInfo> {
  const add = (replicas: number) =>
    connected.manager.streams.add({ ...configOf(settings), num_replicas: replicas })
  if (settings.replicas !== null) return add(settings.replicas)
  if (!server.cluster) return add(1)
  const known = new Set([...(server.connect_urls ?? []), ...settings.access.servers]).size
  // A cluster of three whose third server is not up yet is not to get a stream with one copy.
  if (known >= 3) return add(3)
  return add(3).catch(() => add(1))
}

/** What was loosened by somebody is not taken over in silence; sizes and times follow the settings. */
async function held(
  connected: Connected,
  { config, ...info }: StreamInfo,
  settings: OwnedSettings,
): Promise<StreamInfo> {
  const { stream, replicas, owner, formerly } = settings
  const before = ownerOf(config)
  if (![null, owner, formerly].includes(before) && !settings.takesOver)
    throw new StreamTaken(takenWords(stream))
  const faults: string[] = []
  const wanted = configOf(settings)
  if (config.storage !== 'file') faults.push(`keeps its messages in ${config.storage}, not in files`)
  if (config.discard !== 'new') faults.push('discards old messages when it is full, not new ones')
  if (config.retention !== 'limits') faults.push(`has the retention ${config.retention}, not limits`)
  if (replicas !== null && config.num_replicas < replicas)
    faults.push(`has ${config.num_replicas} replicas, and KONTOR_NATS_REPLICAS is ${replicas}`)
  if (!config.subjects?.includes(wanted.subjects![0]!))
    faults.push(`does not have the subjects ${wanted.subjects![0]}`)
  if (!/^[1-9]\d{0,2}$/.test(config.metadata?.[PARTITIONS] ?? ''))
    faults.push('does not say how many partitions it has: Kontor did not make it')
  if (faults.length > 0)
    throw new NatsRefused(
      `The stream ${stream} ${faults.join(', and it ')}. Put it right with \`nats stream edit ${stream}\`, or give another name in KONTOR_NATS_STREAM.`,
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

function partitionsOf({ metadata }: StreamConfig, { partitions }: NatsSettings): number {
  return Number(metadata?.[PARTITIONS] ?? partitions)
}

/** The number of partitions is fixed when the stream is made: events of one key would change places. */
export function partitionsDiffer({ stream, partitions }: NatsSettings, found: number): string | null {
  if (partitions === found) return null
  return (
    `KONTOR_NATS_PARTITIONS is ${partitions}, but the stream ${stream} was made with ${found}, and goes on with them. ` +
    `Set it to ${found}; for another number, go over to a stream of another name (KONTOR_NATS_STREAM).`
  )
}

/** Never more than is known: events go on where the system account cannot be asked. */
async function promised(
  settings: NatsSettings,
  replicas: number,
): Promise<{ promise: Promised; doubt: string | null }> {
  const asked = settings.isSynced || (await saysSynced(settings).catch(doubtOf))
  if (asked === true) return { promise: 'synced', doubt: null }
  return { promise: replicas >= 3 ? 'replicated' : 'process-crash only', doubt: asked || null }
}

function doubtOf(error: unknown): string {
  return `KONTOR_NATS_SYSTEM_URL and KONTOR_NATS_SYSTEM_CREDS do not lead to a user of the system account (${reasonOf(error)})`
}

const ANSWERS_WITHIN_MS = 1_000

/** Whether every server of the system says that it syncs always. */
async function saysSynced({ systemAccess }: NatsSettings): Promise<boolean> {
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
