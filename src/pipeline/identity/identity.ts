import type { Identity } from '../../domain/identity/identity.ts'
import { lockTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import {
  ensureIdentities,
  type IdentityKey,
  mergeProfiles,
  profilesOf,
} from '../../store/identity/identities.ts'
import { openMemory } from '../memory.ts'
import type { Transaction } from '../unit.ts'
import type { PeopleListener, PersonNode } from './people.ts'

/** Names of one person, seen together. */
type Sighting = { tenantId: number; identities: Identity[] }

// About 10 MB at the most. A node never changes, and only an erasure takes one away, which ends the memory.
const MAX_REMEMBERED = 50_000

export type Identities = {
  /** The node of the first name of each sighting (null where it has none); all its names share one profile after. */
  resolve(transaction: Transaction, sightings: Sighting[]): Promise<(number | null)[]>
  /** These nodes belong to one person. */
  link(transaction: Transaction, links: Link[]): Promise<void>
  /** Whether this transaction was the first to see somebody under this name. */
  isNew(transaction: Transaction, person: PersonNode): boolean
}

export type Link = { tenantId: number; a: number; b: number }

export function openIdentities({ onPeople }: { onPeople: PeopleListener }): Identities {
  const memory = openMemory(() => ({ nodes: new Map<string, number>(), linked: new Set<string>() }))
  const made = new WeakMap<Transaction, Set<string>>()

  async function resolve(transaction: Transaction, sightings: Sighting[]): Promise<(number | null)[]> {
    const { linked } = memory(transaction)
    const sighted = await nodesOf(transaction, sightings)
    const links = new Map<string, Link>()
    for (const [i, found] of sighted.entries()) {
      const { tenantId } = sightings[i]!
      for (let other = 1; other < found.length; other++) {
        const link = { tenantId, a: found[0]!, b: found[other]! }
        const key = linkText(link)
        if (!linked.has(key)) links.set(key, link)
      }
    }
    await link(transaction, [...links.values()])
    return sighted.map(found => found[0] ?? null)
  }

  /** The nodes of all names of each sighting. */
  async function nodesOf(transaction: Transaction, sightings: Sighting[]): Promise<number[][]> {
    const { nodes } = memory(transaction)
    const unknown = new Map<string, IdentityKey>()
    const sighted = sightings.map(({ tenantId, identities }) =>
      identities.map(identity => {
        const text = identityText(tenantId, identity)
        const node = nodes.get(text)
        if (node === undefined) unknown.set(text, { tenantId, ...identity })
        return node ?? text
      }),
    )
    if (unknown.size === 0) return sighted as number[][]
    const found = await ensureIdentities(transaction.client, [...unknown.values()])
    const own = made.get(transaction) ?? new Set()
    if (own.size === 0) made.set(transaction, own)
    for (const { tenantId, node, isNew } of found) if (isNew) own.add(nodeText(tenantId, node))
    const learnt = new Map(found.map(known => [identityText(known.tenantId, known), known.node]))
    transaction.afterCommit(() => {
      if (nodes.size + learnt.size > MAX_REMEMBERED) nodes.clear()
      for (const [text, node] of learnt) nodes.set(text, node)
    })
    return sighted.map(found => found.map(node => (typeof node === 'number' ? node : learnt.get(node)!)))
  }

  async function link(transaction: Transaction, links: Link[]): Promise<void> {
    if (links.length === 0) return
    const { client } = transaction
    const { linked } = memory(transaction)
    const apart = await stillApart(client, links)
    if (apart.length > 0) {
      await lockTenants(
        client,
        TENANT_LOCKS.profiles,
        apart.map(({ tenantId }) => tenantId),
      )
      // Another worker may have merged them while this one waited for its turn.
      const merges = mergesFor(apart, await profileMap(client, apart))
      if (merges.length > 0) {
        await mergeProfiles(client, merges)
        await onPeople(
          transaction,
          apart.map(({ tenantId, a }) => ({ tenantId, node: a })),
        )
      }
    }
    transaction.afterCommit(() => {
      if (linked.size + links.length > MAX_REMEMBERED) linked.clear()
      for (const link of links) linked.add(linkText(link))
    })
  }

  return {
    resolve,
    link,
    isNew: (transaction, { tenantId, node }) => made.get(transaction)?.has(nodeText(tenantId, node)) ?? false,
  }
}

async function stillApart(client: Transaction['client'], links: Link[]): Promise<Link[]> {
  const profiles = await profileMap(client, links)
  return links.filter(
    ({ tenantId, a, b }) => profiles.get(nodeText(tenantId, a)) !== profiles.get(nodeText(tenantId, b)),
  )
}

async function profileMap(client: Transaction['client'], links: Link[]): Promise<Map<string, number>> {
  const rows = await profilesOf(
    client,
    links.flatMap(({ tenantId, a, b }) => [
      { tenantId, node: a },
      { tenantId, node: b },
    ]),
  )
  return new Map(rows.map(row => [nodeText(row.tenantId, row.node), row.profile]))
}

/** The oldest profile of each connected group takes the others in: the same whatever the order of the links. */
function mergesFor(links: Link[], profiles: Map<string, number>) {
  const parents = new Map<string, number>()
  const find = (tenantId: number, profile: number): number => {
    let root = profile
    for (let parent = parents.get(nodeText(tenantId, root)); parent !== undefined; ) {
      root = parent
      parent = parents.get(nodeText(tenantId, root))
    }
    return root
  }
  const seen = new Map<string, { tenantId: number; profile: number }>()
  for (const { tenantId, a, b } of links) {
    const ofA = profiles.get(nodeText(tenantId, a))
    const ofB = profiles.get(nodeText(tenantId, b))
    // erased in the meantime
    if (ofA === undefined || ofB === undefined) continue
    for (const profile of [ofA, ofB]) seen.set(nodeText(tenantId, profile), { tenantId, profile })
    const [older, newer] = [find(tenantId, ofA), find(tenantId, ofB)].sort((x, y) => x - y) as [
      number,
      number,
    ]
    if (older !== newer) parents.set(nodeText(tenantId, newer), older)
  }
  return [...seen.values()]
    .map(({ tenantId, profile }) => ({ tenantId, from: profile, into: find(tenantId, profile) }))
    .filter(merge => merge.from !== merge.into)
}

function identityText(tenantId: number, identity: Identity): string {
  return `${tenantId} ${identity.kind} ${identity.value}`
}

function nodeText(tenantId: number, node: number): string {
  return `${tenantId} ${node}`
}

function linkText({ tenantId, a, b }: Link): string {
  return a < b ? `${tenantId} ${a} ${b}` : `${tenantId} ${b} ${a}`
}
