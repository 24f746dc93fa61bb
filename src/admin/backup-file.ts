import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { constants, crc32, zstdCompress, zstdDecompress } from 'node:zlib'
import { AdminError, fileError } from './error.ts'
import { createPartialFile } from './partial-file.ts'

/**
 * A backup is one file: a signature line, then blocks, each compressed and with a checksum, then the position of the last
 * block. The first block is the header, the last one the footer; both are JSON.
 *
 *     kontor backup 1\n | header | (table | rows …)… | footer | length of the footer's block, "KEND"
 *     block: kind (1) | bytes (4) | bytes compressed (4) | CRC-32 of all this (4) | compressed with zstd
 *
 * The footer has the SHA-256 of everything before it, which also detects lost, added or swapped blocks.
 */
const FORMAT = 1
const SIGNATURE = Buffer.from(`kontor backup ${FORMAT}\n`)
const ANY_SIGNATURE = /^kontor backup (\d+)\n/
const FRAME_BYTES = 13
const END = Buffer.from('KEND')
const TRAILER_BYTES = 4 + END.length

const KINDS = ['header', 'table', 'rows', 'footer'] as const
type Kind = (typeof KINDS)[number]
type Block = { kind: Kind; bytes: Buffer }

/** Rows are split into blocks of this size, which also limits the memory per block. */
export const ROWS_BYTES = 1_048_576
// A header lists every table and partition, about 500 bytes each.
const MAX_BYTES = 64 * ROWS_BYTES
// Compression runs in other threads. At most this many blocks are in progress.
const IN_FLIGHT = 4

const compress = promisify<Buffer, { params: Record<number, number> }, Buffer>(zstdCompress)
const decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(zstdDecompress)
// The fastest level: it already reduces the size to a third, and the database is slower than this.
const QUICK = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export type BackupWriter = {
  /** Resolves when the next block can be written. The writer owns the bytes from then on. */
  write(kind: Kind, bytes: Buffer): Promise<void>
  /** Writes the footer, syncs the file and moves it to its final name. Returns its size. */
  finish(footer: object): Promise<number>
  /** Deletes the unfinished file. */
  abandon(): Promise<void>
}

export async function createBackupFile(path: string): Promise<BackupWriter> {
  const file = await createPartialFile(path)
  const hash = createHash('sha256')
  let size = 0
  // The next write or the end reports a failure of the previous one.
  let last = append(SIGNATURE)
  last.catch(() => {})
  const underway: Promise<void>[] = []

  async function append(bytes: Buffer): Promise<void> {
    hash.update(bytes)
    size += bytes.length
    await file.write(bytes)
  }

  async function write(kind: Kind, bytes: Buffer): Promise<void> {
    const compressed = compress(bytes, QUICK)
    const before = last
    last = Promise.all([before, compressed]).then(([, stored]) => append(buildFrame(kind, bytes.length, stored)))
    last.catch(() => {})
    underway.push(last)
    if (underway.length >= IN_FLIGHT) await underway.shift()
  }

  return {
    write,
    async finish(footer) {
      await last
      const before = size
      await write('footer', Buffer.from(JSON.stringify({ ...footer, sha256: hash.copy().digest('hex') })))
      await last
      const trailer = Buffer.alloc(4)
      trailer.writeUInt32BE(size - before)
      await append(Buffer.concat([trailer, END]))
      await file.publish()
      await syncDirectory(dirname(path))
      return size
    },
    async abandon() {
      await last.catch(() => {})
      await file.discard()
    },
  }
}

function buildFrame(kind: Kind, length: number, stored: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_BYTES + stored.length)
  frame.writeUInt8(KINDS.indexOf(kind), 0)
  frame.writeUInt32BE(length, 1)
  frame.writeUInt32BE(stored.length, 5)
  frame.writeUInt32BE(crc32(stored, crc32(frame.subarray(0, 9))), 9)
  stored.copy(frame, FRAME_BYTES)
  return frame
}

async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path, 'r')
  await directory.sync().finally(() => directory.close())
}

export type BackupReader<Header, Footer> = {
  path: string
  bytes: number
  header: Header
  footer: Footer
  /** All blocks between header and footer, in order. Throws at the first byte that differs. */
  blocks(onRead?: (bytes: number) => void): AsyncGenerator<Block>
  close(): Promise<void>
}

