import { isObject, parseJson } from '../domain/json/json.ts'
import { FileFault, type Rejection, type Row } from './row.ts'

// A record may have 1 MiB, and a batch 8 MiB.
const MAX_LINE_CHARS = 8 * 1_048_576

/** One JSON object per line. */
export async function* ndjsonRows(chunks: AsyncIterable<string>): AsyncGenerator<(Row | Rejection)[]> {
  let rest = ''
  let line = 0
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    if (rest.length > MAX_LINE_CHARS)
      throw new FileFault(
        `Line ${line + lines.length + 1} is longer than 8 MiB. The file must contain one JSON object per line.`,
      )
    yield lines.flatMap(text => rowOf(text, ++line) ?? [])
  }
  const last = rowOf(rest, ++line)
  yield last ? [last] : []
}

function rowOf(text: string, line: number): Row | Rejection | null {
  if (text.trim() === '') return null
  try {
    const cells = parseJson(text)
    return isObject(cells) ? { line, cells, text } : { line, column: null, reason: 'is not a JSON object' }
  } catch (error) {
    return { line, column: null, reason: (error as Error).message }
  }
}
