import type { Entry } from '../../domain/entry.ts'
import type { EventContext, NormalizedEvent } from '../../domain/events/events.ts'
import { itemAlone, MAX_NAMED_REJECTIONS, normalize } from '../../domain/events/normalize/normalize.ts'
import { itemId } from '../../domain/ids.ts'
import type { NewDeadLetter } from '../../store/entries/dead-letters.ts'
import type { Unit } from '../unit.ts'

const DAY_MS = 86_400_000

function contextOf(entry: Entry): EventContext {
  return JSON.parse(entry.context) as EventContext
}

/** The events of an entry; of what can never become one, the first hundred are dead letters. */
export function decode(
  entry: Entry,
  floorMs: number | null,
): { works: NormalizedEvent[]; rejected: NewDeadLetter[] } {
  const context = contextOf(entry)
  // Of a replay, the times of its events count from when it first came in.
  const receivedAt = context.firstReceivedAt ? new Date(context.firstReceivedAt) : entry.receivedAt
  const { events, rejected } = normalize({
    entryId: entry.id,
    receivedAt,
    body: entry.body,
    context,
    floorMs: floorOf(context, floorMs),
  })
  for (const event of events) event.receivedAt = entry.receivedAt
  return {
    works: events,
    rejected: rejected.slice(0, MAX_NAMED_REJECTIONS).map(({ index, message, raw, inboundEventId }) => ({
      id: itemId(entry.id, index),
      entry: { ...entry, body: raw, context: JSON.stringify(singleItem(context)) },
      sourceId: context.route === 'inbound' ? context.sourceId : null,
      inboundEventId,
      reason: 'rejected',
      error: message,
      attempts: 0,
    })),
  }
}

function floorOf({ floorDays }: EventContext, installationMs: number | null): number | null {
  if (floorDays === undefined) return installationMs
  return floorDays === 0 ? null : floorDays * DAY_MS
}

/** The context of an item that is taken out of its batch. */
function singleItem(context: EventContext): EventContext {
  const { items: _, ...alone } = context
  return alone.route === 'cdp' && alone.kind === 'batch' ? { ...alone, kind: 'any' } : alone
}

/** The entry with only these events. */
export function narrow(entry: Entry, events: NormalizedEvent[]): Entry {
  const items = events.map(event => event.index)
  return { ...entry, context: JSON.stringify({ ...contextOf(entry), items }) }
}

function alone(entry: Entry, event: NormalizedEvent): Entry {
  const { text, context } = itemAlone(entry.body, contextOf(entry), event.index)
  return { ...entry, body: text, context: JSON.stringify(context) }
}

export function deadLetterOf(
  { entry, work: event }: Unit<NormalizedEvent | undefined>,
  error: string,
  attempts: number,
): NewDeadLetter {
  const context = contextOf(entry)
  return {
    id: event?.id ?? entry.id,
    entry: event ? alone(entry, event) : entry,
    sourceId: context.route === 'inbound' ? context.sourceId : null,
    inboundEventId: event?.inboundEventId ?? null,
    reason: 'failed',
    error,
    attempts,
  }
}
