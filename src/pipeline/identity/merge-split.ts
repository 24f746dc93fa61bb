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
import { attributeAccounts } from '../billing/subscriptions.ts'
import { combineSales, salesOfNodes, splitSales } from '../conversions/profile-sales.ts'
import { rememberSalesOfProfiles } from '../deliveries/notify.ts'
import type { Transaction } from '../unit.ts'

/** A profile and one of its nodes. */
type NamedPerson = { node: number; profile: number }

/**
 * Locks the profiles of a tenant against commands and workers. What the caller reads then stays valid until its
 * transaction ends.
 */
export async function lockWhoIsWho({ client }: Transaction, tenantId: number): Promise<void> {
  await lockPeople(client, tenantId)
  await lockTenants(client, TENANT_LOCKS.profiles, [tenantId])
}

/** Returns false if the merged profile would have too many identifiers. The caller holds the locks. */
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
  if (facts.reduce((sum, { identifiers }) => sum + identifiers, 0) > MAX_IDENTIFIERS) return false
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
 * Undoes the link that connects two identifiers of one profile. Events, conversions, attribution and sums follow.
 * Returns both profiles, or null if there is no such link. The caller holds the locks.
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
  // They are two people now. But an erasure of one must also find what the other sent about them.
  const { node, other } = split.undone
  await insertUnlinked(client, [
    { tenantId, node, other, causeId: null },
    { tenantId, node: other, other: node, causeId: null },
  ])
  const sides = (await undoMove(transaction, tenantId, profile, split)) ?? splitProfiles(profile, split)
  const isSplitOffNew = sides.splitOff !== profile
  await assignNodes(
    client,
    tenantId,
    nodes.filter(node => split.splitOff.has(node) === isSplitOffNew),
    isSplitOffNew ? sides.splitOff : sides.kept,
  )
  const relabeled = relabelLinks(links, profile, split, sides)
  if (relabeled.length > 0) await updateLinks(client, tenantId, relabeled)
  await bumpIdentityVersions(client, [tenantId])
  await splitSales(transaction, tenantId, sales)
  await attributeAccounts(
    transaction,
    [name, from].map(node => ({ tenantId, node })),
  )
  return sides
}

/** Returns a moved identifier to its previous profile, with the nodes that were linked through it. */
async function undoMove(
  { client, now }: Transaction,
  tenantId: number,
  profile: number,
  { undone, isMergedSide }: Split,
): Promise<SplitProfiles | null> {
  if (undone.fromProfile !== undone.node || !isMergedSide) return null
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
