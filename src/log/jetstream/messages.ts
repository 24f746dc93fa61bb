import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Entry, EntryKind } from '../../domain/entries/entry.ts'
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
}

type Unpacked = { entries: Entry[]; storedBytes: number[] }

type Row = [
  id: string,
  tenantId: number,
  kind: EntryKind,
  orderingKey: string,
  receivedAt: number,
  context: string,
  body: string,
  storedBytes: number,
]

// Headers count for NATS's limit as well: the client's own, beside what is told of the message.
const HEADER_BYTES = 1_024

/** As few messages as hold them, in their order. */
export function pack(appends: Append[], maxPayload: number): Packed[] {
  const text = Buffer.from(JSON.stringify(appends.map(rowOf)))
  const facts = factsOf(appends)
  const limit = maxPayload - HEADER_BYTES - JSON.stringify(facts).length
  if (text.length <= limit) return [{ payload: text, facts, parts: [] }]
  const compressed = zstdCompressSync(text)
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

export function unpack(payload: Uint8Array, { isCompressed }: Pick<Facts, 'isCompressed'>): Unpacked {
  const text = isCompressed ? zstdDecompressSync(payload) : Buffer.from(payload)
  const rows = JSON.parse(text.toString('utf8')) as Row[]
  return { entries: rows.map(entryOf), storedBytes: rows.map(row => row[7]) }
}

function rowOf({ entry, storedBytes }: Append): Row {
  const { id, tenantId, kind, orderingKey, receivedAt, context, body } = entry
  return [id, tenantId, kind, orderingKey, receivedAt.getTime(), context, body, storedBytes ?? body.length]
}

function entryOf([id, tenantId, kind, orderingKey, receivedAt, context, body]: Row): Entry {
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

export function readFacts(headers: Pick<Headers, 'get'> | undefined): Facts {
  return JSON.parse(headers!.get(HEADER)) as Facts
}
