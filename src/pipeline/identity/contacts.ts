import { identitiesOfContact } from '../../domain/identity/identity.ts'
import type { RecordListener } from '../records/records.ts'
import type { Identities } from './identity.ts'

/** Contact records link the identities of a person. */
export function contactIdentities(identities: Identities): RecordListener {
  return async (transaction, changed) => {
    const sightings = changed.flatMap(record =>
      record.entityType === 'contact' && record.data
        ? [
            {
              tenantId: record.tenantId,
              identities: identitiesOfContact(record.id, record.data),
              trusted: true,
              cause: { kind: 'record' as const, id: `contact/${record.id}` },
            },
          ]
        : [],
    )
    if (sightings.length > 0) await identities.resolve(transaction, sightings)
  }
}
