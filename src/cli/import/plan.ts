import { readFile } from 'node:fs/promises'
import { csvRows } from '../../import/csv.ts'
import { EVENT_FIELDS, eventReading } from '../../import/events.ts'
import { type Input, openInput } from '../../import/input.ts'
import { columnsOf, type Mapping, readMapping } from '../../import/mapping.ts'
import { ndjsonRows } from '../../import/ndjson.ts'
import { PRESETS, type Preset } from '../../import/presets/presets.ts'
import { RECORD_FIELDS, recordReading } from '../../import/records.ts'
import { FileFault, type Reading, type Rejection, type Row } from '../../import/row.ts'
import { UsageError } from '../errors.ts'

/** A file, how to read it, and the options that distinguish this import from other imports of the same file. */
export type Plan = {
  input: Input
  rows: AsyncIterable<(Row | Rejection)[]>
  reading: Reading
  identity: unknown
}

type Table = 'products' | 'contacts' | 'orders' | 'events'
type PlanOptions = { format?: string | undefined; preset?: string | undefined; map?: string | undefined }

export async function planOf(
  file: string,
  table: Table,
  { format, preset: name, map }: PlanOptions,
): Promise<Plan> {
  if (name !== undefined && map !== undefined)
    throw new UsageError('Give either --preset or --map, not both.')
  const preset = name === undefined ? null : PRESETS[name]!
  if (preset && format === 'ndjson') throw new UsageError('--preset requires a CSV file.')
  const mapText = map === undefined ? null : await readFile(map, 'utf8').catch(() => noFile(map))
  const fields = table === 'events' ? EVENT_FIELDS : RECORD_FIELDS
  const mapping = mapText === null ? null : readMapping(mapText, fields)
  const input = await openInput(file, new Date())
  const check = (columns: string[]) => checkColumns(columns, { table, preset, mapping })
  const isCsv = format === 'csv' || preset !== null || (format === undefined && /\.csv$/i.test(file))
  const isJson = format === 'ndjson' || (format === undefined && /\.(ndjson|jsonl|json)$/i.test(file))
  const chunks = input.chunks()
  const rows = isCsv ? csvRows(chunks, check) : isJson ? ndjsonRows(chunks) : rowsOfEither(chunks, check)
  return {
    input,
    rows,
    reading: readingOf(table, { preset, mapping, input }),
    identity: [table, name, mapText],
  }
}

function noFile(path: string): never {
  throw new FileFault(`There is no file ${path}.`)
}

type How = { preset: Preset | null; mapping: Mapping | null }

function readingOf(table: Table, { preset, mapping, input }: How & { input: Input }): Reading {
  if (preset) return preset.reading(input.time)
  const how = { mapping, time: input.time }
  if (table === 'events') return eventReading(how)
  return recordReading(table === 'products' ? 'product' : table === 'contacts' ? 'contact' : 'order', how)
}

/** JSON starts with a brace; a column name hardly ever does. */
async function* rowsOfEither(
  chunks: AsyncGenerator<string>,
  check: (columns: string[]) => void,
): AsyncGenerator<(Row | Rejection)[]> {
  const first = await chunks.next()
  const begin = first.done ? '' : first.value
  async function* all(): AsyncGenerator<string> {
    yield begin
    yield* chunks
  }
  yield* begin.trimStart().startsWith('{') ? ndjsonRows(all()) : csvRows(all(), check)
}

/** Fails before the import starts if a column is missing, because every row would be rejected or a misspelled column ignored. */
function checkColumns(columns: string[], { table, preset, mapping }: How & { table: Table }): void {
  const required = preset
    ? preset.columns
    : mapping
      ? columnsOf(mapping)
      : table === 'events'
        ? ['event_type']
        : ['id', 'sourceUpdatedAt']
  if (!preset && !mapping) refuseBothFieldAndObject(columns)
  const missing = required
    .filter(names => ![names].flat().some(name => columns.includes(name)))
    .map(names => [names].flat()[0]!)
  if (missing.length === 0) return
  const named = missing.map(name => JSON.stringify(name)).join(', ')
  const why = preset
    ? 'This is not the export format of the preset.'
    : mapping
      ? 'The map uses it. Check its spelling.'
      : 'Use a map file (--map) to name the column; "sourceUpdatedAt": "now" uses the time of the file.'
  throw new FileFault(`The file has no column ${named}. ${why}`)
}

/** A field cannot have both a value and nested fields: one of them would be lost. */
function refuseBothFieldAndObject(columns: string[]): void {
  const all = new Set(columns)
  for (const inner of columns) {
    const name = prefixesOf(inner).find(prefix => all.has(prefix))
    if (name === undefined) continue
    const [field, object] = [name, inner].map(text => JSON.stringify(text))
    throw new FileFault(
      `The columns ${field} and ${object} conflict: ${field} cannot have both a value and nested fields. Rename one, or use a map file (--map).`,
    )
  }
}

/** `a.b.c` has the prefixes `a` and `a.b`. */
function prefixesOf(name: string): string[] {
  const prefixes: string[] = []
  for (let i = name.indexOf('.', 1); i >= 0; i = name.indexOf('.', i + 1)) prefixes.push(name.slice(0, i))
  return prefixes
}
