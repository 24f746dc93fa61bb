import type { EventContext, Inspection } from '../domain/events/events.ts'
import { type Body, inspect } from '../domain/events/normalize/normalize.ts'
import { newEntryId } from '../domain/ids.ts'
import type { Append } from '../log/log.ts'

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
