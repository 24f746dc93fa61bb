import { type Body, inspect } from '../domain/events/normalize/normalize.ts'
import type { EventContext, Inspection } from '../domain/events/types.ts'
import { newEntryId } from '../domain/ids.ts'
import type { Append, Appended, FlushGroup } from '../log/log.ts'
import { type Coalesced, coalesce } from '../overload/coalesce.ts'
import { openByteLimit } from '../overload/limits.ts'

export type AcceptMetrics = {
  flushed(entries: number, seconds: number): void
  shed(): void
}

/** The only write path. Resolves when the entries are durable. */
export type Accept = (entries: Append[]) => Promise<Appended[]>

// Memory of an entry besides its body.
const ENTRY_OVERHEAD_BYTES = 512

/** Group commit: requests that arrive while flushes of their group are in progress share the next one. */
export function openAccept({
  append,
  groupOf,
  maxPendingBytes,
  metrics,
}: {
  append: (batch: Append[]) => Promise<Appended[]>
  groupOf: (append: Append) => FlushGroup
  maxPendingBytes: number
  metrics?: AcceptMetrics
}): { accept: Accept; drained(): Promise<void>; pendingBytes(): number } {
  const flushes = new Map<string, Coalesced<Append, Appended>>()
  // One limit for all groups: it bounds the memory of the process.
  const pending = openByteLimit(maxPendingBytes, metrics?.shed)

  function findFlushes(group: FlushGroup): Coalesced<Append, Appended> {
    let own = flushes.get(group.name)
    if (!own) {
      const { name: _, ...limits } = group
      own = coalesce({ run: flush, ...limits })
      flushes.set(group.name, own)
    }
    return own
  }

  async function flush(entries: Append[]): Promise<Appended[]> {
    const startedAt = performance.now()
    const appended = await append(entries)
    metrics?.flushed(entries.length, (performance.now() - startedAt) / 1000)
    return appended
  }

  return {
    async accept(entries) {
      if (entries.length === 0) return []
      const bytes = countBytes(entries)
      pending.acquire(bytes)
      try {
        // The entries of a request belong to one group; if not, the log separates them.
        return await findFlushes(groupOf(entries[0]!)).submit(entries, bytes)
      } finally {
        pending.release(bytes)
      }
    },
    async drained() {
      while (pending.pendingBytes() > 0) await Promise.all([...flushes.values()].map(own => own.drained()))
    },
    pendingBytes: pending.pendingBytes,
  }
}

function countBytes(entries: Append[]): number {
  let bytes = 0
  for (const { entry } of entries) bytes += entry.body.length + entry.context.length + ENTRY_OVERHEAD_BYTES
  return bytes
}

/** Inspects a request with events: its validation errors, and the entry for its valid items. */
export function eventEntry(
  tenantId: number,
  body: Body,
  context: EventContext,
  now: Date,
): { inspection: Inspection; append: Append } {
  const inspection = inspect(body, context)
  // The parsed value takes several times the memory of the text: release it before the entry waits for its commit.
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
  return { ...kept, ...(body.plain && { plain: true as const }), ...(refusedTypes.length > 0 && { refusedTypes }) }
}
