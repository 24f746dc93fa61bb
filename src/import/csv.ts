import { once } from 'node:events'
import { parse } from 'csv-parse'
import { FileFault, type Rejection, type Row } from './row.ts'

// An unclosed quote would turn the rest of the file into one cell.
const MAX_ROW_BYTES = 8 * 1_048_576
// A file with more columns is not a table, and looking up its columns would be slow.
const MAX_COLUMNS = 10_000
const OTHER_DELIMITERS: [RegExp, string][] = [
  [/;/, 'semicolons'],
  [/\t/, 'tabs'],
  [/\|/, 'bars'],
]

type Parsed = { record: string[]; raw: string }

/**
 * Reads the rows of a CSV file; the first line names the columns. An empty cell omits its field. Stray quotes belong to their
 * cell. A row whose number of cells differs from the number of columns is rejected.
 */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  checkHeader: (columns: string[]) => void,
): AsyncGenerator<(Row | Rejection)[]> {
  const parser = parse({
    raw: true,
    relax_quotes: true,
    relax_column_count: true,
    bom: true,
    max_record_size: MAX_ROW_BYTES,
  })
  let parsed: Parsed[] = []
  let fault: (Error & { code?: string }) | null = null
  // the 'error' listener below records errors
  const ended = once(parser, 'close').catch(() => undefined)
  parser.on('data', record => parsed.push(record as Parsed))
  parser.on('error', error => {
    fault = error
  })
  const rows = rowReader(checkHeader)
  const take = () => {
    const taken = rows.of(parsed)
    parsed = []
    if (fault) throw rows.fault(fault)
    return taken
  }
  for await (const chunk of chunks) {
    await new Promise<void>(resolve => parser.write(chunk, () => resolve()))
    yield take()
  }
  parser.end()
  await ended
  yield take()
  if (!rows.hasHeader()) throw new FileFault('The file is empty. Its first line must name the columns.')
}

function rowReader(checkHeader: (columns: string[]) => void) {
  let columns: string[] | null = null
  let line = 1

  function read({ record, raw }: Parsed): Row | Rejection | null {
    const begin = line
    line += 1 + newlinesIn(raw)
    if (record.length === 1 && record[0] === '') return null
    if (columns === null) {
      columns = headerOf(record)
      checkHeader(columns)
      return null
    }
    if (record.length !== columns.length)
      return {
        line: begin,
        column: null,
        reason: `has ${record.length} cells, but the file has ${columns.length} columns`,
      }
    return { line: begin, cells: cellsOf(columns, record) }
  }

  return {
    of: (parsed: Parsed[]) => parsed.flatMap(record => read(record) ?? []),
    hasHeader: () => columns !== null,
    fault({ code, message }: Error & { code?: string }): FileFault {
      if (code === 'CSV_QUOTE_NOT_CLOSED')
        return new FileFault(`The row at line ${line} contains an unclosed quote.`)
      if (code === 'CSV_MAX_RECORD_SIZE')
        return new FileFault(
          `The row at line ${line} is longer than 8 MiB. It may contain an unclosed quote.`,
        )
      return new FileFault(`The row at line ${line} cannot be read: ${message}`)
    },
  }
}

function headerOf(cells: string[]): string[] {
  const columns = cells.map(cell => cell.trim())
  const [other] = OTHER_DELIMITERS.filter(([pattern]) => columns.length === 1 && pattern.test(columns[0]!))
  if (other)
    throw new FileFault(
      `The columns are separated by ${other[1]}. Save the file with commas as separators.`,
    )
  if (columns.length > MAX_COLUMNS)
    throw new FileFault(`The file has ${columns.length} columns. At most ${MAX_COLUMNS} are allowed.`)
  const seen = new Set<string>()
  for (const name of columns) {
    if (name !== '' && seen.has(name)) throw new FileFault(`The file has two columns named ${JSON.stringify(name)}.`)
    seen.add(name)
  }
  return columns
}

function cellsOf(columns: string[], record: string[]): Record<string, string> {
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
