import { csvLine } from '../../domain/csv.ts'
import type { Db } from '../../postgres/database.ts'
import type { Window } from '../../store/export/pages.ts'
import type { Cell, Table } from './tables.ts'

export const FORMATS = ['ndjson', 'csv', 'parquet'] as const
export type Format = (typeof FORMATS)[number]

export const CONTENT_TYPES: Record<Format, string> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
}

type Export<Row> = { table: Table<Row>; window: Window; format: Format; onRows?: (count: number) => void }

/** A whole table as a file, in chunks. Only a few batches of rows are in memory at a time. */
export function exportBytes<Row>(
  db: Db,
  tenantId: number,
  { table, window, format, onRows }: Export<Row>,
): AsyncGenerator<Uint8Array> {
  const { columns, text, pages } = table
  const all = counted(pages(db, tenantId, window), onRows)
  switch (format) {
    case 'ndjson':
      return textBytes('', rows => `${rows.map(text).join('\n')}\n`, all)
    case 'csv':
      return textBytes(
        csvLine(columns.map(({ name }) => name)),
        rows => rows.map(row => csvLine(columns.map(({ of }) => csvText(of(row))))).join(''),
        all,
      )
    case 'parquet':
      return lazily(async () => (await import('./parquet.ts')).parquetBytes(columns, all))
  }
}

async function* counted<Row>(pages: AsyncIterable<Row[]>, onRows?: (count: number) => void): AsyncGenerator<Row[]> {
  for await (const rows of pages) {
    if (rows.length === 0) continue
    onRows?.(rows.length)
    yield rows
  }
}

async function* textBytes<Row>(
  begin: string,
  write: (rows: Row[]) => string,
  pages: AsyncIterable<Row[]>,
): AsyncGenerator<Uint8Array> {
  if (begin !== '') yield Buffer.from(begin)
  for await (const rows of pages) yield Buffer.from(write(rows))
}

async function* lazily<T>(open: () => Promise<AsyncGenerator<T>>): AsyncGenerator<T> {
  yield* await open()
}

export function csvText(cell: Cell): string {
  if (cell === null || cell === undefined) return ''
  return cell instanceof Date ? cell.toISOString() : String(cell)
}
