import { newEntryId } from '../../domain/ids.ts'
import { type Archivable, insertArchivable } from '../../store/archive/archive.ts'
import type { Message } from '../../store/destinations/outbox.ts'
import { peopleOfNodes } from '../../store/events/events.ts'
import { eventText, recordText } from '../../store/export/row-texts.ts'
import { loadRecords } from '../../store/records/records.ts'
import type { FreshEvent } from '../events/events.ts'
import type { ChangedRecord } from '../records/records.ts'
import type { Transaction } from '../unit.ts'
import { type Audience, enqueueMessages, isEmpty, isWantedByAny, wantsAny } from './notify.ts'

const messageType = ({ event }: FreshEvent) => `event.${event.eventType}`

/** Sends events to destinations. A message has the id of its event. */
export async function notifyEvents(transaction: Transaction, audience: Audience, events: FreshEvent[]): Promise<void> {
  if (isEmpty(audience)) return
  if (audience.isArchived) await insertArchivable(transaction.client, events.map(archivable))
  const wanted = events.filter(fresh =>
    isWantedByAny(audience, fresh.tenantId, { what: 'events', type: messageType(fresh) }),
  )
  if (wanted.length === 0) return
  const { client, now: at } = transaction
  const nodes = wanted.flatMap(({ tenantId, node }) => (node === null ? [] : [{ tenantId, node }]))
  const people = await peopleOfNodes(client, nodes)
  await enqueueMessages(
    transaction,
    audience,
    wanted.map((fresh): Message => {
      const { tenantId, event, node } = fresh
      const person = people.get(`${tenantId} ${node}`)
      const data = eventText({
        ...event,
        profile: person?.profile ?? null,
        contactId: person?.contactId ?? null,
        verified: event.trusted,
        headers: JSON.stringify(event.headers),
        meta: JSON.stringify(event.meta),
      })
      return { tenantId, id: event.id, at, what: 'events', type: messageType(fresh), object: event.id, data }
    }),
  )
}

function archivable({ tenantId, event }: FreshEvent): Archivable {
  const { id, receivedAt } = event
  return { tenantId, what: 'events', id, receivedAt, bytes: event.payload.length, body: null }
}

/** Sends records to destinations in their current state. */
export async function notifyRecords(
  transaction: Transaction,
  audience: Audience,
  changed: ChangedRecord[],
): Promise<void> {
  if (audience.ofTenant.size === 0) return
  const wanted = changed.filter(({ tenantId }) => wantsAny(audience, tenantId, 'records'))
  if (wanted.length === 0) return
  const { client, now: at } = transaction
  await enqueueMessages(
    transaction,
    audience,
    (await loadRecords(client, wanted)).map(
      ({ tenantId, ...record }): Message => ({
        ...{ tenantId, id: newEntryId(at.getTime()), at, what: 'records' },
        type: `${record.entityType}.${record.deleted ? 'deleted' : 'updated'}`,
        object: `${record.entityType}/${record.id}`,
        data: recordText(record, true),
      }),
    ),
  )
}
