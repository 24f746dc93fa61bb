import type { Identifier, NodeKey } from '../../domain/identity/identity.ts'
import {
  type Cause,
  choosePrimary,
  chooseProfile,
  compareLinks,
  type LinkGroup,
  type LinkPlan,
  type Person,
  pairKey,
  planLinks,
} from '../../domain/identity/linking.ts'
import {
  allocateNodes,
  assignProfiles,
  bumpIdentityVersions,
  deleteSaleLinks,
  ensureIdentifiers,
  findProfiles,
  type IdentifierKey,
  loadIdentityVersions,
  loadLinks,
  loadNodeLinks,
  loadProfileNodes,
  MAX_NODES_OF_PROFILE,
  moveIdentifiers,
  moveProfiles,
  type NodePair,
  type ProfileKey,
  type StoredIdentifier,
  type StoredLink,
  type StoredNode,
  upsertLinks,
  verifyIdentifiers,
} from '../../store/identity/identities.ts'
import { rememberSalesOfProfiles } from '../deliveries/notify.ts'
import { prepareProfileLock, takeProfileLock } from '../profile-lock.ts'
import { type IdentifierMemory, type Learned, openMemory, type Transaction } from '../unit.ts'

/** Identifiers that appear together in one event or record. */
export type IdentifierGroup = {
  tenantId: number
  identifiers: Identifier[]
  /** From a record, a signed source, a server key or an operator, not from a public key. */
  verified: boolean
  cause: Cause
  receivedAt: Date
}

// About 10 MB.
const MAX_REMEMBERED = 50_000

export type Identities = {
  /**
   * Links the identifiers of each group, and finds the node of its first identifier. It changes identifiers, links and
   * profiles only: see `resolveNodes` for the effects on sales and accounts.
   */
  resolve(transaction: Transaction, groups: IdentifierGroup[]): Promise<Resolved>
}

type Resolved = ProfileChanges & {
  /** Per group, the node of its first identifier. Null if it has none. */
  nodes: (number | null)[]
}

export type ProfileChanges = {
  /** Profiles that gained nodes. */
  merged: ProfileKey[]
  /** Nodes of profiles that verified input split. */
  split: NodeKey[]
  /** A node of each changed profile. */
  changed: NodeKey[]
}

const NO_CHANGES: ProfileChanges = { merged: [], split: [], changed: [] }

export function openIdentities(): Identities {
  const memory = openMemory(() => new Map<number, IdentifierMemory>())

  /** Per tenant, what is remembered and still valid. */
  async function recall(transaction: Transaction, groups: IdentifierGroup[]): Promise<Map<number, IdentifierMemory>> {
    const remembered = memory(transaction)
    const tenantIds = [...new Set(groups.map(({ tenantId }) => tenantId))]
    const versions = await loadIdentityVersions(transaction.client, tenantIds)
    for (const tenantId of tenantIds) {
      const version = versions.get(tenantId) ?? 0
      const size = remembered.get(tenantId)?.nodes.size ?? 0
      if (remembered.get(tenantId)?.version !== version || size > MAX_REMEMBERED)
        remembered.set(tenantId, { version, nodes: new Map(), settled: new Set() })
    }
    return remembered
  }

  return {
    async resolve(transaction, groups) {
      const nodes: (number | null)[] = groups.map(() => null)
      if (groups.length === 0) return { nodes, ...NO_CHANGES }
      const remembered = await recall(transaction, groups)
      const open: { index: number; first: string; all: string }[] = []
      for (const [index, group] of groups.entries()) {
        if (group.identifiers.length === 0) continue
        const { nodes: known, settled } = remembered.get(group.tenantId)!
        const first = identifierText(group.identifiers[0]!)
        const all = settledKey(group)
        const node = known.get(first)
        if (node !== undefined && settled.has(all)) nodes[index] = node
        else open.push({ index, first, all })
      }
      if (open.length === 0) return { nodes, ...NO_CHANGES }
      const linked = await linkAll(
        transaction,
        open.map(({ index }) => groups[index]!),
      )
      for (const [i, { index, first, all }] of open.entries()) {
        const { tenantId } = groups[index]!
        const node = linked.nodes[i]!
        nodes[index] = node
        // The version of the tenant changed, so nothing of it may be remembered.
        if (linked.outdated.has(tenantId)) continue
        transaction.learned?.nodes.push({ memory: remembered.get(tenantId)!, first, all, node })
      }
      return { nodes, ...linked.changes }
    },
  }
}

/** Call after the commit. */
export function rememberNodes(learned: Learned['nodes']): void {
  for (const { memory, first, all, node } of learned) {
    memory.nodes.set(first, node)
    memory.settled.add(all)
  }
}

/** `outdated` are the tenants whose remembered nodes are no longer valid. */
type Linked = { nodes: number[]; changes: ProfileChanges; outdated: Set<number> }

