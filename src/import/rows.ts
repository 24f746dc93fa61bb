import { once } from 'node:events'
import { parse } from 'csv-parse'
import { isObject, type JsonObject, parseJson } from '../domain/json/json.ts'

/** A row of a file that starts at `line`. `text` is its original JSON, if it was JSON. */
export type Row = {
  line: number
  cells: JsonObject
  text?: string
  /** For a row read from an API: when it was read, in seconds. */
  readAt?: number
  /** For the first row of a page read from an API: where an interrupted import can continue. */
  page?: Place
}

/** A page of one of several lists: the one after the object `after`; null: the first one. */
export type Place = { list: string; after: string | null }

/** Why a row is rejected, and the column that causes it, if there is one. */
export type Rejection = { line: number; column: string | null; reason: string }

/** What is sent to the service as JSON. Items with the same `id` stay in order. */
export type Item = { line: number; id: string; text: string }

export type Read = Item | Rejection

/** Converts rows to items. Several rows may form one item; `end` returns the last one. */
export type Reading = { push(row: Row): Read[]; end(): Read[] }

/** The file cannot be read. The import stops. */
export class FileError extends Error {
  override name = 'FileError'
}

export function isRejection(read: Row | Read): read is Rejection {
  return 'reason' in read
}

/** A reading that converts each row separately. */
export function readEachRow(read: (row: Row) => Read): Reading {
  return { push: row => [read(row)], end: () => [] }
}

// An unclosed quote would turn the rest of the file into one cell.
const MAX_ROW_BYTES = 8 * 1_048_576
// A file with more columns is not a table, and looking up its columns would be slow.
const MAX_COLUMNS = 10_000
const OTHER_DELIMITERS: [RegExp, string, option: string][] = [
  [/;/, 'semicolons', "';'"],
  [/\t/, 'tabs', 'tab'],
  [/\|/, 'bars', "'|'"],
]

type Parsed = { record: string[]; raw: string }

/**
 * Reads the rows of a CSV file; the first line names the columns. An empty cell omits its field. Stray quotes belong to their
 * cell. A row whose number of cells differs from the number of columns is rejected. So is a row with a value in a column without a name,
 * unless `ignoresUnnamed`.
 */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  checkHeader: (columns: string[]) => void,
  { delimiter = ',', ignoresUnnamed = false }: { delimiter?: string | undefined; ignoresUnnamed?: boolean } = {},
): AsyncGenerator<(Row | Rejection)[]> {
  const parser = parse({
    delimiter,
    raw: true,
    relax_quotes: true,
    relax_column_count: true,
    bom: true,
    max_record_size: MAX_ROW_BYTES,
  })
  let parsed: Parsed[] = []
  let failure: (Error & { code?: string }) | null = null
  // the 'error' listener below records errors
  const ended = once(parser, 'close').catch(() => undefined)
  parser.on('data', record => parsed.push(record as Parsed))
  parser.on('error', error => {
    failure = error
  })
  const rows = createRowReader(checkHeader, ignoresUnnamed)
  const take = () => {
    const taken = rows.of(parsed)
    parsed = []
    if (failure) throw rows.explain(failure)
    return taken
  }
  for await (const chunk of chunks) {
    await new Promise<void>(resolve => parser.write(chunk, () => resolve()))
    yield take()
  }
  parser.end()
  await ended
  yield take()
  if (!rows.hasHeader()) throw new FileError('The file is empty. Its first line must name the columns.')
}

function createRowReader(checkHeader: (columns: string[]) => void, ignoresUnnamed: boolean) {
  let columns: string[] | null = null
  let line = 1

  function read({ record, raw }: Parsed): Row | Rejection | null {
    const begin = line
    line += 1 + newlinesIn(raw)
    if (record.length === 1 && record[0] === '') return null
    if (columns === null) {
      columns = parseHeader(record)
      checkHeader(columns)
      return null
    }
    if (record.length !== columns.length)
      return {
        line: begin,
        column: null,
        reason: `has ${record.length} cells, but the file has ${columns.length} columns`,
      }
    const unnamed = ignoresUnnamed ? -1 : columns.findIndex((name, i) => name === '' && record[i]!.trim() !== '')
    if (unnamed >= 0)
      return { line: begin, column: null, reason: `has a value in column ${unnamed + 1}, which has no name` }
    return { line: begin, cells: toCells(columns, record) }
  }

  return {
    of: (parsed: Parsed[]) => parsed.flatMap(record => read(record) ?? []),
    hasHeader: () => columns !== null,
    explain({ code, message }: Error & { code?: string }): FileError {
      if (code === 'CSV_QUOTE_NOT_CLOSED') return new FileError(`The row at line ${line} contains an unclosed quote.`)
      if (code === 'CSV_MAX_RECORD_SIZE')
        return new FileError(`The row at line ${line} is longer than 8 MiB. It may contain an unclosed quote.`)
      return new FileError(`The row at line ${line} cannot be read: ${message}`)
    },
  }
}

