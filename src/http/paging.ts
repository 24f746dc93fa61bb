import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { csvLine } from '../domain/csv.ts'
import { isUuid } from '../domain/ids.ts'
import { isObject, storableText } from '../domain/json/json.ts'
import { NullableText } from '../domain/shapes.ts'
import { parseTimestamp } from '../domain/time.ts'
import { endIn, momentIn, UTC, WHOLE_DAY_UTC } from '../domain/time-zone.ts'
import { type Static, type TSchema, Type } from '../domain/typebox.ts'
import { csvText } from '../reports/export/export.ts'
import type { Column } from '../reports/export/tables.ts'
import type { TimePage } from '../store/events/events.ts'
import { type Problem, problems } from './problems.ts'

const MAX_LIMIT = 100

/** The query parameters of a list that is read page by page. */
export const pageParameters = {
  limit: Type.Integer({ minimum: 1, default: 50, description: 'Number of rows; values above 100 are treated as 100' }),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the previous page' })),
}

/** A list that is read page by page: next_cursor is null on the last page. */
export const PagedList = <Item extends TSchema>(item: Item) =>
  Type.Object({ results: Type.Array(item), next_cursor: NullableText })

type Page<Row> = { rows: Row[]; limit: number; hasMore: boolean; nextCursor: string | null }

/** The maximum number of rows of a page. */
export function rowLimit({ limit }: { limit: number }): number {
  return Math.min(limit, MAX_LIMIT)
}

/** Reads one row more than the page shows, to find out whether there is another page. */
export async function readPage<Row>(
  query: { limit: number },
  read: (limit: number) => Promise<Row[]>,
  cursorOf: (last: Row) => string[],
): Promise<Page<Row>> {
  const limit = rowLimit(query)
  const found = await read(limit + 1)
  const rows = found.slice(0, limit)
  const hasMore = found.length > limit
  const last = rows.at(-1)
  return { rows, limit, hasMore, nextCursor: hasMore && last ? encodeCursor(cursorOf(last)) : null }
}

export function pageBody<Row>({ rows, nextCursor }: Page<Row>) {
  return { results: rows, next_cursor: nextCursor }
}