/** Links the identifiers and writes the changes. Takes the profile lock only if there is something to write. */
async function linkAll(transaction: Transaction, groups: IdentifierGroup[]): Promise<Linked> {
  const { client } = transaction
  await prepareProfileLock(transaction)
  let loaded = await loadGroups(client, groups)
  const created = loaded.rows.flatMap(row => (row.isNew ? `${row.tenantId} ${row.node}` : []))
  if (created.length > 0) {
    transaction.newNodes ??= new Set()
    for (const node of created) transaction.newNodes.add(node)
  }
  const news = await findNews(client, loaded)
  if (news.groups.length === 0 && news.verified.length === 0)
    return { nodes: loaded.groups.map(({ members }) => members[0]!.node), changes: NO_CHANGES, outdated: new Set() }
  await takeProfileLock(transaction, new Set([...news.groups, ...news.verified].map(({ tenantId }) => tenantId)))
  // Another worker may have linked them while this one waited for the lock.
  loaded = await loadGroups(client, groups)
  const { groups: changing, verified, stored } = await findNews(client, loaded)
  const nodes = loaded.groups.map(({ members }) => members[0]!.node)
  let linked: Linked = { nodes, changes: NO_CHANGES, outdated: new Set() }
  if (changing.length > 0) {
    const profiles = changing.flatMap(({ members }) => members)
    const written = await derive(transaction, { profiles, groups: changing, stored })
    linked = { ...written, nodes }
    for (const [i, { index }] of changing.entries()) nodes[index] = written.nodes[i]!
  }
  if (verified.length > 0) await verifyIdentifiers(client, verified)
  return linked
}

type LoadedGroup = Omit<LinkGroup, 'members'> & { index: number; tenantId: number; members: StoredIdentifier[] }
type Loaded = { rows: StoredIdentifier[]; groups: LoadedGroup[] }

async function loadGroups(client: Transaction['client'], groups: IdentifierGroup[]): Promise<Loaded> {
  const wanted = new Map<string, IdentifierKey & { verified: boolean }>()
  for (const { tenantId, identifiers, verified } of groups)
    for (const identifier of identifiers) {
      const key = keyText(tenantId, identifier)
      const before = wanted.get(key)
      if (!before) wanted.set(key, { tenantId, ...identifier, verified })
      else if (verified) before.verified = true
    }
  const rows = await ensureIdentifiers(client, [...wanted.values()])
  const byKey = new Map(rows.map(row => [keyText(row.tenantId, row), row]))
  return {
    rows,
    groups: groups.map(({ tenantId, identifiers, verified, cause, receivedAt }, index) => ({
      ...{ index, tenantId, cause, isVerified: verified, at: receivedAt.getTime() },
      members: identifiers.map(identifier => byKey.get(keyText(tenantId, identifier))!),
    })),
  }
}

type News = { groups: LoadedGroup[]; verified: NodeKey[]; stored: Map<string, StoredLink> }

/** The groups with a link that is not stored yet, and the identifiers that are verified now. */
async function findNews(client: Transaction['client'], { groups }: Loaded): Promise<News> {
  const pairs = new Map<string, NodePair>()
  for (const { tenantId, members } of groups)
    for (const [x, y] of pairsOf(members)) {
      const [a, b] = x.node < y.node ? [x.node, y.node] : [y.node, x.node]
      pairs.set(pairKey(a, b), { tenantId, a, b })
    }
  const found = pairs.size > 0 ? await loadLinks(client, [...pairs.values()]) : []
  const stored = new Map(found.map(link => [pairKey(link.a, link.b), link]))
  const isNews = (group: LoadedGroup) =>
    pairsOf(group.members).some(([x, y]) => {
      const link = stored.get(pairKey(x.node, y.node))
      if (!link) return true
      if (link.isUndone) return false
      if (compareLinks({ ...group, a: link.a, b: link.b }, link) < 0) return true
      // The visitor id belongs to another person now, and returns.
      return y.kind === 'visitor' && (x.kind === 'user' || x.kind === 'contact') && x.profile !== y.profile
    })
  const verified = groups.flatMap(({ tenantId, members, isVerified }) =>
    members.flatMap(({ node, verified }) => (isVerified && !verified ? [{ tenantId, node }] : [])),
  )
  return { groups: groups.filter(isNews), verified, stored }
}

/** The primary identifier with each of the others. */
function pairsOf(members: StoredIdentifier[]): [StoredIdentifier, StoredIdentifier][] {
  const primary = choosePrimary(members)
  return members.flatMap(member => (member === primary ? [] : [[primary, member] as const])) as never
}

type Graph = { nodes: StoredNode[]; links: StoredLink[]; own: Set<number> }

// More profiles are not derived again when one of them changes.
const MAX_NEIGHBORS = 25
const MAX_ROUNDS = 3

