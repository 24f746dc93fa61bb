import { hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { csvLine } from '../domain/csv.ts'
import { FileError, type Place, type Rejection } from './rows.ts'

/** A file, or standard input, which has no size and cannot be resumed. */
export type Input = {
  path: string | null
  bytes: number | null
  /** The modification time, which is also the value of "now" in a map. */
  time: Date
  /** The number of bytes read so far. */
  readBytes(): number
  chunks(): AsyncGenerator<string>
}

/** `encoding`: a name that TextDecoder knows. `command`: the command that reads the file, for messages. */
export async function openInput(
  file: string,
  now: Date,
  { encoding = 'utf-8', command = 'import' }: { encoding?: string | undefined; command?: string } = {},
): Promise<Input> {
  let read = 0
  const count = (bytes: number) => {
    read += bytes
  }
  const decode = (stream: AsyncIterable<Buffer>) => decoded(stream, count, { encoding, command })
  const readBytes = () => read
  if (file === '-') return { path: null, bytes: null, time: now, readBytes, chunks: () => decode(process.stdin) }
  const path = resolve(file)
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory()) throw new FileError(`${path} is a directory. Specify a file.`)
  if (found && !found.isFile())
    throw new FileError(`${path} is not a regular file. Pipe its contents in, and use - as the file name.`)
  if (!found) throw new FileError(`No such file: ${path}.`)
  // The modification time may be in the future.
  const time = new Date(Math.min(found.mtimeMs, now.getTime()))
  const chunks = () => decode(createReadStream(path, { highWaterMark: 262_144 }))
  return { path, bytes: found.size, time, readBytes, chunks }
}

async function* decoded(
  stream: AsyncIterable<Buffer>,
  count: (bytes: number) => void,
  { encoding, command }: { encoding: string; command: string },
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  let isFirst = true
  const decode = (bytes?: Buffer) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw new FileError(
        encoding === 'utf-8'
          ? 'The file is not UTF-8. Add its encoding, for example --encoding windows-1252 (Excel), or save it as “CSV UTF-8”.'
          : `The file is not ${encoding}.`,
      )
    }
  }
  for await (const bytes of stream) {
    count(bytes.length)
    if (isFirst) checkStart(bytes, { encoding, command })
    isFirst = false
    yield decode(bytes)
  }
  yield decode()
}

function checkStart(bytes: Buffer, { encoding, command }: { encoding: string; command: string }): void {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b)
    throw new FileError(
      `The file is compressed. Decompress it, or pipe it in (gunzip -c FILE | kontor ${command} … -).`,
    )
  const utf16 = encoding === 'utf-8' ? recognizeUtf16(bytes) : undefined
  if (utf16 !== undefined) {
    const hint = command === 'import' ? `, or add --encoding ${utf16}` : ''
    throw new FileError(`The file is UTF-16. Save it as UTF-8${hint}.`)
  }
}

/** By the byte order mark, or by the zero byte of an ASCII character. */
function recognizeUtf16([first, second]: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le'
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) return 'utf-16be'
  return undefined
}

/** The progress of an import: the number of rows that are read and settled, and their outcomes. */
export type Progress = {
  read: number
  accepted: number
  duplicates: number
  rejected: number
  /** The length of the errors file at that point. */
  errorsBytes: number
  /** For lists read from an API: the page to continue with, and the number of rows before it. */
  page?: Place & { read: number }
}

export const NO_PROGRESS: Progress = { read: 0, accepted: 0, duplicates: 0, rejected: 0, errorsBytes: 0 }

/** The progress file beside the imported file. With it, the same command continues after an interruption. */
export type Journal = {
  load(): Promise<Progress | null>
  /** Writes at most once per second, unless `isLast`. */
  save(progress: Progress, isLast?: boolean): Promise<void>
  end(): Promise<void>
}

const NO_JOURNAL: Journal = { load: async () => null, save: async () => {}, end: async () => {} }
const SAVE_EVERY_MS = 1_000

/**
 * `what`: the options that distinguish this import from other imports of the same file. `onUnwritable` is called at most once: without
 * its progress file, an import continues, but a repeat starts at the first row.
 */
export function openJournal(
  { path, bytes, time }: Pick<Input, 'path' | 'bytes' | 'time'>,
  what: unknown,
  onUnwritable: (file: string, error: Error) => void,
): Journal {
  if (path === null) return NO_JOURNAL
  const key = hash('sha256', JSON.stringify([path, bytes, time, what]), 'hex').slice(0, 12)
  const file = join(dirname(path), `.${basename(path)}.${key}.kontor-import`)
  let isWritable = true
  let savedAt = Number.NEGATIVE_INFINITY
  return {
    async load() {
      try {
        return { ...NO_PROGRESS, ...(JSON.parse(await readFile(file, 'utf8')) as Progress) }
      } catch {
        return null
      }
    },
    async save(progress, isLast = false) {
      if (!isWritable || (!isLast && performance.now() - savedAt < SAVE_EVERY_MS)) return
      savedAt = performance.now()
      try {
        await writeFile(`${file}~`, JSON.stringify(progress), { mode: 0o600 })
        await rename(`${file}~`, file)
      } catch (error) {
        isWritable = false
        await rm(`${file}~`, { force: true }).catch(() => undefined)
        onUnwritable(file, error as Error)
      }
    },
    async end() {
      await rm(file, { force: true })
    },
  }
}

/** The file for rejected rows: one JSON object per line, or CSV if its name ends in .csv. */
export type ErrorsFile = { write(rejections: Rejection[]): Promise<void>; bytes(): number; close(): Promise<void> }

const NO_ERRORS_FILE: ErrorsFile = { write: async () => {}, bytes: () => 0, close: async () => {} }

/**
 * Opens the file. An interrupted import may have written rejections after its last settled row: they are written again, starting
 * at byte `from`. `rejectWith` throws the error for a file that cannot be written.
 */
export async function openErrorsFile(
  path: string | null,
  from: number,
  rejectWith: (error: Error) => never,
): Promise<ErrorsFile> {
  if (path === null) return NO_ERRORS_FILE
  const file = await open(path, 'a', 0o600).catch(rejectWith)
  let written = 0
  const format = path.toLowerCase().endsWith('.csv') ? csvRow : ndjsonLine
  const append = async (text: string) => {
    await file.appendFile(text).catch(rejectWith)
    written += Buffer.byteLength(text)
  }
  try {
    written = Math.min(from, (await file.stat()).size)
    await file.truncate(written).catch(rejectWith)
    if (format === csvRow && written === 0) await append(csvLine(['line', 'column', 'reason']))
  } catch (error) {
    await file.close()
    throw error
  }
  return {
    write: rejections => append(rejections.map(format).join('')),
    bytes: () => written,
    close: () => file.close().catch(rejectWith),
  }
}

function ndjsonLine(rejection: Rejection): string {
  return `${JSON.stringify(rejection)}\n`
}

function csvRow({ line, column, reason }: Rejection): string {
  return csvLine([String(line), column ?? '', reason])
}