/** Encodes where a page ended. Opaque to clients. */
export function encodeCursor(parts: string[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

type PartCheck = (part: string) => boolean

/** The parts of a cursor, each validated with its check; null if no cursor was sent. */
export function decodeCursor<Checks extends PartCheck[]>(
  cursor: string | undefined,
  ...checks: Checks
): { [Index in keyof Checks]: string } | null {
  if (cursor === undefined) return null
  const parts = parseCursor(cursor)
  if (parts?.length === checks.length && checks.every((isValid, index) => isValid(parts[index]!)))
    return parts as { [Index in keyof Checks]: string }
  throw invalidCursor()
}

export function invalidCursor(): Problem {
  const message =
    'is invalid. Use next_cursor of the previous page of this list, or omit cursor to start with the first page'
  return problems.invalid([{ pointer: '/cursor', message }])
}

function parseCursor(cursor: string): string[] | null {
  try {
    const decoded: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(decoded) && decoded.every(part => typeof part === 'string') ? decoded : null
  } catch {
    return null
  }
}

export function isTimestamp(part: string): boolean {
  return parseTimestamp(part) !== null
}

/** The cursor of a list that is ordered by a time and an id. */
export function decodeTimeCursor(cursor: string | undefined): { at: Date; id: string } | null {
  const parts = decodeCursor(cursor, isTimestamp, isUuid)
  return parts && { at: parseTimestamp(parts[0])!, id: parts[1] }
}

/** The query parameters of GET /v1/events and GET /v1/conversions. */
export const TimeQuery = Type.Object({
  limit: pageParameters.limit,
  offset: Type.Integer({ minimum: 0, default: 0, description: 'Number of rows to skip; prefer cursor' }),
  cursor: Type.Optional(
    Type.String({ description: 'next_cursor of the previous page. Faster than offset on later pages.' }),
  ),
  event_type: Type.Optional(Type.String({ description: 'Exact event type' })),
  since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive lower bound of occurred_at' })),
  until: Type.Optional(
    Type.String({ format: 'timestamp', description: `Inclusive upper bound of occurred_at. ${WHOLE_DAY_UTC}` }),
  ),
})

export const TimeList = <Item extends TSchema>(item: Item) =>
  Type.Object({
    results: Type.Array(item),
    limit: Type.Integer(),
    offset: Type.Integer(),
    has_more: Type.Boolean(),
    next_cursor: NullableText,
  })

/** Some rows of a page. `isCut`: there may be more, which are read after these are sent. */
type Portion<Row> = { rows: Row[]; isCut: boolean }

export type ListOfPortions<Row> = {
  limit: number
  /** Reads at most `limit` rows after this one. */
  read(limit: number, after: Row | null): Promise<Portion<Row>>
  /** A row as JSON. */
  text(row: Row): string
  /** The parts of a cursor that continues after this row. */
  placeOf(row: Row): string[]
  /** The JSON after the rows; the cursor is null on the last page. */
  end(cursor: string | null): string
}

/** A list as JSON, or as CSV with `Accept: text/csv`. */
export async function sendList<Row>(
  request: FastifyRequest,
  reply: FastifyReply,
  list: ListOfPortions<Row>,
  columns: Column<Row>[],
): Promise<FastifyReply> {
  const { read } = list
  // The first portion is read in the fair-queue slot of the request. It ends when the response starts, so each later portion takes its own.
  const queued: typeof list = {
    ...list,
    read: (limit, after) => (after ? request.inReadQueue(() => read(limit, after)) : read(limit, null)),
  }
  return wantsCsv(request) ? csvList(reply, queued, columns) : sendJson(reply, await portionedList(queued))
}

/** The JSON of a list. A large page is a stream of portions and is never held in memory as a whole. */
async function portionedList<Row>(list: ListOfPortions<Row>): Promise<string | Readable> {
  const { limit, read, text, end, placeOf } = list
  // One row more than the page shows, to find out whether there is another page.
  const first = await read(limit + 1, null)
  if (first.isCut) return Readable.from(streamedList(list, first), { objectMode: true, highWaterMark: 1 })
  const rows = first.rows.slice(0, limit)
  const cursor = first.rows.length > limit ? encodeCursor(placeOf(rows.at(-1)!)) : null
  return `${LIST_BEGIN}${rows.map(text).join(',')}${end(cursor)}`
}

/** The same rows as CSV. The cursor of the next page is in the header `x-next-cursor`, unless the page is a large one. */
async function csvList<Row>(
  reply: FastifyReply,
  { limit, read, placeOf }: ListOfPortions<Row>,
  columns: Column<Row>[],
): Promise<FastifyReply> {
  const lines = (rows: Row[]) => rows.map(row => csvLine(columns.map(({ of }) => csvText(of(row))))).join('')
  const first = await read(limit + 1, null)
  const hasMore = !first.isCut && first.rows.length > limit
  if (hasMore) reply.header('x-next-cursor', encodeCursor(placeOf(first.rows[limit - 1]!)))
  async function* text(): AsyncGenerator<string> {
    yield csvLine(columns.map(({ name }) => name))
    for (let [portion, shown] = [first, 0]; ; ) {
      const rows = portion.rows.slice(0, limit - shown)
      yield lines(rows)
      shown += rows.length
      if (!portion.isCut || rows.length === 0 || shown === limit) return
      portion = await read(limit - shown, rows.at(-1)!)
    }
  }
  reply.header('content-type', 'text/csv; charset=utf-8')
  return reply.send(Readable.from(text(), { objectMode: true, highWaterMark: 1 }))
}

const LIST_BEGIN = '{"results":['

async function* streamedList<Row>(
  { limit, read, text, end, placeOf }: ListOfPortions<Row>,
  first: Portion<Row>,
): AsyncGenerator<string> {
  yield LIST_BEGIN
  let last: Row | undefined
  let shown = 0
  let portion = first
  while (portion.rows.length > 0) {
    const count = portion.rows.length
    for (const row of portion.rows) {
      if (shown === limit) return yield end(encodeCursor(placeOf(last!)))
      yield shown === 0 ? text(row) : `,${text(row)}`
      last = row
      shown++
    }
    if (!portion.isCut) break
    // Not all remaining rows: the query would add up their sizes again for every portion.
    const left = limit + 1 - shown
    const most = Math.min(left, 2 * count)
    const { rows, isCut } = await read(most, last!)
    portion = { rows, isCut: isCut || (rows.length === most && most < left) }
  }
  yield end(null)
}

type TimeRow = { occurredAt: Date; id: string }

/** A list by time, newest first; `text` converts a row to JSON. */
export function timeList<Row extends TimeRow>(
  query: Static<typeof TimeQuery>,
  read: (page: TimePage) => Promise<Portion<Row>>,
  text: (row: Row) => string,
): ListOfPortions<Row> {
  const page = timePage(query)
  return {
    limit: rowLimit(query),
    read: (limit, after) => read(after ? { ...page, offset: 0, after, limit } : { ...page, limit }),
    text,
    placeOf: ({ occurredAt, id }) => [occurredAt.toISOString(), id],
    end: cursor =>
      `],"limit":${rowLimit(query)},"offset":${page.offset},"has_more":${cursor !== null},"next_cursor":${JSON.stringify(cursor)}}`,
  }
}

/** Dates without a time are whole days, in UTC unless the route has a time zone. */
export function timeWindow(query: { since?: string; until?: string }, zone: string = UTC) {
  const [since, until] = [momentIn(zone, query.since), endIn(zone, query.until)]
  requireOrder(since, until)
  return { since, until }
}

/** Rejects a window that ends before it starts. */
export function requireOrder(start: Date | null, end: Date | null, [first, last] = ['since', 'until']): void {
  if (start && end && start > end)
    throw problems.invalid([{ pointer: `/${first}`, message: `must not be after ${last}` }])
}

function timePage(query: Static<typeof TimeQuery>): Omit<TimePage, 'limit'> {
  const { since, until } = timeWindow(query)
  const after = decodeTimeCursor(query.cursor)
  return {
    offset: after ? 0 : Math.min(query.offset, Number.MAX_SAFE_INTEGER),
    since,
    until,
    eventType: query.event_type === undefined ? null : storableText(query.event_type),
    after: after && { occurredAt: after.at, id: after.id },
  }
}

/** Sends text that is already JSON. */
export function sendJson(reply: FastifyReply, text: string | Readable): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(text)
}

export function wantsCsv(request: FastifyRequest): boolean {
  return /\btext\/csv\b/i.test(request.headers.accept ?? '')
}

/** An onSend hook for small lists that are not streamed: with `Accept: text/csv`, sends their rows as CSV. */
export async function listsAsCsv(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  if (!wantsCsv(request) || reply.statusCode !== 200 || typeof payload !== 'string') return payload
  const body: unknown = JSON.parse(payload)
  const rows = isObject(body) ? body.results : body
  if (!Array.isArray(rows) || !rows.every(isObject)) return payload
  reply.header('content-type', 'text/csv; charset=utf-8')
  if (isObject(body) && typeof body.next_cursor === 'string') reply.header('x-next-cursor', body.next_cursor)
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))]
  const lines = rows.map(row => csvLine(names.map(name => cellText(row[name]))))
  return [csvLine(names), ...lines].join('')
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : csvText(value as string | number | boolean)
}