/** These profiles, and those that a link connects with them. `own` are the former. */
async function loadGraph(client: Transaction['client'], profiles: ProfileKey[]): Promise<Graph> {
  const own = await loadProfileNodes(client, profiles)
  const links = await loadNodeLinks(client, own)
  const known = new Set(own.map(({ node }) => node))
  const ends = links.flatMap(({ tenantId, a, b }) =>
    [a, b].flatMap(node => (known.has(node) ? [] : [{ tenantId, node }])),
  )
  const found = ends.length > 0 ? await findProfiles(client, ends) : []
  const near = [...new Map(found.map(key => [key.profile, key])).values()].slice(0, MAX_NEIGHBORS)
  const others = near.length > 0 ? await loadProfileNodes(client, near) : []
  const more = others.length > 0 ? await loadNodeLinks(client, others) : []
  const all = new Map(
    [...links, ...more].map(link => [`${pairKey(link.a, link.b)} ${link.cause.kind === 'command'}`, link]),
  )
  return { nodes: [...own, ...others], links: [...all.values()], own: new Set(profiles.map(({ profile }) => profile)) }
}

type Derivation = {
  profiles: ProfileKey[]
  groups: LoadedGroup[]
  stored: ReadonlyMap<string, StoredLink>
  keep?: number
}

/** Derives these profiles and their neighbors, with the groups added, and writes what changed. */
async function derive(
  transaction: Transaction,
  { profiles, groups, stored, keep }: Derivation,
): Promise<Pick<Linked, 'changes' | 'outdated'> & { nodes: number[] }> {
  for (let round = 1, own = profiles; ; round++) {
    const graph = await loadGraph(transaction.client, own)
    const plan = planLinks(graph.nodes, graph.links, stored, groups)
    const assigned = assignPeople(plan.people, keep)
    // A neighbor that changes may change its own neighbors.
    const beyond = graph.nodes.filter(({ node, profile }) => !graph.own.has(profile) && assigned.has(node))
    if (beyond.length === 0 || round === MAX_ROUNDS) return writePlan(transaction, graph, plan, assigned, groups)
    own = [...own, ...beyond]
  }
}

/** Derives profiles after links were written or undone. The caller holds the profile lock. */
export async function deriveProfiles(
  transaction: Transaction,
  profiles: ProfileKey[],
  keep?: number,
): Promise<ProfileChanges> {
  const verified = { stored: new Map(), groups: [] }
  const { changes } = await derive(transaction, { profiles, ...verified, ...(keep !== undefined && { keep }) })
  return changes
}

/** Undoes the links that these orders caused: several visitors named them. */
export async function unlinkSales(
  transaction: Transaction,
  orders: { tenantId: number; orderId: string }[],
): Promise<ProfileChanges> {
  const nodes = await deleteSaleLinks(transaction.client, orders)
  if (nodes.length === 0) return NO_CHANGES
  await takeProfileLock(transaction, new Set(nodes.map(({ tenantId }) => tenantId)))
  const changes = await deriveProfiles(transaction, await findProfiles(transaction.client, nodes))
  return { ...changes, split: [] }
}

/** The new profile of each node that changes. `keep` is the id of its person, if a person has that node. */
function assignPeople(people: Person[], keep?: number): Map<number, number> {
  const known = new Set<number>()
  for (const { nodes } of people)
    for (const { kind, profile } of nodes) if (kind === 'user' || kind === 'contact') known.add(profile)
  const assigned = new Map<number, number>()
  for (const person of people) {
    const isKept = person.nodes.some(({ node }) => node === keep)
    const profile = isKept ? keep! : chooseProfile(person, id => known.has(id))
    for (const own of person.nodes) if (own.profile !== profile) assigned.set(own.node, profile)
  }
  return assigned
}

