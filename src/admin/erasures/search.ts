import { setImmediate as turn } from 'node:timers/promises'
import type pg from 'pg'
import { eventOfStored } from '../../domain/events/stored.ts'
import { identitiesOf, identitiesOfContact, identitiesOfOrder } from '../../domain/identity/identity.ts'
import { mentions, personNames } from '../../domain/identity/mentions.ts'
import { inTransaction } from '../../postgres/database.ts'
import { readStored } from '../../store/events/stored.ts'
import { addressPatterns, type EventRow, type KnownName, recordsLike } from '../../store/identity/traces.ts'

type Searched = { pool: pg.Pool; tenantId: number }

const emailsOf = (names: KnownName[]) => names.flatMap(({ kind, value }) => (kind === 'email' ? [value] : []))

/**
 * Events that no join leads to, by the text of the address: those that say today that they are the person's, and those
 * that are nobody's and mention it anywhere. What somebody else only mentions stays theirs.
 */
export async function eventsNaming(
  { pool, tenantId }: Searched,
  names: KnownName[],
  receivedSince: Date | null,
): Promise<EventRow[]> {
  const emails = emailsOf(names)
  if (emails.length === 0) return []
  const person = personNames(names)
  const own = new Set(names.flatMap(({ node }) => node ?? []))
  const found: EventRow[] = []
  await inTransaction(pool, async client => {
    const filter = { mentioning: addressPatterns(emails), ...(receivedSince && { receivedSince }) }
    for await (const events of readStored(client, tenantId, filter)) {
      for (const event of events) {
        const { table, row, id, receivedAt, node } = event
        if (node !== null && own.has(node)) continue
        const isTheirs =
          node === null
            ? mentions(event.payload, person)
            : identitiesOf(eventOfStored(event)).some(
                ({ kind, value }) => kind === 'email' && person.emails.has(value),
              )
        if (isTheirs) found.push({ table, row, id, receivedAt })
      }
      await turn()
    }
  })
  return found
}

/** Contacts and orders with the address in a place that was not looked at when they came. */
export async function recordsNaming(
  { pool, tenantId }: Searched,
  names: KnownName[],
): Promise<{ contacts: string[]; orders: string[] }> {
  const emails = new Set(emailsOf(names))
  const found = { contacts: [] as string[], orders: [] as string[] }
  if (emails.size === 0) return found
  for (const { entityType, id, data } of await recordsLike(pool, tenantId, addressPatterns([...emails]))) {
    const fields = JSON.parse(data)
    const identities = entityType === 'order' ? identitiesOfOrder(fields) : identitiesOfContact(id, fields)
    if (identities.some(({ kind, value }) => kind === 'email' && emails.has(value)))
      found[entityType === 'order' ? 'orders' : 'contacts'].push(id)
  }
  return found
}
