import { ExactNumber } from '../amount.ts'
import { type Query, toSearch } from '../router.ts'
import { dataKey } from '../session.ts'
import { credentials, Problem, WITH_COOKIE } from './request.ts'

/** A file below /v1/export. */
type CsvExport = { export: string; query: Query; name: string }
/** A list of one of the APIs with its filters, read page by page. */
type CsvList = { api: 'admin' | 'data'; path: string; query: Query; name: string }
/** Rows that the page already has. */
type CsvRows = { rows: object[]; name: string }
export type CsvSource = CsvExport | CsvList | CsvRows

const PAGE_SIZE = 100
/** For more rows there is `kontor export` and GET /v1/export. */
const MAX_PAGES = 100

/** Saves the whole list as the server writes it. Returns false if the list was too long and was cut. */
export async function saveCsv(source: CsvSource): Promise<boolean> {
  if ('path' in source) return saveList(source)
  if ('export' in source) await saveExport(source)
  else save([toCsv(source.rows)], source.name)
  return true
}

async function saveExport({ export: table, query, name }: CsvExport): Promise<void> {
  const response = await readCsv(dataKey(), `/v1/export/${table}`, { ...query, format: 'csv' })
  save([await response.blob()], name)
}

async function saveList({ api, path, query, name }: CsvList): Promise<boolean> {
  const key = api === 'admin' ? WITH_COOKIE : dataKey()
  const base = api === 'admin' ? '/admin/v1' : '/v1'
  const parts: string[] = []
  let cursor: string | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const response = await readCsv(key, base + path, { ...query, cursor })
    const text = await response.text()
    // Every page repeats the header.
    parts.push(page === 0 ? text : text.slice(text.indexOf('\n') + 1))
    cursor = response.headers.get('x-next-cursor')
    if (cursor === null) break
  }
  save(parts, name)
  return cursor === null
}

/** Paged lists are read with the largest page size. */
export function withPageSize(source: CsvSource): CsvSource {
  return 'path' in source ? { ...source, query: { ...source.query, limit: PAGE_SIZE } } : source
}

function toCsv(rows: object[]): string {
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))]
  const lines = rows.map(row => names.map(name => toCell((row as Record<string, unknown>)[name])))
  return [names, ...lines].map(cells => `${cells.join(',')}\r\n`).join('')
}

// As in the server's CSV, see src/domain/csv.ts.
const FORMULA_START = /^(?=[-=+@\t\r\n＝＋－＠])|(?<=[;\t\r\n])(?=[-=+@＝＋－＠])/g

/** A value that a spreadsheet would run as a formula gets an apostrophe. */
function toCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  const isPlain = typeof value !== 'object' || value instanceof ExactNumber
  const text = isPlain ? String(value) : JSON.stringify(value)
  const safe = /^-[\d.]+$/.test(text) ? text : text.replace(FORMULA_START, "'")
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

async function readCsv(key: string, path: string, query: Query): Promise<Response> {
  const response = await fetch(path + toSearch(query), {
    headers: { ...credentials(key).headers, accept: 'text/csv' },
    credentials: credentials(key).credentials,
    cache: 'no-store',
  })
  const isCsv = /csv/.test(response.headers.get('content-type') ?? '')
  if (!response.ok || !isCsv)
    throw new Problem({ status: response.status, title: response.statusText || 'Not available as CSV' })
  return response
}

function save(parts: BlobPart[], name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(parts, { type: 'text/csv' }))
  link.download = `${name}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
}
