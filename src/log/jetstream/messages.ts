import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Entry, EntryKind } from '../../domain/entries/entry.ts'
import { isUuid } from '../../domain/ids.ts'
import type { Append } from '../log.ts'
import type { SkippedMessage } from './known-streams.ts'
import { type Connected, partitionSubject, partSubject } from './nats.ts'

/** One message to NATS. */
export type Packed = {
  payload: Uint8Array
  facts: Facts
  /** If the payload is too large for one message: it is stored in separate messages, which this one lists. */
  parts: Uint8Array[]
}

/** Facts about a message, in its header: known without reading the payload. */
export type Facts = {
  /** The id of the first entry is the message's id, by which NATS detects duplicates. */
  id: string
  entries: number
  tenants: number[]
  /** When the oldest and the newest entry were received, in ms. */
  from: number
  to: number
  isCompressed: boolean
  parts: number
  /** Another program published it, or it is Kontor's and cannot be read: it is skipped. */
  error?: 'foreign' | 'unreadable'
}

type Unpacked = { entries: Entry[]; storedBytes: number[] }

/**
 * A payload is the length of its rows (32 bits, big-endian), the rows as JSON, and then context and body of each row as they are: inside
 * JSON every quotation mark would be escaped and parsed again.
 */
type Row = [
  id: string,
  tenantId: number,
  kind: EntryKind,
  orderingKey: string,
  receivedAt: number,
  storedBytes: number,
  contextBytes: number,
  bodyBytes: number,
]

const LENGTH_BYTES = 4

// The headers count towards NATS's limit: the client's own and the facts.
const HEADER_BYTES = 1_024

// Several times the size of a flush and of the largest request. A message that claims more is not Kontor's: 100 kB can decompress to
// gigabytes, and a false number of entries would fill the backlog.
const MAX_UNPACKED_BYTES = 128 * 1024 ** 2
const MAX_ENTRIES = 100_000

/** As few messages as possible, in the order of the entries. */
export function pack(appends: Append[], maxPayload: number): Packed[] {
  const bytes = encode(appends)
  const facts = summarize(appends)
  const limit = maxPayload - HEADER_BYTES - JSON.stringify(facts).length
  if (bytes.length <= limit) return [{ payload: bytes, facts, parts: [] }]
  const compressed = zstdCompressSync(bytes)
  if (compressed.length <= limit) return [{ payload: compressed, facts: { ...facts, isCompressed: true }, parts: [] }]
  if (appends.length > 1) {
    const half = appends.length >> 1
    return [...pack(appends.slice(0, half), maxPayload), ...pack(appends.slice(half), maxPayload)]
  }
  const parts: Uint8Array[] = []
  for (let from = 0; from < compressed.length; from += limit) parts.push(compressed.subarray(from, from + limit))
  return [{ payload: EMPTY, facts: { ...facts, isCompressed: true, parts: parts.length }, parts }]
}

const EMPTY = new Uint8Array(0)

function encode(appends: Append[]): Buffer {
  const rows = appends.map(toRow)
  const head = Buffer.from(JSON.stringify(rows))
  const texts = rows.reduce((sum, row) => sum + row[6] + row[7], 0)
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + head.length + texts)
  let at = bytes.writeUInt32BE(head.length)
  at += head.copy(bytes, at)
  for (const { entry } of appends) {
    at += bytes.write(entry.context, at)
    at += bytes.write(entry.body, at)
  }
  return bytes
}

