import { type Query, searchOf } from '../query.ts'
import { adminKey, dataKey } from '../session.ts'
import { credentials, Problem } from './request.ts'

/** A list of one of the APIs, with its filters. */
export type CsvSource = { api: 'admin' | 'data'; path: string; query: Query; name: string }

const AT_A_TIME = 100
/** Whoever wants more than this exports: `kontor export`, or GET /v1/export. */
const MOST_PAGES = 100

/** Saves the whole list as a file, as the server writes it. False: it was too long, and its beginning was saved. */
export async function saveCsv({ api, path, query, name }: CsvSource): Promise<boolean> {
  const key = api === 'admin' ? adminKey() : await dataKey()
  const base = api === 'admin' ? '/admin/v1' : '/v1'
  const parts: string[] = []
  let cursor: string | null = null
  for (let page = 0; page < MOST_PAGES; page++) {
    const { text, next } = await readPage(key, base + path, { ...query, cursor })
    // The names of the columns stand in every page.
    parts.push(page === 0 ? text : text.slice(text.indexOf('\n') + 1))
    cursor = next
    if (cursor === null) break
  }
  save(parts.join(''), name)
  return cursor === null
}

/** Lists that go on page by page take as many rows at a time as they may. */
export function byPages(query: Query): Query {
  return { ...query, limit: AT_A_TIME }
}

async function readPage(
  key: string,
  path: string,
  query: Query,
): Promise<{ text: string; next: string | null }> {
  const response = await fetch(path + searchOf(query), {
    headers: { ...credentials(key).headers, accept: 'text/csv' },
    credentials: credentials(key).credentials,
    cache: 'no-store',
  })
  const isCsv = /csv/.test(response.headers.get('content-type') ?? '')
  if (!response.ok || !isCsv)
    throw new Problem({ status: response.status, title: response.statusText || 'Not as CSV' })
  return { text: await response.text(), next: response.headers.get('x-next-cursor') }
}

function save(text: string, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  link.download = `${name}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
}
