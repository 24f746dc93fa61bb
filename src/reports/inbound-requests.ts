import { isUtf8 } from 'node:buffer'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import type { RejectedItem } from '../domain/events/types.ts'
import {
  endOfRequests,
  extendListening,
  findListenedUntil,
  type InboundRequest,
  listRequests,
  type RequestPosition,
} from '../store/inbound/requests.ts'

/** A request to a source as received. A body that is not UTF-8 is in base64. */
export type RequestView = {
  id: string
  received_at: string
  headers: [string, string][]
  answer: { accepted: number; duplicates: number; deferred: number; rejected: RejectedItem[] }
  body: string
  body_encoding: 'utf-8' | 'base64'
}

/** `next_cursor`: where to continue; always present. */
export type RequestsView = { results: RequestView[]; next_cursor: string }

type RequestsQuery = {
  /** Null without `since`: only requests that arrive from now on. */
  cursor: string | null
  since: Date | null
  limit: number
  /** How long to wait for the first request. */
  waitMs: number
}

// Limit of the bodies of one page. A single body may be larger, up to 8 MiB.
const MAX_BYTES = 4_000_000
const POLL_INTERVAL_MS = 500
// Within two seconds, every node knows that it must store requests of the source.
const KNOWN_AFTER_MS = 2_000

/** The requests of a source in order of arrival. Following the cursor returns each request exactly once. */
export async function readRequests(
  pool: pg.Pool,
  source: { tenantId: number; sourceId: string },
  query: RequestsQuery,
  signal: AbortSignal,
): Promise<RequestsView> {
  await keepListening(pool, source.sourceId, signal)
  const { since, limit } = query
  const until = performance.now() + query.waitMs
  const first = await endOfRequests(pool)
  const after = query.cursor === null ? null : parsePosition(query.cursor, first)
  if (after === null && since === null) return { results: [], next_cursor: formatCursor(first) }
  for (let before = first; ; before = await endOfRequests(pool)) {
    const found = await listRequests(pool, source, { after, before, since, limit, maxBytes: MAX_BYTES })
    const last = found.at(-1)
    if (last) return { results: found.map(requestView), next_cursor: formatCursor(last) }
    const isOver = signal.aborted || performance.now() + POLL_INTERVAL_MS > until
    if (isOver || !(await pause(POLL_INTERVAL_MS, true, { signal }).catch(() => false)))
      return { results: [], next_cursor: formatCursor(before) }
  }
}

/** Extends the time during which all requests of the source are stored. */
async function keepListening(pool: pg.Pool, sourceId: string, signal: AbortSignal): Promise<void> {
  const { left } = await findListenedUntil(pool, sourceId)
  if (left === 'enough') return
  await extendListening(pool, sourceId)
  if (left === 'none') await pause(KNOWN_AFTER_MS, null, { signal }).catch(() => {})
}

const CURSOR = /^(\d{1,20})\.(\d{1,10})$/

export function isRequestCursor(text: string): boolean {
  const [, xid, ord] = CURSOR.exec(text) ?? []
  return xid !== undefined && BigInt(xid) < 2n ** 63n && Number(ord) < 2 ** 31
}

/** A cursor from before a move to another database continues from now. */
function parsePosition(cursor: string, end: RequestPosition): RequestPosition {
  const [, xid, ord] = CURSOR.exec(cursor)!
  return BigInt(xid!) > BigInt(end.xid) ? end : { xid: xid!, ord: Number(ord) }
}

function formatCursor({ xid, ord }: RequestPosition): string {
  return `${xid}.${ord}`
}

function requestView({ id, receivedAt, headers, answer, body }: InboundRequest): RequestView {
  const encoding = isUtf8(body) ? 'utf-8' : 'base64'
  return {
    id,
    received_at: receivedAt.toISOString(),
    headers: JSON.parse(headers),
    answer: JSON.parse(answer),
    body: body.toString(encoding),
    body_encoding: encoding,
  }
}

/** The body as received. */
export function decodeBody({ body, body_encoding }: RequestView): Buffer {
  return Buffer.from(body, body_encoding)
}
