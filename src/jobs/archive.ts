import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { HOUR_MS } from '../domain/time.ts'
import { inTransaction } from '../postgres/database.ts'
import { type Column, EVENT_COLUMNS } from '../reports/export/columns.ts'
import {
  archiveState,
  leaseArchive,
  markWritten,
  nextFile,
  type PlannedFile,
  planFiles,
  recordArchiveFailure,
  releaseArchive,
} from '../store/archive/archive.ts'
import { type EventRow, loadEvents } from '../store/events/events.ts'
import type { Storage } from './archive-storage.ts'

const READ_AT_A_TIME = 1_000
const MAX_BACKOFF_MS = 60_000
// A stop waits so long for the last files; what is not written by then is written by whoever starts next.
const LAST_FLUSH_MS = 5_000

type ArchiveOptions = {
  pool: pg.Pool
  storage: Storage
  /** Files are closed at least so often. */
  flushMs: number
  logger: { warn(facts: object, message: string): void }
}

/** Writes what took effect to files, one node at a time. */
export function startArchive(options: ArchiveOptions): { stop(): Promise<void> } {
  const { pool, flushMs, logger } = options
  const owner = randomUUID()
  const stopping = new AbortController()

  async function flushAgainAndAgain(): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      const waitMs = failures > 0 ? Math.min(MAX_BACKOFF_MS, 1_000 * 2 ** failures) : flushMs
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
      failures = (await flush()) ? 0 : failures + 1
    }
  }

  async function flush(): Promise<boolean> {
    try {
      await flushArchive({ ...options, owner })
      return true
    } catch (error) {
      logger.warn({ err: error }, 'the archive could not be written and will be tried again')
      await recordArchiveFailure(pool, wordsOf(error)).catch(() => {})
      return false
    }
  }

  const running = flushAgainAndAgain()
  return {
    async stop() {
      stopping.abort()
      await Promise.race([running, sleep(LAST_FLUSH_MS, undefined, { ref: false })])
    },
  }
}

/**
 * Everything that waits goes into files. What a file holds is decided and committed before it is written, under a name that is
 * decided with it: whoever dies in between, the next one writes the same file over it, and each row stands in one file.
 */
export async function flushArchive({
  pool,
  storage,
  owner,
}: Pick<ArchiveOptions, 'pool' | 'storage'> & { owner: string }): Promise<void> {
  if (!(await archiveState(pool)).enabled || !(await leaseArchive(pool, owner))) return
  try {
    do {
      for (let file = await nextFile(pool); file !== null; file = await nextFile(pool)) {
        const { rows, bytes } = await encode(pool, file)
        if (rows > 0) await storage.put(pathOf(file), bytes)
        await markWritten(pool, file.id, { rows, bytes: bytes.length })
        if (!(await leaseArchive(pool, owner))) return
      }
    } while ((await inTransaction(pool, planFiles)) > 0)
    await recordArchiveFailure(pool, null)
  } finally {
    await releaseArchive(pool, owner)
  }
}

/** As DuckDB, Spark and ClickHouse read it: each folder names a column and its value. */
function pathOf({ id, tenantId, what, hour }: PlannedFile): string {
  const at = hour.toISOString()
  return `tenant=${publicTenantId(tenantId)}/table=${what}/date=${at.slice(0, 10)}/hour=${at.slice(11, 13)}/${id}.parquet`
}

async function encode(pool: pg.Pool, file: PlannedFile): Promise<{ rows: number; bytes: Uint8Array }> {
  let rows = 0
  async function* counted<Row>(pages: AsyncIterable<Row[]>): AsyncGenerator<Row[]> {
    for await (const page of pages) {
      rows += page.length
      yield page
    }
  }
  const { parquetBytes } = await import('../reports/export/parquet.ts')
  const compression = { codec: 'ZSTD' as const, compressors: { ZSTD: zstdCompressSync } }
  const pieces =
    file.what === 'events'
      ? parquetBytes(ARCHIVED_EVENT, counted(eventPages(pool, file)), compression)
      : parquetBytes(ARCHIVED_CONVERSION, counted(conversionPages(file)), compression)
  const bytes: Uint8Array[] = []
  for await (const piece of pieces) bytes.push(piece)
  return { rows, bytes: Buffer.concat(bytes) }
}

const ARCHIVED_EVENT: Column<EventRow>[] = [
  ...EVENT_COLUMNS,
  { name: 'conversion', type: 'boolean', of: row => row.conversion },
]

/** Events that were erased meanwhile are not there any more, and do not get into the file. */
async function* eventPages(pool: pg.Pool, { tenantId, hour, ids, occurredAt }: PlannedFile) {
  const until = new Date(hour.getTime() + HOUR_MS)
  for (let from = 0; from < ids.length; from += READ_AT_A_TIME) {
    const some = ids.slice(from, from + READ_AT_A_TIME)
    const rows = await loadEvents(pool, tenantId, {
      ...{ ids: some, since: hour, until },
      occurredAt: occurredAt.slice(from, from + READ_AT_A_TIME),
    })
    const byId = new Map(rows.map(row => [row.id, row]))
    yield some.flatMap(id => byId.get(id) ?? [])
  }
}

type ConversionBody = Record<string, string | number | null>

const TYPES: Record<string, Column<ConversionBody>['type']> = {
  change: 'text',
  changed_at: 'timestamp',
  id: 'text',
  occurred_at: 'timestamp',
  conversion_type: 'text',
  event_type: 'text',
  source: 'text',
  source_object_id: 'text',
  amount: 'number',
  currency: 'text',
  visitor: 'text',
  profile_id: 'text',
  contact_id: 'text',
  contact_name: 'text',
  contact_email: 'text',
  company_name: 'text',
  integration_id: 'text',
}

const ARCHIVED_CONVERSION = Object.entries(TYPES).map(([name, type]): Column<ConversionBody> => {
  const of = (row: ConversionBody) => row[name] ?? null
  return { name, type, of: type === 'timestamp' ? row => new Date(of(row)!) : of }
})

async function* conversionPages({ bodies }: PlannedFile): AsyncGenerator<ConversionBody[]> {
  for (let from = 0; from < bodies!.length; from += READ_AT_A_TIME)
    yield bodies!.slice(from, from + READ_AT_A_TIME).map(body => JSON.parse(body) as ConversionBody)
}

function wordsOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}
