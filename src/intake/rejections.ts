import type pg from 'pg'
import { failureCause } from '../domain/entries/entry.ts'
import { hashIdentifier } from '../domain/identity/erasure.ts'
import { IDENTIFIER_KINDS, parseEmail } from '../domain/identity/identifiers.ts'
import { endOfString } from '../domain/json/json.ts'
import { HOUR_MS } from '../domain/time.ts'
import { findSuppressed, findSuppressingTenants } from '../store/identity/suppressions.ts'
import {
  addRejectionCounts,
  insertRejections,
  type RejectionCount,
  type RejectionExample,
  type SourceRejection,
} from '../store/inbound/rejections.ts'

/** Why a request with a known key, or an item of it, was rejected; `example` is called only if it is sampled. */
export type KeyRejection = Pick<RejectionExample, 'tenantId' | 'keyId' | 'route' | 'status' | 'code' | 'detail'> & {
  at: Date
  example(): Pick<RejectionExample, 'ip' | 'userAgent' | 'bytes' | 'body'>
}

/**
 * Samples rejected requests for the operators of a tenant: the first few of each cause per minute are stored, the others are
 * counted. Rows are buffered in memory and written in batches, so that a flood of bad requests costs a few rows per cause.
 */
export type Rejections = {
  recordForKey(rejection: KeyRejection): void
  recordForSource(rejection: Omit<SourceRejection, 'suppressed'>): void
  /** Writes the buffered rows. */
  write(): Promise<void>
}

const WINDOW_MS = 60_000
const KEY_SAMPLE = { perWindow: 5, maxWindows: Infinity, maxRows: 1_000 }
const SOURCE_SAMPLE = { perWindow: 10, maxWindows: 10_000, maxRows: 5_000 }

export function openRejections({ pool, now }: { pool: pg.Pool; now: () => Date }): Rejections {
  const counts = openCauseCounts()
  const examples = openSampler<RejectionExample>(KEY_SAMPLE)
  // The last rejection beyond the sample is stored with the number of those before it.
  const ofSources = openSampler<SourceRejection>({
    ...SOURCE_SAMPLE,
    summarize: (last, beyond) => ({ ...last, suppressed: beyond - 1 }),
  })
  return {
    recordForKey(rejection) {
      const cause = counts.add(rejection)
      const { at, example, ...facts } = rejection
      examples.add(`${facts.tenantId} ${facts.route} ${cause}`, at, () => ({
        ...facts,
        cause,
        rejectedAt: at,
        ...example(),
      }))
    },
    recordForSource(rejection) {
      const { sourceId, code, isAuthenticated, rejectedAt } = rejection
      ofSources.add(`${sourceId} ${code} ${isAuthenticated}`, rejectedAt, () => ({ ...rejection, suppressed: 0 }))
    },
    async write() {
      const moment = now().getTime()
      // Each buffer is emptied right before its insert. If an insert fails, the other buffers keep their rows for the next write.
      const rows = ofSources.take(moment)
      if (rows.length > 0) await insertRejections(pool, rows)
      const counted = counts.take()
      if (counted.length > 0) await addRejectionCounts(pool, counted)
      const shown = examples.take(moment)
      if (shown.length > 0) await insertRejections(pool, await withoutSuppressed(pool, shown))
    },
  }
}

type SampleWindow<Row> = { endsAt: number; kept: number; suppressed: number; last: Row | null }

/** Keeps the first `perWindow` rows of each key per minute. With `summarize`, the others become one row when the minute ends. */
function openSampler<Row>({
  perWindow,
  maxWindows,
  maxRows,
  summarize,
}: {
  perWindow: number
  maxWindows: number
  maxRows: number
  summarize?: (last: Row, suppressed: number) => Row
}) {
  const windows = new Map<string, SampleWindow<Row>>()
  let rows: Row[] = []

  function close(key: string, { last, suppressed }: SampleWindow<Row>): void {
    windows.delete(key)
    if (summarize && last !== null) rows.push(summarize(last, suppressed))
  }

  function findWindow(key: string, at: number): SampleWindow<Row> | null {
    const open = windows.get(key)
    if (open && open.endsAt > at) return open
    if (open) close(key, open)
    if (windows.size >= maxWindows) return null
    const window = { endsAt: at + WINDOW_MS, kept: 0, suppressed: 0, last: null }
    windows.set(key, window)
    return window
  }

  return {
    add(key: string, at: Date, build: () => Row): void {
      const window = findWindow(key, at.getTime())
      if (window === null) return
      if (window.kept < perWindow && rows.length < maxRows) {
        window.kept++
        rows.push(build())
      } else if (summarize) {
        window.suppressed++
        window.last = build()
      }
    },
    /** The rows since the last call; windows that ended before `moment` are closed. */
    take(moment: number): Row[] {
      for (const [key, window] of windows) if (window.endsAt <= moment) close(key, window)
      const taken = rows
      rows = []
      return taken
    },
  }
}