function unpack(payload: Uint8Array, { isCompressed }: Pick<Facts, 'isCompressed'>): Unpacked {
  const bytes = isCompressed
    ? zstdDecompressSync(payload, { maxOutputLength: MAX_UNPACKED_BYTES })
    : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  let at = LENGTH_BYTES + bytes.readUInt32BE()
  const rows = JSON.parse(bytes.toString('utf8', LENGTH_BYTES, at)) as Row[]
  if (!Array.isArray(rows) || rows.length === 0 || !rows.every(isRow))
    throw new Error('the payload does not contain entries')
  const next = (length: number) => {
    const text = bytes.toString('utf8', at, at + length)
    at += length
    return text
  }
  const entries = rows.map(row => toEntry(row, next(row[6]), next(row[7])))
  if (at !== bytes.length || !entries.every(({ context, body }) => isText(context) && isText(body)))
    throw new Error('the payload does not match its rows')
  return { entries, storedBytes: rows.map(row => row[5]) }
}

function toRow({ entry, storedBytes }: Append): Row {
  const { id, tenantId, kind, orderingKey, receivedAt, context, body } = entry
  const lengths = [Buffer.byteLength(context), Buffer.byteLength(body)] as const
  return [id, tenantId, kind, orderingKey, receivedAt.getTime(), storedBytes ?? body.length, ...lengths]
}

/** An invalid entry that passes this check would block its partition forever. */
function isRow(row: Row): boolean {
  if (!Array.isArray(row)) return false
  const [id, tenantId, kind, orderingKey, receivedAt, storedBytes, contextBytes, bodyBytes] = row
  return (
    isText(id) &&
    isUuid(id) &&
    isTenantId(tenantId) &&
    (kind === 'events' || kind === 'record') &&
    isText(orderingKey) &&
    [contextBytes, bodyBytes].every(isCount) &&
    isTime(receivedAt) &&
    Number.isFinite(storedBytes)
  )
}

const isText = (value: unknown) => typeof value === 'string' && !value.includes('\0')
// Dates that PostgreSQL and ISO 8601 write alike: a dead letter with another date could not be stored.
const isTime = (value: unknown) => isCount(value) && (value as number) <= Date.UTC(9999, 11, 31)
const isTenantId = (value: unknown) => Number.isInteger(value) && (value as number) > 0 && (value as number) < 2 ** 31
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0

function toEntry(row: Row, context: string, body: string): Entry {
  const [id, tenantId, kind, orderingKey, receivedAt] = row
  return { id, tenantId, kind, orderingKey, receivedAt: new Date(receivedAt), context, body }
}

function summarize(appends: Append[]): Facts {
  const times = appends.map(({ entry }) => entry.receivedAt.getTime())
  return {
    id: appends[0]!.entry.id,
    entries: appends.length,
    tenants: [...new Set(appends.map(({ entry }) => entry.tenantId))],
    from: Math.min(...times),
    to: Math.max(...times),
    isCompressed: false,
    parts: 0,
  }
}

const HEADER = 'Kontor'

type Headers = { get(name: string): string; set(name: string, value: string): void }

/** A single header, because each costs the server and the reader a line. */
export function writeFacts(headers: Headers, facts: Facts): void {
  headers.set(HEADER, JSON.stringify(facts))
}

/** `at`: when NATS stored it, for a message without facts. */
export function readFacts(headers: Pick<Headers, 'get'> | undefined, at: number): Facts {
  const text = headers?.get(HEADER) ?? ''
  const facts = text === '' ? null : parseFacts(text)
  if (facts !== null) return facts
  const id = headers?.get('Nats-Msg-Id') ?? ''
  const error = text === '' ? 'foreign' : 'unreadable'
  return {
    ...{ id, entries: text === '' ? 0 : 1, tenants: [], from: at, to: at },
    ...{ isCompressed: false, parts: 0, error },
  }
}

function parseFacts(text: string): Facts | null {
  try {
    const { id, entries, tenants, from, to, isCompressed, parts } = JSON.parse(text) as Facts
    const isWhole =
      isText(id) &&
      isUuid(id) &&
      [entries, parts].every(isCount) &&
      entries <= MAX_ENTRIES &&
      [from, to].every(isTime) &&
      tenants.every(isTenantId)
    return isWhole ? { id, entries, tenants, from, to, isCompressed, parts } : null
  } catch {
    return null
  }
}

