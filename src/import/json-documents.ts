import { arrayItems, isObject, objectFields, parseJson } from '../domain/json/json.ts'
import { FileFault, type Rejection, type Row } from './row.ts'

const MAX_DOCUMENT_CHARS = 64 * 1_048_576

/** A sequence of JSON values, each on one or several lines. The items of a list page or an array become separate rows. */
export async function* jsonDocuments(chunks: AsyncIterable<string>): AsyncGenerator<(Row | Rejection)[]> {
  let text = ''
  let [at, depth, start, line, startLine] = [0, 0, -1, 1, 1]
  let isInString = false
  for await (const chunk of chunks) {
    text += chunk
    const rows: (Row | Rejection)[] = []
    for (; at < text.length; at++) {
      const c = text[at]!
      if (c === '\n') line++
      if (isInString) {
        if (c === '\\') {
          // the escaped character may be in the next chunk
          if (at + 1 === text.length) break
          at++
        } else if (c === '"') isInString = false
      } else if (c === '"') isInString = depth > 0
      else if (c === '{' || c === '[') {
        if (depth++ === 0) [start, startLine] = [at, line]
      } else if ((c === '}' || c === ']') && depth > 0 && --depth === 0) {
        rows.push(...rowsOf(text.slice(start, at + 1), startLine))
        start = -1
      } else if (depth === 0 && !/[\s,]/.test(c)) throw new FileFault(`Line ${line} is not a JSON object.`)
    }
    const kept = start < 0 ? at : start
    text = text.slice(kept)
    at -= kept
    if (start >= 0) start = 0
    if (text.length > MAX_DOCUMENT_CHARS)
      throw new FileFault(
        `The JSON value that starts at line ${startLine} is longer than 64 MiB. A closing bracket may be missing.`,
      )
    yield rows
  }
  if (start >= 0) yield [{ line: startLine, column: null, reason: 'the JSON value that starts here is incomplete' }]
}

function rowsOf(text: string, line: number): (Row | Rejection)[] {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    return [{ line, column: null, reason: (error as Error).message }]
  }
  if (Array.isArray(value)) return itemRows(text, text, line)
  if (isObject(value) && value.object === 'list' && Array.isArray(value.data))
    return itemRows(text, objectFields(text).findLast(([name]) => name === 'data')![1], line)
  return isObject(value) ? [{ line, cells: value, text }] : [{ line, column: null, reason: 'is not a JSON object' }]
}

function itemRows(text: string, array: string, firstLine: number): (Row | Rejection)[] {
  let [from, line] = [0, firstLine]
  return arrayItems(array).flatMap(item => {
    const begin = text.indexOf(item, from)
    for (let i = text.indexOf('\n', from); i >= 0 && i < begin; i = text.indexOf('\n', i + 1)) line++
    from = begin
    return rowsOf(item, line)
  })
}
