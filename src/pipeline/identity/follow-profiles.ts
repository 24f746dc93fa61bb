import { contactIdentifiers } from '../../domain/identity/identifiers.ts'
import { attributeAccounts } from '../billing/subscriptions.ts'
import { combineSales, salesOfNodes, splitSales } from '../conversions/profile-sales.ts'
import type { ChangedRecord } from '../records/records.ts'
import type { Transaction } from '../unit.ts'
import type { IdentifierGroup, Identities, ProfileChanges } from './linking.ts'

/** Finds the node of each group of identifiers. Sales and accounts follow their profiles. */
export async function resolveNodes(
  identities: Identities,
  transaction: Transaction,
  groups: IdentifierGroup[],
): Promise<(number | null)[]> {
  const { nodes, ...changes } = await identities.resolve(transaction, groups)
  await followProfiles(transaction, changes)
  return nodes
}

/** Sales and accounts follow their profiles. */
export async function followProfiles(
  transaction: Transaction,
  { merged, split, changed }: ProfileChanges,
): Promise<void> {
  if (changed.length === 0) return
  transaction.movedNodes ??= new Set()
  for (const { node } of changed) transaction.movedNodes.add(node)
  for (const [tenantId, own] of Map.groupBy(split, ({ tenantId }) => tenantId)) {
    const nodes = own.map(({ node }) => node)
    await splitSales(transaction, tenantId, await salesOfNodes(transaction, tenantId, nodes))
  }
  await combineSales(transaction, merged)
  await attributeAccounts(transaction, changed)
}

/** The identifiers in a contact record are linked as long as the record has them. */
export async function linkContacts(
  identities: Identities,
  transaction: Transaction,
  changed: ChangedRecord[],
): Promise<void> {
  const groups = changed.flatMap(({ tenantId, entityType, id, data, receivedAt }) =>
    entityType === 'contact'
      ? [
          {
            tenantId,
            identifiers: data ? contactIdentifiers(id, data) : [],
            verified: true,
            cause: { kind: 'record' as const, id: `contact/${id}` },
            receivedAt,
          },
        ]
      : [],
  )
  if (groups.length > 0) await resolveNodes(identities, transaction, groups)
}
