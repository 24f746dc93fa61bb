import { findSplit, type GraphNode, mainNode, verifiedCore } from '../../domain/identity/linking.ts'
import { newEntryId } from '../../domain/ids.ts'
import { lockPeople, lockTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import {
  bumpIdentityVersions,
  findProfiles,
  loadProfileGraph,
  loadProfileNodes,
  undoLinks,
  upsertLinks,
  verifyIdentifiers,
} from '../../store/identity/identities.ts'
import type { Transaction } from '../unit.ts'
import { followProfiles } from './follow-profiles.ts'
import { deriveProfiles } from './linking.ts'

/**
 * Locks the profiles of a tenant against commands and workers. What the caller reads then stays valid until its
 * transaction ends.
 */
export async function lockProfiles({ client }: Transaction, tenantId: number): Promise<void> {
  await lockPeople(client, tenantId)
  await lockTenants(client, TENANT_LOCKS.profiles, [tenantId])
}

/** Links every identifier of one profile with another profile, which keeps its id. The caller holds the locks. */
export async function mergePeople(
  transaction: Transaction,
  tenantId: number,
  { from, into }: { from: number; into: number },
): Promise<void> {
  const nodes = await loadProfileNodes(
    transaction.client,
    [from, into].map(profile => ({ tenantId, profile })),
  )
  const target = mainNode(nodes.filter(({ profile }) => profile === into))
  const linked = nodes.filter(({ profile, isRetired }) => profile === from && !isRetired)
  await linkByCommand(transaction, tenantId, target.node, linked)
  await deriveAgain(transaction, tenantId, [from, into], into)
}

/** Makes the link between an identifier and the rest of its profile verified. The caller holds the locks. */
export async function verifyIdentifier(
  transaction: Transaction,
  tenantId: number,
  { profile, node }: { profile: number; node: number },
): Promise<void> {
  const { client } = transaction
  const { nodes, links } = await loadProfileGraph(client, tenantId, profile)
  const core = verifiedCore(nodes, links)
  const others = nodes.filter(own => own.node !== node && (core.size === 0 || core.has(own.node)))
  if (others.length > 0)
    await linkByCommand(
      transaction,
      tenantId,
      mainNode(others).node,
      nodes.filter(own => own.node === node),
    )
  await verifyIdentifiers(client, [{ tenantId, node, byInput: true }])
  await deriveAgain(transaction, tenantId, [profile], profile)
}

/**
 * Undoes the links that connect two identifiers of one profile. Events, conversions, attribution and sums follow. Returns
 * both profiles, or null if nothing connects them. The caller holds the locks.
 */
export async function splitPerson(
  transaction: Transaction,
  tenantId: number,
  { profile, name, from }: { profile: number; name: number; from: number },
): Promise<{ splitOff: number; kept: number } | null> {
  const { client } = transaction
  const { nodes, links } = await loadProfileGraph(client, tenantId, profile)
  const split = findSplit(nodes, links, name, from)
  if (split === null) return null
  await undoLinks(client, split.undone)
  await deriveAgain(transaction, tenantId, [profile])
  const profiles = await findProfiles(
    client,
    [name, from].map(node => ({ tenantId, node })),
  )
  const profileOf = (wanted: number) => profiles.find(({ node }) => node === wanted)!.profile
  return { splitOff: profileOf(name), kept: profileOf(from) }
}

async function linkByCommand(
  { client, now }: Transaction,
  tenantId: number,
  target: number,
  nodes: GraphNode[],
): Promise<void> {
  const cause = { kind: 'command' as const, id: newEntryId(now.getTime()) }
  const links = nodes.map(({ node }) => ({
    ...{ tenantId, a: Math.min(node, target), b: Math.max(node, target) },
    ...{ isVerified: true, isUndone: false, mayReturn: false, at: now.getTime(), cause },
  }))
  await upsertLinks(client, links)
}

async function deriveAgain(
  transaction: Transaction,
  tenantId: number,
  profiles: number[],
  keep?: number,
): Promise<void> {
  const keys = profiles.map(profile => ({ tenantId, profile }))
  await followProfiles(transaction, await deriveProfiles(transaction, keys, keep))
  await bumpIdentityVersions(transaction.client, [tenantId])
}
