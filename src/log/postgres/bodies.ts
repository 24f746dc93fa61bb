import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Entry } from '../../domain/entries/entry.ts'
import { toEntry } from '../../postgres/entries.ts'

/** How the log stores a body: as it is, or compressed in `packed`. */
export type StoredBody = { body: string; packed: Buffer | null }

// PostgreSQL stores a row of up to 2 kB in one piece, so compression would save little.
const MIN_LENGTH = 2_048
// Compressing a megabyte blocks the thread for two milliseconds.
const MAX_LENGTH = 1_048_576

// A new buffer per body would stay in memory until the next garbage collection. Only the pages that are used take memory.
const encoded = Buffer.allocUnsafeSlow(3 * MAX_LENGTH)

/** A batch of 100 events takes 60 µs, less than PostgreSQL needs to store it uncompressed. */
export function packBody(body: string): StoredBody {
  if (body.length < MIN_LENGTH || body.length > MAX_LENGTH) return { body, packed: null }
  const bytes = encoded.subarray(0, encoded.write(body))
  // Most bodies become smaller than a quarter. By default, each result keeps a buffer of 64 KiB until it is stored.
  const packed = zstdCompressSync(bytes, { chunkSize: bytes.length >> 2 })
  return packed.length < body.length / 2 ? { body: '', packed } : { body, packed: null }
}

/** The entry of a row of the log, with its body as received. */
export function unpackEntry(row: Entry & StoredBody): Entry {
  return toEntry({ ...row, body: unpackBody(row) })
}

export function unpackBody({ body, packed }: StoredBody): string {
  return packed === null ? body : zstdDecompressSync(packed, { chunkSize: 32_768 }).toString()
}
