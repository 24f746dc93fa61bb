import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Entry, EntryKind } from '../../domain/entries/entry.ts'
import { isUuid } from '../../domain/ids.ts'
import type { Append } from '../log.ts'

/** What goes to NATS at once. */
export type Packed = {
  payload: Uint8Array
  facts: Facts
  /** Of what is too large for one message: the payload lies in messages of its own, which this one names. */
  parts: Uint8Array[]
}

/** In the headers: what can be told of a message without reading it. */
export type Facts = {
  /** Of the first entry, and so the message's own: the same message never counts twice. */
  id: string
  entries: number
  tenants: number[]
  /** When the oldest and the newest came in, in ms. */
  from: number
  to: number
  isCompressed: boolean
  parts: number
  /** Somebody else put it there, or it is Kontor's and cannot be read: it is passed over. */
  fault?: Fault
}

export type Fault = 'foreign' | 'unreadable'

type Unpacked = { entries: Entry[]; storedBytes: number[] }

/**
 * A payload is the length of its rows (32 bits, the highest byte first), the rows as JSON, and then context and body of each as they are: within
 * the JSON every quotation mark of theirs would be escaped and read again.
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

// Headers count for NATS's limit as well: the client's own, beside what is told of the message.
const HEADER_BYTES = 1_024

// Several times what a flush and the largest request hold. A message that says more of itself is not ours: a hundred kilobytes can be
// gigabytes compressed, and a number of entries fills the backlog.
const MAX_UNPACKED_BYTES = 128 * 1024 ** 2
const MAX_ENTRIES = 100_000

/** As few messages as hold them, in their order. */
export function pack(appends: Append[], maxPayload: number): Packed[] {
  const bytes = encoded(appends)
  const facts = factsOf(appends)
  const limit = maxPayload - HEADER_BYTES - JSON.stringify(facts).length
  if (bytes.length <= limit) return [{ payload: bytes, facts, parts: [] }]
  const compressed = zstdCompressSync(bytes)
  if (compressed.length <= limit)
    return [{ payload: compressed, facts: { ...facts, isCompressed: true }, parts: [] }]
  if (appends.length > 1) {
    const half = appends.length >> 1
    return [...pack(appends.slice(0, half), maxPayload), ...pack(appends.slice(half), maxPayload)]
  }
  const parts: Uint8Array[] = []
  for (let from = 0; from < compressed.length; from += limit)
    parts.push(compressed.subarray(from, from + limit))
  return [{ payload: EMPTY, facts: { ...facts, isCompressed: true, parts: parts.length }, parts }]
}

const EMPTY = new Uint8Array(0)

function encoded(appends: Append[]): Buffer {
  const rows = appends.map(rowOf)
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

export function unpack(payload: Uint8Array, { isCompressed }: Pick<Facts, 'isCompressed'>): Unpacked {
  const bytes = isCompressed
    ? zstdDecompressSync(payload, { maxOutputLength: MAX_UNPACKED_BYTES })
    : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  let at = LENGTH_BYTES + bytes.readUInt32BE()
  const rows = JSON.parse(bytes.toString('utf8', LENGTH_BYTES, at)) as Row[]
  if (!Array.isArray(rows) || rows.length === 0 || !rows.every(isRow)) throw new Error('These are no entries')
  const next = (length: number) => {
    const text = bytes.toString('utf8', at, at + length)
    at += length
    return text
  }
  const entries = rows.map(row => entryOf(row, next(row[6]), next(row[7])))
  if (at !== bytes.length || !entries.every(({ context, body }) => isText(context) && isText(body)))
    throw new Error('These are not the texts of its entries')
  return { entries, storedBytes: rows.map(row => row[5]) }
}

function rowOf({ entry, storedBytes }: Append): Row {
  const { id, tenantId, kind, orderingKey, receivedAt, context, body } = entry
  const lengths = [Buffer.byteLength(context), Buffer.byteLength(body)] as const
  return [id, tenantId, kind, orderingKey, receivedAt.getTime(), storedBytes ?? body.length, ...lengths]
}

/** Whatever gets past here and is no entry would hold up its partition for ever. */
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
// What PostgreSQL and ISO 8601 write alike: a dead letter with another date could not be kept either.
const isTime = (value: unknown) => isCount(value) && (value as number) <= Date.UTC(9999, 11, 31)
const isTenantId = (value: unknown) =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) < 2 ** 31
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0

function entryOf(row: Row, context: string, body: string): Entry {
  const [id, tenantId, kind, orderingKey, receivedAt] = row
  return { id, tenantId, kind, orderingKey, receivedAt: new Date(receivedAt), context, body }
}

function factsOf(appends: Append[]): Facts {
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

/** One header: each costs the server and the reader a line. */
export function writeFacts(headers: Headers, facts: Facts): void {
  headers.set(HEADER, JSON.stringify(facts))
}

/** `at`: when NATS took it in, for what says nothing of itself. */
export function readFacts(headers: Pick<Headers, 'get'> | undefined, at: number): Facts {
  const text = headers?.get(HEADER) ?? ''
  const facts = text === '' ? null : parsed(text)
  if (facts !== null) return facts
  const id = headers?.get('Nats-Msg-Id') ?? ''
  const fault = text === '' ? 'foreign' : 'unreadable'
  return {
    ...{ id, entries: text === '' ? 0 : 1, tenants: [], from: at, to: at },
    ...{ isCompressed: false, parts: 0, fault },
  }
}

function parsed(text: string): Facts | null {
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

/**
 * Stands for a message that cannot be read and is of one tenant: no event, whatever it holds, and so it is kept among that
 * tenant's dead letters.
 */
export function unreadableEntry(
  { id, tenants, to }: Facts,
  { words, payload }: { words: string; payload: Uint8Array },
): Entry {
  return {
    ...{ id, tenantId: tenants[0]!, kind: 'events', orderingKey: id, receivedAt: new Date(to) },
    context: JSON.stringify({ route: 'track', ip: null, headers: {} }),
    body: `${words} (base64): ${Buffer.from(payload).toString('base64')}`,
  }
}