async function writePlan(
  transaction: Transaction,
  graph: Graph,
  plan: LinkPlan,
  assigned: Map<number, number>,
  groups: LoadedGroup[],
): Promise<Pick<Linked, 'changes' | 'outdated'> & { nodes: number[] }> {
  const { client } = transaction
  const tenants = new Map(graph.nodes.map(({ node, tenantId }) => [node, tenantId]))
  const people = new Map(plan.people.flatMap(person => person.nodes.map(({ node }) => [node, person])))
  const changing = graph.nodes.filter(({ node }) => assigned.has(node))
  await rememberSalesOfContacts(transaction, graph, changing, assigned, people)
  const allocated = plan.moves.length > 0 ? await allocateNodes(client, plan.moves.length) : []
  const written = new Map(plan.moves.map(({ to }, i) => [to, allocated[i]!]))
  const nodeAt = (node: number) => written.get(node) ?? node
  for (const { from, to } of plan.moves) tenants.set(to, tenants.get(from)!)
  if (plan.moves.length > 0) await writeMoves(client, plan, assigned, people, { tenants, nodeAt })
  if (changing.length > 0) {
    const rows = changing.map(({ tenantId, node }) => ({ tenantId, node, profile: assigned.get(node)! }))
    await assignProfiles(client, rows)
  }
  const large = largeProfiles(graph, assigned)
  if (large.length > 0) await moveProfiles(client, large)
  if (plan.links.length > 0)
    await upsertLinks(
      client,
      plan.links.map(link => {
        const [x, y] = [nodeAt(link.a), nodeAt(link.b)]
        return { ...link, tenantId: tenants.get(link.a)!, a: Math.min(x, y), b: Math.max(x, y) }
      }),
    )
  const split = splitNodes(graph, assigned)
  const outdated = new Set([
    ...split.map(({ tenantId }) => tenantId),
    ...plan.moves.map(({ from }) => tenants.get(from)!),
  ])
  if (outdated.size > 0) await bumpIdentityVersions(client, [...outdated].sort())
  const verified = new Set(groups.flatMap(({ tenantId, isVerified }) => (isVerified ? tenantId : [])))
  const merged = new Map(
    changing.map(({ tenantId, node }) => [assigned.get(node)!, { tenantId, profile: assigned.get(node)! }]),
  )
  return {
    nodes: plan.nodes.map(nodeAt),
    outdated,
    changes: {
      merged: [...merged.values()],
      // A public key cannot make workers read all events of a tenant.
      split: groups.length === 0 ? split : split.filter(({ tenantId }) => verified.has(tenantId)),
      changed: [...changing.map(({ tenantId, node }) => ({ tenantId, node })), ...split],
    },
  }
}

/** Nodes of profiles that are divided among several people. */
function splitNodes({ nodes }: Graph, assigned: Map<number, number>): NodeKey[] {
  return [...Map.groupBy(nodes, ({ profile }) => profile).values()].flatMap(own => {
    const profiles = new Set(own.map(({ node, profile }) => assigned.get(node) ?? profile))
    return profiles.size > 1 ? own.map(({ tenantId, node }) => ({ tenantId, node })) : []
  })
}

/** Profiles that were read partially and become part of another one. */
function largeProfiles({ nodes }: Graph, assigned: Map<number, number>) {
  return [...Map.groupBy(nodes, ({ profile }) => profile).values()].flatMap(own => {
    const { tenantId, node, profile } = own[0]!
    const into = assigned.get(node)
    if (own.length < MAX_NODES_OF_PROFILE || into === undefined) return []
    return own.every(other => assigned.get(other.node) === into) ? [{ tenantId, from: profile, into }] : []
  })
}

/** Sales of a profile may become sales of a contact, or cease to be. */
async function rememberSalesOfContacts(
  transaction: Transaction,
  { nodes }: Graph,
  changing: StoredNode[],
  assigned: Map<number, number>,
  people: Map<number, Person>,
): Promise<void> {
  const withContact = new Set(nodes.flatMap(({ kind, profile }) => (kind === 'contact' ? profile : [])))
  const profiles = changing.flatMap(({ tenantId, node, profile }) =>
    people.get(node)!.hasContact || withContact.has(profile)
      ? [profile, assigned.get(node)!].map(profile => ({ tenantId, profile }))
      : [],
  )
  if (profiles.length > 0) await rememberSalesOfProfiles(transaction, profiles)
}

/** In one statement, however often an identifier moves: a batch can move one back and forth thousands of times. */
async function writeMoves(
  client: Transaction['client'],
  { moves }: LinkPlan,
  assigned: Map<number, number>,
  people: Map<number, Person>,
  { tenants, nodeAt }: { tenants: Map<number, number>; nodeAt(node: number): number },
): Promise<void> {
  const first = new Map<number, number>()
  for (const { from, to } of moves) first.set(to, first.get(from) ?? from)
  const movedOn = new Set(moves.map(({ from }) => from))
  await moveIdentifiers(
    client,
    moves.map(({ from, to }) => ({
      tenantId: tenants.get(first.get(to)!)!,
      first: first.get(to)!,
      from: nodeAt(from),
      to: nodeAt(to),
      profile: assigned.get(to) ?? people.get(to)!.nodes.find(({ node }) => node === to)!.profile,
      isVerified: people.get(to)!.nodes.find(({ node }) => node === to)!.isVerified,
      isLast: !movedOn.has(to),
    })),
  )
}

function identifierText({ kind, value }: Identifier): string {
  return `${kind} ${value}`
}

function keyText(tenantId: number, identifier: Identifier): string {
  return `${tenantId} ${identifierText(identifier)}`
}

function settledKey({ identifiers, verified }: IdentifierGroup): string {
  return `${verified ? '+' : '-'}${identifiers.map(identifierText).join('\n')}`
}
