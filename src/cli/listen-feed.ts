import { setTimeout as pause } from 'node:timers/promises'
import { EmbeddedError } from '../../embedded-postgres/cluster.ts'
import { AdminError, notFound } from '../admin/error.ts'
import { remoteServer } from '../config/remote.ts'
import { isUnavailable } from '../postgres/database.ts'
import { type RequestsView, type RequestView, readRequests } from '../reports/inbound-requests.ts'
import { findSource } from '../store/inbound/sources.ts'
import type { Output } from './output.ts'
import { readingDatabase, requireData } from './session.ts'

export type ListenStart = { sourceId: string; since: Date | null; data: string | undefined }

type Following = {
  start: ListenStart
  signal: AbortSignal
  out: Output
  onReady(): void
  /** Called for one request at a time. */
  onRequest(request: RequestView): Promise<void>
}

/** Reads the page after a cursor; null reads the first page. */
type ReadPage = (cursor: string | null) => Promise<RequestsView>

const WAIT_S = 20
const LIMIT = 50
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000

/**
 * Passes on each request of a source exactly once, in order. While the server or the database is unavailable, it retries, and
 * then continues where it stopped.
 */
export async function followRequests({ start, signal, out, onReady, onRequest }: Following): Promise<void> {
  let cursor: string | null = null
  let pauseMs = FIRST_PAUSE_MS
  const follow = async (read: ReadPage) => {
    while (!signal.aborted) {
      const page = await read(cursor)
      if (cursor === null) onReady()
      else if (pauseMs > FIRST_PAUSE_MS) out.say('Reconnected.')
      pauseMs = FIRST_PAUSE_MS
      for (const request of page.results) if (!signal.aborted) await onRequest(request)
      cursor = page.next_cursor
    }
  }
  while (!signal.aborted) {
    try {
      await connect(start, signal, out, follow)
    } catch (error) {
      if (signal.aborted) return
      if (!isPassing(error)) throw error
      if (pauseMs === FIRST_PAUSE_MS) out.say(`Unreachable: ${(error as Error).message}. Retrying.`)
      await pause(pauseMs, null, { signal }).catch(() => {})
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof Away || error instanceof EmbeddedError || isUnavailable(error)
}

async function connect(
  start: ListenStart,
  signal: AbortSignal,
  out: Output,
  work: (read: ReadPage) => Promise<void>,
): Promise<void> {
  const remote = remoteServer()
  if (remote) return work(cursor => pageOverHttp({ ...remote, start, signal, cursor }))
  await requireData(start)
  return readingDatabase(start, out, async ({ pool }) => {
    const source = await findSource(pool, start.sourceId)
    if (!source) throw notFound('source', start.sourceId)
    const of = { tenantId: source.tenantId, sourceId: source.id }
    const begin = { since: start.since, cursor: null, limit: LIMIT, waitMs: 0 }
    const goOn = { since: null, limit: LIMIT, waitMs: WAIT_S * 1000 }
    await work(cursor => readRequests(pool, of, cursor === null ? begin : { ...goOn, cursor }, signal))
  })
}

class Away extends Error {
  override name = 'Away'
}

type PageOverHttp = {
  url: string
  key: string
  start: ListenStart
  signal: AbortSignal
  cursor: string | null
}

async function pageOverHttp({ url, key, start, signal, cursor }: PageOverHttp): Promise<RequestsView> {
  const address = new URL(`${url}/v1/sources/${encodeURIComponent(start.sourceId)}/requests?limit=${LIMIT}`)
  if (cursor !== null) address.searchParams.set('cursor', cursor)
  else if (start.since) address.searchParams.set('since', start.since.toISOString())
  if (cursor !== null) address.searchParams.set('wait', String(WAIT_S))
  const response = await fetch(address, { headers: { authorization: `Bearer ${key}` }, signal }).catch(
    ({ message, cause }: Error) => {
      throw new Away((cause as Error | undefined)?.message || message)
    },
  )
  if (response.status === 429 || response.status >= 500) {
    await response.body?.cancel()
    throw new Away(`${url} answered ${response.status}`)
  }
  const text = await response.text().catch(({ message }: Error) => {
    throw new Away(message)
  })
  if (response.ok) return JSON.parse(text) as RequestsView
  throw new AdminError('forbidden', 'refused', `${url} answered ${response.status}: ${detailOf(text)}`)
}

function detailOf(text: string): string {
  try {
    return (JSON.parse(text) as { detail?: string }).detail ?? text.slice(0, 200)
  } catch {
    return text.slice(0, 200)
  }
}