/** Stands for an unreadable message of one tenant. It cannot be applied, and so becomes a dead letter of that tenant. */
function unreadableEntry(
  { id, tenants, to }: Facts,
  { summary, payload }: { summary: string; payload: Uint8Array },
): Entry {
  return {
    ...{ id, tenantId: tenants[0]!, kind: 'events', orderingKey: id, receivedAt: new Date(to) },
    context: JSON.stringify({ route: 'track', ip: null, headers: {} }),
    body: `${summary} (base64): ${Buffer.from(payload).toString('base64')}`,
  }
}

/** A decoded message of a partition. */
export type Message = {
  seq: number
  at: Date
  facts: Facts
  entries: Entry[]
  storedBytes: number[]
  /** Parts are missing: another process has read it meanwhile, or they have not reached that server yet. */
  isIncomplete?: true
  /** Nothing in it can be read: the cursor moves past it. */
  skipped?: SkippedMessage
}

// The assumed size of a message without entries, so that thousands of them are not fetched at once.
const SKIPPED_BYTES = 1_000
// Parts are acknowledged before the message that names them: if the leader does not have them after this time, they are lost.
const PARTS_LATE_MS = 60_000

/** The first message of a partition at or after a number; null: none yet. */
export async function getNext(
  connected: Connected,
  stream: string,
  partition: number,
  from: number,
): Promise<Message | null> {
  const found = await connected.manager.direct.getMessage(stream, {
    next_by_subj: partitionSubject(stream, partition),
    seq: Math.max(1, from),
  })
  if (found === null) return null
  const facts = readFacts(found.header, found.time.getTime())
  const head = { seq: found.seq, at: found.time, facts }
  const skip = (reason: string, payload: Uint8Array) =>
    skippedMessage(head, { subject: found.subject, reason, payload })
  if (facts.error === 'foreign') return skip('it is not from Kontor', found.data)
  if (facts.error === 'unreadable') return skip('its header cannot be read', found.data)
  const payload = facts.parts > 0 ? await readParts(connected, stream, partition, facts) : found.data
  if (payload === null && Date.now() - found.time.getTime() > PARTS_LATE_MS)
    return skip(`not all of its ${facts.parts} parts exist`, found.data)
  if (payload === null) return { ...head, entries: [], storedBytes: [], isIncomplete: true }
  try {
    return { ...head, ...unpack(payload, facts) }
  } catch {
    // The error may quote the payload.
    return skip('it does not contain entries in a format that this version knows', payload)
  }
}

/** A message of one tenant becomes an entry, and so a dead letter. Of Kontor's other messages the payload is kept. */
function skippedMessage(
  head: Pick<Message, 'seq' | 'at' | 'facts'>,
  { subject, reason, payload }: { subject: string; reason: string; payload: Uint8Array },
): Message {
  const { seq, at, facts } = head
  const isForeign = facts.error === 'foreign'
  const hasTenant = facts.tenants.length === 1
  const summary = `message ${seq} of ${subject} cannot be read: ${reason}`
  const entries = hasTenant ? [unreadableEntry(facts, { summary, payload })] : []
  return {
    ...{ ...head, entries, storedBytes: entries.length > 0 ? [entries[0]!.body.length] : [SKIPPED_BYTES] },
    skipped: { seq, at, subject, reason, isForeign, payload: isForeign || hasTenant ? null : payload },
  }
}

/** Null: not all of them exist, also according to the stream's leader. */
async function readParts(
  { manager }: Connected,
  stream: string,
  partition: number,
  { id, parts }: Facts,
): Promise<Uint8Array | null> {
  const found: Uint8Array[] = []
  for (let part = 0; part < parts; part++) {
    const query = { last_by_subj: partSubject(stream, partition, id, part) }
    const message =
      (await manager.direct.getMessage(stream, query)) ?? (await manager.streams.getMessage(stream, query))
    if (message === null) return null
    found.push(message.data)
  }
  return Buffer.concat(found)
}
