import { type ErrorsFile, type Journal, NO_PROGRESS, type Progress } from './files.ts'
import { type Item, isRejection, type Read, type Reading, type Rejection, type Row } from './rows.ts'
import type { Target } from './target.ts'

export type Totals = { read: number; accepted: number; duplicates: number; rejected: number }

export type ImportOptions = {
  rows: AsyncIterable<(Row | Rejection)[]>
  reading: Reading
  /** Null for a dry run. */
  target: Target | null
  journal: Journal
  errors: (from: number) => Promise<ErrorsFile>
  onRejected: (rejections: Rejection[]) => void
  onResumed: (read: number) => void
  onProgress: (totals: Totals) => void
  onEnd: () => void
  signal: AbortSignal
}

/** The number of requests in flight, which also bounds how much of the file is in memory. */
const IN_FLIGHT = 4
const MAX_READS = 2_000
const DRY: Target = {
  maxItems: MAX_READS,
  maxBytes: Number.POSITIVE_INFINITY,
  deliver: async items => ({ accepted: items.length, duplicates: 0, rejected: [] }),
}

type Batch = { items: Item[]; rejected: Rejection[]; bytes: number; ids: Set<string> }
const newBatch = (): Batch => ({ items: [], rejected: [], bytes: 0, ids: new Set() })

/**
 * Reads a file and sends its items in batches. Batches are settled in order. After a crash, the same command skips the settled
 * batches, which the journal contains. It sends batches that were in flight again, and the service recognizes the duplicates.
 */
export async function runImport(options: ImportOptions): Promise<Totals & { isWhole: boolean }> {
  const { reading, journal, signal } = options
  const target = options.target ?? DRY
  const resumed = await journal.load()
  const progress: Progress = { ...(resumed ?? NO_PROGRESS) }
  if (resumed) options.onResumed(resumed.read)
  const errors = await options.errors(progress.errorsBytes)
  const underWay: { batch: Batch; done: Promise<Awaited<ReturnType<Target['deliver']>>> }[] = []
  let toSkip = progress.read
  let batch = newBatch()

  async function settle(): Promise<void> {
    const { batch: first, done } = underWay.shift()!
    const outcome = await done
    const rejected = [...first.rejected, ...outcome.rejected].sort((a, b) => a.line - b.line)
    progress.read += first.items.length + first.rejected.length
    progress.accepted += outcome.accepted
    progress.duplicates += outcome.duplicates
    progress.rejected += rejected.length
    if (rejected.length > 0) {
      await errors.write(rejected)
      options.onRejected(rejected)
    }
    progress.errorsBytes = errors.bytes()
    await journal.save(progress)
    options.onProgress(progress)
  }

  async function dispatch(): Promise<void> {
    if (batch.items.length + batch.rejected.length === 0) return
    // Two changes with the same id must arrive in the order of their rows.
    while (underWay.length >= IN_FLIGHT || underWay.some(({ batch: other }) => overlap(other, batch)))
      await settle()
    const { items } = batch
    const done =
      items.length > 0 ? target.deliver(items) : Promise.resolve({ accepted: 0, duplicates: 0, rejected: [] })
    done.catch(() => undefined) // `settle` handles the error
    underWay.push({ batch, done })
    batch = newBatch()
  }

  async function take(reads: Read[]): Promise<void> {
    for (const read of reads) {
      if (toSkip > 0) {
        toSkip--
        continue
      }
      if (isRejection(read)) batch.rejected.push(read)
      else {
        const bytes = Buffer.byteLength(read.text) + 2
        if (batch.items.length > 0 && batch.bytes + bytes > target.maxBytes) await dispatch()
        batch.items.push(read)
        batch.ids.add(read.id)
        batch.bytes += bytes
      }
      if (batch.items.length >= target.maxItems || batch.items.length + batch.rejected.length >= MAX_READS)
        await dispatch()
    }
  }

  try {
    for await (const rows of options.rows) {
      for (const row of rows) await take(isRejection(row) ? [row] : reading.push(row))
      if (signal.aborted) break
    }
    if (!signal.aborted) await take(reading.end())
    await dispatch()
    while (underWay.length > 0) await settle()
    if (signal.aborted) await journal.save(progress, true)
    else await journal.end()
  } finally {
    await Promise.allSettled(underWay.map(({ done }) => done))
    await errors.close()
    options.onEnd()
  }
  const { read, accepted, duplicates, rejected } = progress
  return { read, accepted, duplicates, rejected, isWhole: !signal.aborted }
}

function overlap(a: Batch, b: Batch): boolean {
  const [few, many] = a.ids.size < b.ids.size ? [a.ids, b.ids] : [b.ids, a.ids]
  for (const id of few) if (many.has(id)) return true
  return false
}
