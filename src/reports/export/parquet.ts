import { ByteWriter, type ColumnSource, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer'
import type { Cell, Column, ColumnType } from './tables.ts'

const TYPES: Record<ColumnType, NonNullable<ColumnSource['type']>> = {
  text: 'STRING',
  timestamp: 'TIMESTAMP',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  json: 'STRING',
}

// A row group is held in memory.
const GROUP_ROWS = 20_000
const GROUP_CHARS = 32 * 1_048_576

// Without it, Spark and others read times in the time zone of their session.
const UTC = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' } as const

/** Default: Snappy. Another codec needs its compressor. */
type Compression = Pick<ConstructorParameters<typeof ParquetWriter>[0], 'codec' | 'compressors'>

/** A Parquet file, row group by row group. JSON values are strings, because every reader has functions to parse them. */
export async function* parquetBytes<Row>(
  columns: Column<Row>[],
  pages: AsyncIterable<Row[]>,
  compression: Compression = {},
): AsyncGenerator<Uint8Array> {
  const writer = new ByteWriter()
  const sources = (data: Cell[][]) =>
    columns.map(({ name, type }, i): ColumnSource => ({ name, type: TYPES[type], data: data[i] as never }))
  const empty = () => columns.map((): Cell[] => [])
  const schema = schemaFromColumnData({ columnData: sources(empty()) }).map(element =>
    element.converted_type === 'TIMESTAMP_MILLIS' ? { ...element, logical_type: UTC } : element,
  )
  const file = new ParquetWriter({ writer, schema, ...compression })
  let data = empty()
  let chars = 0
  const takeBytes = () => {
    const bytes = writer.getBytes().slice()
    writer.index = 0
    return bytes
  }
  const writeGroup = async () => {
    await file.write({ columnData: sources(data), rowGroupSize: GROUP_ROWS * 2 })
    data = empty()
    chars = 0
    return takeBytes()
  }
  for await (const rows of pages) {
    for (const row of rows) {
      for (const [i, column] of columns.entries()) {
        const cell = toCell(column, row)
        data[i]!.push(cell)
        if (typeof cell === 'string') chars += cell.length
      }
    }
    if (data[0]!.length >= GROUP_ROWS || chars >= GROUP_CHARS) yield await writeGroup()
  }
  if (data[0]!.length > 0) yield await writeGroup()
  await file.finish()
  yield takeBytes()
}

function toCell<Row>({ type, of }: Column<Row>, row: Row): Cell {
  const cell = of(row)
  return type === 'number' && typeof cell === 'string' ? Number(cell) : (cell ?? null)
}
