import type pg from 'pg'
import { findEvents } from '../../store/events/events.ts'
import { namesOfProfile } from '../../store/identity/people.ts'
import { billingOf, conversionsOf, recordsOf, touchesOf } from '../../store/identity/person-data.ts'
import { recordsNaming } from '../erasures/search.ts'
import { eventsOf, valuesOf } from '../erasures/steps.ts'
import type { PersonView } from '../views/people.ts'

const AT_A_TIME = 1_000

/** One thing a line, or an array of them. */
export type ExportFormat = 'ndjson' | 'json'

export async function* formatted(
  texts: AsyncGenerator<string>,
  format: ExportFormat,
): AsyncGenerator<string> {
  let before = '['
  for await (const text of texts) {
    yield format === 'json' ? before + text : `${text}\n`
    before = ',\n'
  }
  if (format === 'json') yield ']\n'
}

/** Everything that is held of a person, for a request of theirs: one JSON text a thing, told apart by `type`. */
export async function* exportPerson(
  pool: pg.Pool,
  tenantId: number,
  profile: number,
  person: PersonView,
): AsyncGenerator<string> {
  const names = await namesOfProfile(pool, tenantId, profile)
  const nodes = names.map(({ node }) => node)
  const named = await recordsNaming({ pool, tenantId }, names)
  const contactIds = [...new Set([...valuesOf(names, 'contact'), ...named.contacts])]
  yield JSON.stringify({ type: 'person', ...person })
  yield* await touchesOf(pool, tenantId, nodes)
  yield* await recordsOf(pool, tenantId, 'contact', contactIds)
  const conversions = await conversionsOf(pool, tenantId, nodes, contactIds)
  for (const { text } of conversions) yield text
  const orderIds = new Set([...conversions.flatMap(({ orderId }) => orderId ?? []), ...named.orders])
  yield* await recordsOf(pool, tenantId, 'order', [...orderIds])
  yield* await billingOf(pool, tenantId, { nodes, customers: contactIds, emails: valuesOf(names, 'email') })
  const ids = (await eventsOf({ pool, tenantId }, names, null)).map(({ id }) => id).sort()
  for (let from = 0; from < ids.length; from += AT_A_TIME)
    yield* (await findEvents(pool, tenantId, ids.slice(from, from + AT_A_TIME))).map(eventText)
}

/** Payload and meta go out as they are kept: parsing them would cost exact digits. */
function eventText(event: Awaited<ReturnType<typeof findEvents>>[number]): string {
  const facts = JSON.stringify({
    type: 'event',
    id: event.id,
    event_type: event.eventType,
    occurred_at: event.occurredAt,
    received_at: event.receivedAt,
    source: event.source,
    source_config_id: event.sourceConfigId,
    visitor: event.visitor,
    session_id: event.sessionId,
  })
  return `${facts.slice(0, -1)},"payload":${event.payload},"headers":${event.headers ?? '{}'},"meta":${event.meta ?? '{}'}}`
}
