import { contactIdentifiers } from '../../domain/identity/identity.ts'
import { attributeAccounts } from '../billing/subscriptions.ts'
import { combineSales } from '../conversions/profile-sales.ts'
import type { ChangedRecord } from '../records/records.ts'
import type { Transaction } from '../unit.ts'
import type { IdentifierGroup, Identities } from './identity.ts'

/** Finds the node of each group of identifiers. If profiles merge, their sales and accounts follow. */
export async function resolveNodes(
  identities: Identities,
  transaction: Transaction,
  groups: IdentifierGroup[],
): Promise<(number | null)[]> {
  const { nodes, merged, changed } = await identities.resolve(transaction, groups)
  if (merged.length > 0) {
    await combineSales(transaction, merged)
    await attributeAccounts(transaction, changed)
  }
  return nodes
}

/** Contact records link the identifiers of a profile. */
export async function linkContacts(
  identities: Identities,
  transaction: Transaction,
  changed: ChangedRecord[],
): Promise<void> {
  const groups = changed.flatMap(record =>
    record.entityType === 'contact' && record.data
      ? [
          {
            tenantId: record.tenantId,
            identifiers: contactIdentifiers(record.id, record.data),
            trusted: true,
            cause: { kind: 'record' as const, id: `contact/${record.id}` },
          },
        ]
      : [],
  )
  if (groups.length > 0) await resolveNodes(identities, transaction, groups)
}
