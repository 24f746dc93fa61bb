import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { FileFault } from './row.ts'

/** A file, or what is piped in: there is no size and no going on for the latter. */
export type Input = {
  path: string | null
  bytes: number | null
  /** When its content was last changed: what "now" means in a map. */
  time: Date
  /** How much of it was read. */
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
    throw new FileFault(`${path} is no file: pipe it in, and give - for its name.`)
  if (!found) throw new FileFault(`There is no file ${path}.`)
  // A file from the future is as good as new.
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
      throw new FileFault('The text is not UTF-8. Save the file as UTF-8 (in a spreadsheet: “CSV UTF-8”).')
    }
  }
  for await (const bytes of stream) {
    count(bytes.length)
    if (isFirst && bytes[0] === 0x1f && bytes[1] === 0x8b)
      throw new FileFault(
        'The file is compressed: unpack it, or pipe it in (gunzip -c FILE | kontor import … -).',
      )
    isFirst = false
    yield decode(bytes)
  }
  yield decode()
}
