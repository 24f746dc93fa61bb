import type { EventContext, Inspection } from '../domain/events/events.ts'
import { type Body, inspect } from '../domain/events/normalize/normalize.ts'
import { newEntryId } from '../domain/ids.ts'
import type { Append, Appended, FlushGroup } from '../log/log.ts'
import { type Coalesced, coalesce, Overloaded } from './coalesce.ts'

export type AcceptMetrics = {
  flushed(entries: number, seconds: number): void
  shed(): void
}

/** The one way in. Resolves when the entries are durable; rejects when they are not. */
export type Accept = (entries: Append[]) => Promise<Appended[]>

// what an entry costs beside its body
const ENTRY_OVERHEAD_BYTES = 512

/** Group commit: requests that arrive while flushes of their group are under way share the next one. */
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
  let pendingBytes = 0

  function flushesOf(group: FlushGroup): Coalesced<Append, Appended> {
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
      const bytes = bytesOf(entries)
      // One bound for all groups: it is the process's memory.
      if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) {
        metrics?.shed()
        throw new Overloaded(pendingBytes)
      }
      pendingBytes += bytes
      try {
        // The entries of a request are of one group; where they are not, the log parts them.
        return await flushesOf(groupOf(entries[0]!)).submit(entries, bytes)
      } finally {
        pendingBytes -= bytes
      }
    },
    async drained() {
      while (pendingBytes > 0) await Promise.all([...flushes.values()].map(own => own.drained()))
    },
    pendingBytes: () => pendingBytes,
  }
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