const MAX_COUNTS = 10_000
// Per tenant and hour. A cause contains text from the request: further causes are counted by their code.
const MAX_CAUSES = 50

/** Counts all rejections of keys by hour and cause. */
function openCauseCounts() {
  let counts = new Map<string, RejectionCount>()
  const causes = new Map<number, Set<string>>()
  let causesHour = 0

  function boundedCause({ tenantId, detail, code }: KeyRejection, hour: number): string {
    if (hour !== causesHour) causes.clear()
    causesHour = hour
    const cause = failureCause(detail)
    const known = causes.get(tenantId) ?? new Set()
    causes.set(tenantId, known)
    if (!known.has(cause) && known.size >= MAX_CAUSES) return code
    known.add(cause)
    return cause
  }

  return {
    /** Returns the cause. */
    add(rejection: KeyRejection): string {
      const { tenantId, route, code, at } = rejection
      const hour = Math.floor(at.getTime() / HOUR_MS) * HOUR_MS
      const cause = boundedCause(rejection, hour)
      const key = `${tenantId} ${hour} ${route} ${code} ${cause}`
      const count = counts.get(key)
      if (count) {
        count.count++
        count.lastAt = at
      } else if (counts.size < MAX_COUNTS)
        counts.set(key, {
          ...{ tenantId, hour: new Date(hour), route, code, cause },
          ...{ count: 1, firstAt: at, lastAt: at },
        })
      return cause
    },
    take(): RejectionCount[] {
      const taken = [...counts.values()]
      counts = new Map()
      return taken
    },
  }
}

/** Removes the bodies that may identify a suppressed person. */
async function withoutSuppressed(pool: pg.Pool, examples: RejectionExample[]): Promise<RejectionExample[]> {
  const tenants = await findSuppressingTenants(pool, [...new Set(examples.map(({ tenantId }) => tenantId))])
  const hashes = examples.map(({ tenantId, body }) =>
    tenants.has(tenantId) && body !== null
      ? findIdentifiers(body).map(name => ({ tenantId, hash: hashIdentifier(tenantId, name) }))
      : [],
  )
  const wanted = hashes.flat()
  if (wanted.length === 0) return examples
  const found = await findSuppressed(pool, wanted)
  return examples.map((example, index) => {
    const names = hashes[index]!
    const isNamed = names.some(({ tenantId, hash }) => found.has(`${tenantId} ${hash.toString('hex')}`))
    // The detail may quote the body, the cause does not.
    return isNamed ? { ...example, body: null, detail: example.cause } : example
  })
}

const DELIMITERS = /[\s"'{}[\]:,=&;<>()\\]+/

/** Every string that could be an identifier, as written and unescaped: the body may not even be JSON. */
function findIdentifiers(body: string) {
  const read = unescapeJson(body)
  const values = new Set<string>()
  for (const quoted of listQuoted(body)) values.add(quoted.trim()).add(unescapeJson(quoted).trim())
  // Twice unescaped: JSON may contain JSON.
  for (const text of [body, read, unescapeJson(read)]) for (const word of text.split(DELIMITERS)) values.add(word)
  for (const value of [...values]) {
    const email = parseEmail(value)
    if (email !== null) values.add(email)
  }
  return [...values].flatMap(value => IDENTIFIER_KINDS.map(kind => ({ kind, value })))
}

/** The strings between quotes. */
function* listQuoted(text: string): Generator<string> {
  let from = text.indexOf('"')
  while (from >= 0) {
    const end = endOfString(text, from)
    yield text.slice(from + 1, text.endsWith('"', end) ? end - 1 : end)
    from = text.indexOf('"', end)
  }
}

/** \u0040 is @. */
function unescapeJson(text: string): string {
  return text.replace(/\\(?:u([\da-f]{4})|(.))/gi, (_, code?: string, char = '') =>
    code === undefined ? char : String.fromCharCode(Number.parseInt(code, 16)),
  )
}
