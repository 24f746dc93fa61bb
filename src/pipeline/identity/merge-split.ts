import {
  findSplit,
  MAX_IDENTIFIERS,
  relabelLinks,
  type Split,
  type SplitProfiles,
  splitProfiles,
} from '../../domain/identity/linking.ts'
import { newEntryId } from '../../domain/ids.ts'
import { lockPeople, lockTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import {
  bumpIdentityVersions,
  insertLinks,
  insertUnlinked,
  loadProfileFacts,
  mergeProfiles,
} from '../../store/identity/identities.ts'
import {
  assignNodes,
  findPreviousNode,
  listNodes,
  loadLinks,
  undoLink,
  updateLinks,
} from '../../store/identity/people.ts'
import { attributeAccounts } from '../billing/accounts.ts'
import { combineSales, salesOfNodes, splitSales } from '../conversions/profile-sales.ts'
import { rememberSalesOfProfiles } from '../deliveries/sales.ts'
import type { Transaction } from '../unit.ts'

/** A person under one name of theirs. */
type NamedPerson = { node: number; profile: number }

/**
 * Who is who is changed by one at a time. No worker is in the middle of this tenant's events then, and none begins:
 * what is read here stays so until the end of the transaction.
 */
export async function lockWhoIsWho({ client }: Transaction, tenantId: number): Promise<void> {
  await lockPeople(client, tenantId)
  await lockTenants(client, TENANT_LOCKS.profiles, [tenantId])
}

/** False where together they would have more names than a profile may. The caller holds the locks. */
export async function mergePeople(
  transaction: Transaction,
  tenantId: number,
  { from, into }: { from: NamedPerson; into: NamedPerson },
): Promise<boolean> {
  const { client, now } = transaction
  const facts = await loadProfileFacts(
    client,
    [from, into].map(({ profile }) => ({ tenantId, profile })),
  )
  if (facts.reduce((sum, { identifiers: names }) => sum + names, 0) > MAX_IDENTIFIERS) return false
  await rememberSalesOfProfiles(
    transaction,
    [from, into].map(({ profile }) => ({ tenantId, profile })),
  )
  const moved = await mergeProfiles(client, [{ tenantId, from: from.profile, into: into.profile }])
  await insertLinks(client, [
    {
      ...{ tenantId, profile: into.profile, fromProfile: from.profile, node: from.node, other: into.node },
      nodes: moved.map(({ node }) => node),
      cause: { kind: 'command', id: newEntryId(now.getTime()) },
    },
  ])
  await combineSales(transaction, [{ tenantId, profile: into.profile }])
  await attributeAccounts(transaction, [{ tenantId, node: into.node }])
  return true
}

/**
 * Undoes the join that brought two names of one person together. Events, conversions, attribution and sums follow.
 * Returns the profiles of the two; null where no such join is known. The caller holds the locks.
 */
export async function splitPerson(
  transaction: Transaction,
  tenantId: number,
  { profile, name, from }: { profile: number; name: number; from: number },
): Promise<SplitProfiles | null> {
  const { client } = transaction
  const links = await loadLinks(client, tenantId, profile)
  const split = findSplit(links, name, from)
  if (split === null) return null
  const nodes = await listNodes(client, tenantId, profile)
  const sales = await salesOfNodes(transaction, tenantId, nodes)
  await rememberSalesOfProfiles(transaction, [{ tenantId, profile }])
  await undoLink(client, tenantId, split.undone.id)
  // Two people from now on; but what the one said of the other goes when the other is erased.
  const { node, other } = split.undone
  await insertUnlinked(client, [
    { tenantId, node, other, causeId: null },
    { tenantId, node: other, other: node, causeId: null },
  ])
  const sides = (await undoMove(transaction, tenantId, profile, split)) ?? splitProfiles(profile, split)
  const isPartedNew = sides.splitOff !== profile
  await assignNodes(
    client,
    tenantId,
    nodes.filter(node => split.splitOff.has(node) === isPartedNew),
    isPartedNew ? sides.splitOff : sides.kept,
  )
  const renamed = relabelLinks(links, profile, split, sides)
  if (renamed.length > 0) await updateLinks(client, tenantId, renamed)
  await bumpIdentityVersions(client, [tenantId])
  await splitSales(transaction, tenantId, sales)
  await attributeAccounts(
    transaction,
    [name, from].map(node => ({ tenantId, node })),
  )
  return sides
}

/** A name that had moved on goes back to whom it belonged to before, with those who came along. */
async function undoMove(
  { client, now }: Transaction,
  tenantId: number,
  profile: number,
  { undone, isMergedSide: isTakenIn }: Split,
): Promise<SplitProfiles | null> {
  if (undone.fromProfile !== undone.node || !isTakenIn) return null
  const before = await findPreviousNode(client, tenantId, undone.node)
  if (before === null || before.profile === profile) return null
  await insertLinks(client, [
    {
      ...{ tenantId, profile: before.profile, fromProfile: undone.node, nodes: [undone.node] },
      ...{ node: undone.node, other: before.node },
      cause: { kind: 'command', id: newEntryId(now.getTime()) },
    },
  ])
  return { splitOff: before.profile, kept: profile }
}