function parseHeader(cells: string[]): string[] {
  const columns = cells.map(cell => cell.trim())
  const [other] = OTHER_DELIMITERS.filter(([pattern]) => columns.length === 1 && pattern.test(columns[0]!))
  if (other) throw new FileError(`The columns are separated by ${other[1]}. Add --delimiter ${other[2]}.`)
  if (columns.length > MAX_COLUMNS)
    throw new FileError(`The file has ${columns.length} columns. At most ${MAX_COLUMNS} are allowed.`)
  const seen = new Set<string>()
  for (const name of columns) {
    if (name !== '' && seen.has(name)) throw new FileError(`The file has two columns named ${JSON.stringify(name)}.`)
    seen.add(name)
  }
  return columns
}

function toCells(columns: string[], record: string[]): Record<string, string> {
  // a column may be called __proto__
  const cells: Record<string, string> = Object.create(null)
  for (let i = 0; i < columns.length; i++) {
    const cell = record[i]!
    if (cell !== '' && columns[i] !== '') cells[columns[i]!] = cell
  }
  return cells
}

function newlinesIn(text: string): number {
  let count = 0
  for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) count++
  // With LF, the parser returns a row with the newline that ends it; with CRLF, without.
  return text.endsWith('\n') ? count - 1 : count
}

// A record may have 1 MiB, and a batch 8 MiB.
const MAX_LINE_CHARS = 8 * 1_048_576

/** Throws at the end of a file that contains only white space. */
async function* notEmpty(chunks: AsyncIterable<string>, expected: string): AsyncGenerator<string> {
  let isEmpty = true
  for await (const chunk of chunks) {
    isEmpty &&= chunk.trim() === ''
    yield chunk
  }
  if (isEmpty) throw new FileError(`The file is empty. It must contain ${expected}.`)
}

/** One JSON object per line. */
export async function* ndjsonRows(chunks: AsyncIterable<string>): AsyncGenerator<(Row | Rejection)[]> {
  let rest = ''
  let line = 0
  for await (const chunk of notEmpty(chunks, 'one JSON object per line')) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    if (rest.length > MAX_LINE_CHARS)
      throw new FileError(
        `Line ${line + lines.length + 1} is longer than 8 MiB. The file must contain one JSON object per line.`,
      )
    yield lines.flatMap(text => parseLine(text, ++line) ?? [])
  }
  const last = parseLine(rest, ++line)
  yield last ? [last] : []
}

function parseLine(text: string, line: number): Row | Rejection | null {
  if (text.trim() === '') return null
  try {
    const cells = parseJson(text, 'The line')
    return isObject(cells) ? { line, cells, text } : { line, column: null, reason: 'is not a JSON object' }
  } catch (error) {
    return { line, column: null, reason: (error as Error).message }
  }
}

const MAX_DOCUMENT_CHARS = 64 * 1_048_576

/** The texts of a sequence of JSON objects and arrays, each on one or several lines. */
export async function* jsonTexts(
  chunks: AsyncIterable<string>,
): AsyncGenerator<({ line: number; text: string } | Rejection)[]> {
  let text = ''
  let [at, depth, start, line, startLine] = [0, 0, -1, 1, 1]
  let isInString = false
  for await (const chunk of notEmpty(chunks, 'JSON objects')) {
    text += chunk
    const texts: { line: number; text: string }[] = []
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
        texts.push({ line: startLine, text: text.slice(start, at + 1) })
        start = -1
      } else if (depth === 0 && !/[\s,]/.test(c)) throw new FileError(`Line ${line} is not a JSON object.`)
    }
    const kept = start < 0 ? at : start
    text = text.slice(kept)
    at -= kept
    if (start >= 0) start = 0
    if (text.length > MAX_DOCUMENT_CHARS)
      throw new FileError(
        `The JSON value that starts at line ${startLine} is longer than 64 MiB. A closing bracket may be missing.`,
      )
    yield texts
  }
  if (start >= 0) yield [{ line: startLine, column: null, reason: 'the JSON value that starts here is incomplete' }]
}
