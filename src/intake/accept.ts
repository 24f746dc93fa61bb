import type { EventContext, Inspection } from '../domain/events/events.ts'
import { type Body, inspect } from '../domain/events/normalize/normalize.ts'
import { newEntryId } from '../domain/ids.ts'
import type { Append, Appended } from '../log/log.ts'
import { coalesce } from './coalesce.ts'

export type AcceptMetrics = {
  flushed(entries: number, seconds: number): void
  shed(): void
}

/** The one way in. Resolves when the entries are durable; rejects when they are not. */
export type Accept = (entries: Append[]) => Promise<Appended[]>

// Two flushes keep the disk busy while the next one gathers; more would only make each smaller.
const FLUSHES = { maxInFlight: 2, maxItems: 1_000, maxBytes: 4_000_000 }
// what an entry costs beside its body
const ENTRY_OVERHEAD_BYTES = 512

/** Group commit: requests that arrive while flushes are under way share the next one. No timers. */
export function openAccept({
  append,
  maxPendingBytes,
  metrics,
}: {
  append: (batch: Append[]) => Promise<Appended[]>
  maxPendingBytes: number
  metrics?: AcceptMetrics
}): { accept: Accept; drained(): Promise<void>; pendingBytes(): number } {
  const { submit, drained, pendingBytes } = coalesce({
    run: flush,
    maxPendingBytes,
    onRefused: () => metrics?.shed(),
    ...FLUSHES,
  })

  async function flush(entries: Append[]): Promise<Appended[]> {
    const startedAt = performance.now()
    const appended = await append(entries)
    metrics?.flushed(entries.length, (performance.now() - startedAt) / 1000)
    return appended
  }

  return { accept: entries => submit(entries, bytesOf(entries)), drained, pendingBytes }
}

function bytesOf(entries: Append[]): number {
  let bytes = 0
  for (const { entry } of entries) bytes += entry.body.length + entry.context.length + ENTRY_OVERHEAD_BYTES
  return bytes
}

/** A request with events, read: what is wrong with it, and the entry it becomes if anything in it is good. */
export function eventEntry(
  tenantId: number,
  body: Body,
  context: EventContext,
  now: Date,
): { inspection: Inspection; append: Append } {
  const inspection = inspect(body, context)
  // What was read from it takes several times its text, and is not to wait with it until it is durable.
  body.value = undefined
  const id = newEntryId(now.getTime())
  return {
    inspection,
    append: {
      entry: {
        id,
        tenantId,
        kind: 'events',
        orderingKey: inspection.orderingKey ?? id,
        receivedAt: now,
        context: JSON.stringify(keptContext(body, context, inspection)),
        body: body.original,
      },
      claim: null,
      storedBytes: inspection.storedBytes,
    },
  }
}

function keptContext(body: Body, context: EventContext, { refusedTypes }: Inspection): EventContext {
  const { allowedTypes: _, ...kept } = context
  return {
    ...kept,
    ...(body.plain && { plain: true as const }),
    ...(refusedTypes.length > 0 && { refusedTypes }),
  }
}