/** Checks both ends first: a truncated file, or one that is not a backup, is rejected before anything else happens. */
export async function openBackupFile<Header, Footer extends object>(
  path: string,
): Promise<BackupReader<Header, Footer>> {
  const file = await open(path, 'r').catch(fileError('read', path))
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw damaged(path, 'is not a file')
    const { size } = stat
    const start = await readAt(file, 0, Math.min(size, 32))
    const format = ANY_SIGNATURE.exec(start.toString('latin1'))?.[1]
    if (format === undefined) throw damaged(path, 'is not a Kontor backup')
    if (Number(format) !== FORMAT)
      throw tooNew(path, `its format is ${format}, and this version reads format ${FORMAT}`)
    const footerAt = await findFooter(file, path, size)
    const footer = await readFrame(file, path, footerAt, size - TRAILER_BYTES)
    const header = await readFrame(file, path, SIGNATURE.length, footerAt)
    if (footer.kind !== 'footer' || header.kind !== 'header') throw damaged(path, 'is damaged')
    if (footerAt + footer.frame.length !== size - TRAILER_BYTES) throw damaged(path, 'is damaged at its end')
    const { sha256, ...facts } = parse<Footer & { sha256: string }>(await unpack(path, footer))
    return {
      path,
      bytes: size,
      header: parse<Header>(await unpack(path, header)),
      footer: facts as unknown as Footer,
      async *blocks(onRead = () => {}) {
        const hash = createHash('sha256').update(SIGNATURE).update(header.frame)
        const from = SIGNATURE.length + header.frame.length
        yield* readBlocks(file, path, { from, to: footerAt, hash, onRead })
        if (hash.digest('hex') !== sha256)
          throw damaged(path, 'is damaged: the checksum of the whole file does not match')
      },
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

async function findFooter(file: FileHandle, path: string, size: number): Promise<number> {
  const trailer = await readAt(file, Math.max(0, size - TRAILER_BYTES), TRAILER_BYTES)
  const at = trailer.length === TRAILER_BYTES ? size - TRAILER_BYTES - trailer.readUInt32BE(0) : -1
  if (!trailer.subarray(4).equals(END) || at < SIGNATURE.length)
    throw damaged(path, 'has no valid end: it is truncated or damaged')
  return at
}

async function* readBlocks(
  file: FileHandle,
  path: string,
  { from, to, hash, onRead }: { from: number; to: number; hash: Hash; onRead: (bytes: number) => void },
): AsyncGenerator<Block> {
  const underway: Promise<Block>[] = []
  for (let at = from; at < to; ) {
    const read = await readFrame(file, path, at, to)
    hash.update(read.frame)
    at += read.frame.length
    onRead(read.frame.length)
    const block = unpack(path, read).then(bytes => ({ kind: read.kind, bytes }))
    block.catch(() => {}) // the reader of the block gets the failure
    underway.push(block)
    if (underway.length >= IN_FLIGHT) yield await underway.shift()!
  }
  for (const block of underway) yield await block
}

type Frame = { kind: Kind; length: number; frame: Buffer }

async function readFrame(file: FileHandle, path: string, at: number, end: number): Promise<Frame> {
  const broken = () => damaged(path, `is damaged at byte ${at.toLocaleString('en')}`)
  const start = await readAt(file, at, FRAME_BYTES)
  if (start.length < FRAME_BYTES) throw broken()
  const kind = KINDS[start.readUInt8(0)]
  const length = start.readUInt32BE(1)
  const storedLength = start.readUInt32BE(5)
  if (!kind || length > MAX_BYTES || at + FRAME_BYTES + storedLength > end) throw broken()
  const frame = await readAt(file, at, FRAME_BYTES + storedLength)
  if (frame.length < FRAME_BYTES + storedLength) throw broken()
  const sum = crc32(frame.subarray(FRAME_BYTES), crc32(frame.subarray(0, 9)))
  if (sum !== frame.readUInt32BE(9)) throw broken()
  return { kind, length, frame }
}

async function unpack(path: string, { length, frame }: Frame): Promise<Buffer> {
  const bytes = await decompress(frame.subarray(FRAME_BYTES), { maxOutputLength: Math.max(1, length) })
  if (bytes.length !== length) throw damaged(path, 'is damaged: a block has the wrong length')
  return bytes
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, at + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return buffer.subarray(0, done)
}

function parse<T>(bytes: Buffer): T {
  return JSON.parse(bytes.toString('utf8')) as T
}

function damaged(path: string, how: string): AdminError {
  return new AdminError('conflict', 'backup_damaged', `${path} ${how}.`)
}

export function tooNew(path: string, why: string): AdminError {
  return new AdminError(
    'conflict',
    'backup_too_new',
    `${path} was created by a newer version of Kontor: ${why}. Restore it with the version that created it.`,
  )
}
