import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { FileFault } from './row.ts'

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

export async function openInput(file: string, now: Date): Promise<Input> {
  let read = 0
  const count = (bytes: number) => {
    read += bytes
  }
  const readBytes = () => read
  if (file === '-')
    return { path: null, bytes: null, time: now, readBytes, chunks: () => decoded(process.stdin, count) }
  const path = resolve(file)
  const found = await stat(path).catch(() => null)
  if (found && !found.isFile())
    throw new FileFault(`${path} is not a regular file. Pipe its contents in, and use - as the file name.`)
  if (!found) throw new FileFault(`There is no file ${path}.`)
  // The modification time may be in the future.
  const time = new Date(Math.min(found.mtimeMs, now.getTime()))
  const chunks = () => decoded(createReadStream(path, { highWaterMark: 262_144 }), count)
  return { path, bytes: found.size, time, readBytes, chunks }
}

async function* decoded(
  stream: AsyncIterable<Buffer>,
  count: (bytes: number) => void,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isFirst = true
  const decode = (bytes?: Buffer) => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
    } catch {
      throw new FileFault('The file is not UTF-8. Save it as UTF-8 (in a spreadsheet: “CSV UTF-8”).')
    }
  }
  for await (const bytes of stream) {
    count(bytes.length)
    if (isFirst && bytes[0] === 0x1f && bytes[1] === 0x8b)
      throw new FileFault(
        'The file is compressed. Decompress it, or pipe it in (gunzip -c FILE | kontor import … -).',
      )
    isFirst = false
    yield decode(bytes)
  }
  yield decode()
}
