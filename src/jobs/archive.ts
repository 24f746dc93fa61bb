import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { zstdCompressSync } from 'node:zlib'
import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { inTransaction } from '../postgres/database.ts'
import { type Column, EVENT_COLUMNS } from '../reports/export/tables.ts'
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
import { type EventRow, findEvents } from '../store/events/events.ts'

const READ_AT_A_TIME = 1_000
const MAX_BACKOFF_MS = 60_000
// A stop waits this long for the last files. The next process to start writes the rest.
const LAST_FLUSH_MS = 5_000

type ArchiveOptions = {
  pool: pg.Pool
  storage: Storage
  /** Files are written at least this often. */
  flushMs: number
  logger: { warn(facts: object, message: string): void }
}

/** Writes applied events and conversions to files, on one node at a time. */
export function startArchive(options: ArchiveOptions): { stop(): Promise<void> } {
  const { pool, flushMs, logger } = options
  const owner = randomUUID()
  const stopping = new AbortController()

  async function flushRepeatedly(): Promise<void> {
    let failures = 0
    let isLast: boolean
    do {
      const waitMs = failures > 0 ? Math.min(MAX_BACKOFF_MS, 1_000 * 2 ** failures) : flushMs
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
      // A stop during a flush is followed by another one, for the rows that arrived in the meantime.
      isLast = stopping.signal.aborted
      failures = (await flush()) ? 0 : failures + 1
    } while (!isLast)
  }

  async function flush(): Promise<boolean> {
    try {
      await flushArchive({ ...options, owner })
      return true
    } catch (error) {
      logger.warn({ err: error }, 'writing the archive failed and will be retried')
      await recordArchiveFailure(pool, errorMessage(error)).catch(() => {})
      return false
    }
  }

  const running = flushRepeatedly()
  return {
    async stop() {
      stopping.abort()
      await Promise.race([running, sleep(LAST_FLUSH_MS, undefined, { ref: false })])
    },
  }
}

/**
 * Writes all waiting rows to files. The name and the rows of a file are committed before the file is written. After a crash
 * the next node overwrites the same file, so each row is in exactly one file.
 */
export async function flushArchive({
  pool,
  storage,
  owner,
}: Pick<ArchiveOptions, 'pool' | 'storage'> & { owner: string }): Promise<void> {
  if (!(await archiveState(pool)).enabled || !(await leaseArchive(pool, owner))) return
  /** Returns false if another node has the lease now. */
  async function writePlanned(): Promise<boolean> {
    for (let file = await nextFile(pool); file !== null; file = await nextFile(pool)) {
      const { rows, bytes } = await encode(pool, file)
      if (rows > 0) await storage.put(filePath(file), bytes)
      await markWritten(pool, file.id, { rows, bytes: bytes.length })
      if (!(await leaseArchive(pool, owner))) return false
    }
    return true
  }
  try {
    // Files of an interrupted flush come first. Rows that arrive from now on wait for the next flush: files would be tiny otherwise.
    if (!(await writePlanned())) return
    let isMore: boolean
    do {
      isMore = await inTransaction(pool, planFiles)
      if (!(await writePlanned())) return
    } while (isMore)
    await recordArchiveFailure(pool, null)
  } finally {
    await releaseArchive(pool, owner)
  }
}

/** Hive partitioning, as DuckDB, Spark and ClickHouse read it: each folder is column=value. */
function filePath({ id, tenantId, what, hour }: PlannedFile): string {
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

/** Events that were erased after planning are missing here, so they do not get into the file. */
async function* eventPages(pool: pg.Pool, { tenantId, ids }: PlannedFile) {
  for (let from = 0; from < ids.length; from += READ_AT_A_TIME) {
    const some = ids.slice(from, from + READ_AT_A_TIME)
    const rows = await findEvents(pool, tenantId, some)
    const byId = new Map(rows.map(row => [row.id, row]))
    yield some.flatMap(id => byId.get(id) ?? [])
  }
}

type ConversionBody = Record<string, string | number | boolean | null>

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
  verified: 'boolean',
  claims: 'number',
}

const ARCHIVED_CONVERSION = Object.entries(TYPES).map(([name, type]): Column<ConversionBody> => {
  const of = (row: ConversionBody) => row[name] ?? null
  return { name, type, of: type === 'timestamp' ? row => new Date(of(row) as string) : of }
})

async function* conversionPages({ bodies }: PlannedFile): AsyncGenerator<ConversionBody[]> {
  for (let from = 0; from < bodies!.length; from += READ_AT_A_TIME)
    yield bodies!.slice(from, from + READ_AT_A_TIME).map(body => JSON.parse(body) as ConversionBody)
}

function errorMessage(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}

/** Where files are stored. `put` is atomic, and repeating it writes the same file. */
export type Storage = { put(path: string, bytes: Uint8Array): Promise<void> }

type S3Access = {
  endpoint: string | null
  region: string | null
  accessKeyId: string | null
  secretAccessKey: string | null
  sessionToken: string | null
}

export async function openStorage(url: string, s3: S3Access): Promise<Storage> {
  return url.startsWith('file:') ? fileStorage(fileURLToPath(url)) : s3Storage(new URL(url), s3)
}

/** Writes under another name first, so that readers of the directory only see complete files. */
function fileStorage(root: string): Storage {
  return {
    async put(path, bytes) {
      const target = join(root, path)
      const draft = `${target}.partial`
      // The files contain personal data. A directory that exists keeps its mode: its owner may have shared it on purpose.
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      const file = await open(draft, 'w', 0o600)
      try {
        await file.writeFile(bytes)
        await file.sync()
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      } finally {
        await file.close()
      }
      await rename(draft, target)
      await syncDirectory(dirname(target))
    },
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  // Windows cannot sync a directory.
  await directory.sync().catch(() => {})
  await directory.close()
}

const PUT_TIMEOUT_MS = 120_000

/** One PUT per file, which is atomic on S3. */
async function s3Storage({ hostname: bucket, pathname }: URL, access: S3Access): Promise<Storage> {
  const { AwsClient } = await import('aws4fetch')
  const region = access.region ?? 'us-east-1'
  const client = new AwsClient({
    accessKeyId: access.accessKeyId ?? '',
    secretAccessKey: access.secretAccessKey ?? '',
    ...(access.sessionToken !== null && { sessionToken: access.sessionToken }),
    ...{ service: 's3', region, retries: 3 },
  })
  // The bucket is part of the path for a custom endpoint, whose host names seldom include buckets, and for a bucket with
  // dots, which no wildcard certificate covers.
  const endpoint = access.endpoint?.replace(/\/$/, '') ?? `https://s3.${region}.amazonaws.com`
  const isInPath = access.endpoint !== null || bucket.includes('.')
  const base = isInPath ? `${endpoint}/${bucket}` : `https://${bucket}.s3.${region}.amazonaws.com`
  const prefix = pathname.replace(/^\/|\/$/g, '')
  return {
    async put(path, bytes) {
      const name = [prefix, path].filter(part => part !== '').join('/')
      const response = await client.fetch(`${base}/${name.split('/').map(encodeURIComponent).join('/')}`, {
        ...{ method: 'PUT', body: bytes as Uint8Array<ArrayBuffer>, signal: AbortSignal.timeout(PUT_TIMEOUT_MS) },
        headers: { 'content-type': 'application/vnd.apache.parquet' },
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`S3 responded with ${response.status}: ${text.slice(0, 300)}`)
    },
  }
}
