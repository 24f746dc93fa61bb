import type { Identifier, NodeKey } from '../../domain/identity/identifiers.ts'
import {
  type Cause,
  choosePrimary,
  chooseProfile,
  compareLinks,
  findVisitorNode,
  type LinkGroup,
  type LinkPlan,
  linkKey,
  mayMoveVisitor,
  type Person,
  pairKey,
  planLinks,
  type VisitorId,
  type VisitorNode,
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
  loadVisitorNodes,
  MAX_NODES_OF_PROFILE,
  moveProfiles,
  type NodePair,
  type OrderBuyer,
  type ProfileKey,
  type RecordPairs,
  replaceRecordLinks,
  type StoredIdentifier,
  type StoredLink,
  type StoredNode,
  shareRecordLinks,
  upsertLinks,
  type VerifiedNode,
  verifyIdentifiers,
  withdrawRecordLinks,
  writeVisitorNodes,
} from '../../store/identity/identities.ts'
import { rememberSalesOfProfiles } from '../deliveries/notify.ts'
import { prepareProfileLock, takeProfileLock } from '../profile-lock.ts'
import { type IdentifierMemory, type Learned, openMemory, type Transaction } from '../unit.ts'

/** Identifiers that appear together in one event or record. Those of a record replace the ones that it had before. */
export type IdentifierGroup = {
  tenantId: number
  identifiers: Identifier[]
  /** From a record, a signed source, a server key or an operator, not from a public tracking key. */
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
  /** The nodes that changed their profile, and those that were in one with them. */
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
        remembered.set(tenantId, { version, nodes: new Map() })
    }
    return remembered
  }

  return {
    async resolve(transaction, groups) {
      const nodes: (number | null)[] = groups.map(() => null)
      if (groups.length === 0) return { nodes, ...NO_CHANGES }
      const remembered = await recall(transaction, groups)
      const known = groups.map(group => recallNode(remembered.get(group.tenantId)!, group))
      // Visitor ids that may get another node, which their later groups then have.
      const moving = new Set(
        groups.flatMap((group, i) => (known[i] === null && group.identifiers.length > 1 ? visitorKeys(group) : [])),
      )
      const open: number[] = []
      for (const [index, group] of groups.entries()) {
        if (group.cause.kind !== 'record' && group.identifiers.length === 0) continue
        const mayMove = moving.size > 0 && visitorKeys(group).some(key => moving.has(key))
        if (known[index] !== null && !mayMove) nodes[index] = known[index]!
        else open.push(index)
      }
      if (open.length === 0) return { nodes, ...NO_CHANGES }
      const linked = await linkAll(
        transaction,
        open.map(index => groups[index]!),
      )
      for (const [i, index] of open.entries()) {
        const { tenantId, cause } = groups[index]!
        const node = linked.nodes[i] ?? null
        nodes[index] = node
        // If the version of the tenant changed, nothing of it may be remembered.
        const isLasting = cause.kind !== 'record' && linked.isLasting[i] && !linked.outdated.has(tenantId)
        if (node !== null && isLasting)
          transaction.learned?.nodes.push({ memory: remembered.get(tenantId)!, group: groupText(groups[index]!), node })
      }
      return { nodes, ...linked.changes }
    },
  }
}

function recallNode({ nodes }: IdentifierMemory, group: IdentifierGroup): number | null {
  if (group.cause.kind === 'record' || group.identifiers.length === 0) return null
  return nodes.get(groupText(group)) ?? null
}

/** Call after the commit. */
export function rememberNodes(learned: Learned['nodes']): void {
  for (const { memory, group, node } of learned) memory.nodes.set(group, node)
}

/** `outdated` are the tenants whose remembered nodes are no longer valid. */
type Linked = { nodes: (number | null)[]; changes: ProfileChanges; outdated: Set<number> }
/** `pairs`: per group, those of its identifiers. `isLasting`: per group, whether its node may be remembered. */
type LinkedGroups = Linked & { pairs: RecordPairs['pairs'][]; isLasting: boolean[] }

/** Links the identifiers and writes the changes. */
async function linkAll(
  transaction: Transaction,
  groups: IdentifierGroup[],
): Promise<Linked & Pick<LinkedGroups, 'isLasting'>> {
  const { pairs, ...linked } = await linkNews(transaction, groups)
  const records = groups.flatMap(({ tenantId, cause, receivedAt }, i) =>
    cause.kind === 'record' ? [{ tenantId, record: cause.id, at: receivedAt.getTime(), pairs: pairs[i]! }] : [],
  )
  if (records.length === 0) return linked
  const { changes, outdated } = await replacePairs(transaction, records)
  return {
    ...linked,
    outdated: new Set([...linked.outdated, ...outdated]),
    changes: {
      merged: [...linked.changes.merged, ...changes.merged],
      split: [...linked.changes.split, ...changes.split],
      changed: [...linked.changes.changed, ...changes.changed],
    },
  }
}

/** Withdraws the links that records no longer have. */
async function replacePairs(
  transaction: Transaction,
  records: RecordPairs[],
): Promise<Pick<Linked, 'changes' | 'outdated'>> {
  const { client } = transaction
  const stale = await replaceRecordLinks(client, records)
  if (stale.length === 0) return { changes: NO_CHANGES, outdated: new Set() }
  await takeProfileLock(transaction, new Set(stale.map(({ tenantId }) => tenantId)))
  await withdrawRecordLinks(client, stale)
  const nodes = stale.flatMap(({ tenantId, a, b }) => [a, b].map(node => ({ tenantId, node })))
  return derive(transaction, { profiles: await findProfiles(client, nodes), stored: new Map(), groups: [] })
}

/** Takes the profile lock only if there is something to write. */
async function linkNews(transaction: Transaction, groups: IdentifierGroup[]): Promise<LinkedGroups> {
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
    return { ...unchanged(loaded, news.stored), changes: NO_CHANGES, outdated: new Set() }
  await takeProfileLock(transaction, new Set([...news.groups, ...news.verified].map(({ tenantId }) => tenantId)))
  // Another worker may have linked them while this one waited for the lock, except new ones, which no other can see.
  loaded = await loadGroups(
    client,
    groups,
    loaded.rows.filter(({ isNew }) => isNew),
  )
  const { groups: changing, verified, stored } = await findNews(client, loaded)
  const { nodes, pairs, isLasting } = unchanged(loaded, stored)
  let linked: Linked = { nodes, changes: NO_CHANGES, outdated: new Set() }
  if (changing.length > 0) {
    const members = changing.flatMap(({ members }) => members)
    const created = new Map(members.filter(({ isNew }) => isNew).map(member => [member.profile, toNode(member)]))
    const profiles = [...members, ...profilesOfVisitors(changing)].filter(({ profile }) => !created.has(profile))
    const written = await derive(transaction, { profiles, created: [...created.values()], groups: changing, stored })
    linked = { ...written, nodes }
    for (const [i, { index, tenantId, members, isVerified, cause }] of changing.entries()) {
      nodes[index] = written.nodes[i]!
      pairs[index] = written.pairs[i]!
      if (!isVerified) continue
      const byInput = cause.kind !== 'record'
      const known = new Set(members.flatMap(own => ((byInput ? own.verifiedByInput : own.verified) ? own.node : [])))
      for (const node of written.seen[i]!) if (!known.has(node)) verified.push({ tenantId, node, byInput })
    }
  }
  if (verified.length > 0) await verifyIdentifiers(client, verified)
  return { ...linked, pairs, isLasting }
}

/** The result of groups that change nothing. A visitor id with several nodes is not remembered. */
function unchanged({ groups }: Loaded, stored: News['stored']): Pick<LinkedGroups, 'nodes' | 'pairs' | 'isLasting'> {
  const nodeOf = ({ members, cause }: LoadedGroup) => {
    const [primary, first] = [choosePrimary(members), members[0]!]
    const seen = nodeSeenWith(primary, first)
    return stored.get(linkKey(primary.node, seen, cause))?.isUndone === false ? seen : first.node
  }
  return {
    isLasting: groups.map(({ members }) => members.every(({ visitor }) => !visitor || visitor.nodes.length === 1)),
    nodes: groups.map(group => (group.members.length === 0 ? null : nodeOf(group))),
    pairs: groups.map(({ members }) => {
      const pairs = pairsOf(members).map(([x, y]) => sortPair(x.node, nodeSeenWith(x, y)))
      return members.length === 1 ? [sortPair(members[0]!.node, members[0]!.node)] : pairs
    }),
  }
}

const sortPair = (x: number, y: number) => ({ a: Math.min(x, y), b: Math.max(x, y) })

/** Those of the nodes that a visitor id may get, or be linked with. It may have hundreds. */
function profilesOfVisitors(groups: LoadedGroup[]): ProfileKey[] {
  const primaries = new Set(groups.map(({ members }) => choosePrimary(members).node))
  const visitors = new Map<VisitorId, number>(
    groups.flatMap(({ tenantId, members }) =>
      members.flatMap(({ visitor }) => (visitor ? [[visitor, tenantId] as const] : [])),
    ),
  )
  return [...visitors].flatMap(([{ nodes, active }, tenantId]) => {
    const now = nodes.find(({ node }) => node === active)!
    const isNear = ({ seenWith }: VisitorNode) =>
      seenWith !== null && (primaries.has(seenWith) || seenWith === now.seenWith || seenWith === now.seenAfter)
    return nodes.filter((own, i) => i === 0 || isNear(own)).map(({ profile }) => ({ tenantId, profile }))
  })
}

type LoadedGroup = Omit<LinkGroup, 'members'> & { index: number; tenantId: number; members: StoredIdentifier[] }
type Loaded = { rows: StoredIdentifier[]; groups: LoadedGroup[] }

function toNode({ tenantId, kind, value, node, profile, verified }: StoredIdentifier): StoredNode {
  return { tenantId, kind, value, node, profile, isVerified: verified, isRetired: false, seenAfter: null }
}

/** `created`: identifiers that this transaction has inserted. */
async function loadGroups(
  client: Transaction['client'],
  groups: IdentifierGroup[],
  created: StoredIdentifier[] = [],
): Promise<Loaded> {
  const wanted = new Map<string, IdentifierKey & { verified: boolean; verifiedByInput: boolean }>()
  for (const { tenantId, identifiers, verified, cause } of groups)
    for (const identifier of identifiers) {
      const key = keyText(tenantId, identifier)
      const before = wanted.get(key)
      const verifiedByInput = verified && cause.kind !== 'record'
      if (!before) wanted.set(key, { tenantId, ...identifier, verified, verifiedByInput })
      else if (identifier.kind === 'visitor') {
        // Its groups may be about several nodes. Those of verified groups are marked when they are known.
        before.verified &&= verified
        before.verifiedByInput &&= verifiedByInput
      } else {
        before.verified ||= verified
        before.verifiedByInput ||= verifiedByInput
      }
    }
  for (const row of created) wanted.delete(keyText(row.tenantId, row))
  const found = wanted.size > 0 ? await ensureIdentifiers(client, [...wanted.values()]) : []
  await addVisitorNodes(client, found)
  const rows = [...created, ...found]
  const byKey = new Map(rows.map(row => [keyText(row.tenantId, row), row]))
  return {
    rows,
    groups: groups.map(({ tenantId, identifiers, verified, cause, receivedAt }, index) => ({
      ...{ index, tenantId, cause, isVerified: verified, at: receivedAt.getTime() },
      members: identifiers.map(identifier => byKey.get(keyText(tenantId, identifier))!),
    })),
  }
}

async function addVisitorNodes(client: Transaction['client'], rows: StoredIdentifier[]): Promise<void> {
  const visitors = rows.filter(({ kind }) => kind === 'visitor')
  const known = visitors.filter(({ isNew }) => !isNew)
  const found = known.length > 0 ? await loadVisitorNodes(client, known) : []
  const nodes = Map.groupBy(found, ({ tenantId, value }) => `${tenantId} ${value}`)
  for (const row of visitors) {
    const { node, profile } = row
    const own = nodes.get(`${row.tenantId} ${row.value}`)
    const first = { node, profile, seenWith: null, seenAfter: null, isNamed: false, isVerified: false }
    row.visitor = { nodes: own ?? [first], active: node }
  }
}

type News = { groups: LoadedGroup[]; verified: VerifiedNode[]; stored: Map<string, StoredLink> }

/** The groups with a link that is not stored yet, and the identifiers that are verified now. */
async function findNews(client: Transaction['client'], { groups }: Loaded): Promise<News> {
  const pairs = new Map<string, NodePair>()
  const ofRecords = new Map<string, NodePair>()
  for (const { tenantId, members, cause } of groups)
    for (const [x, y] of pairsOf(members))
      for (const node of x.isNew || y.isNew ? [] : new Set([y.node, nodeSeenWith(x, y)])) {
        const key = pairKey(x.node, node)
        pairs.set(key, { tenantId, ...sortPair(x.node, node) })
        if (cause.kind === 'record') ofRecords.set(key, pairs.get(key)!)
      }
  if (ofRecords.size > 0) await shareRecordLinks(client, [...ofRecords.values()])
  const found = pairs.size > 0 ? await loadLinks(client, [...pairs.values()]) : []
  const stored = new Map(found.map(link => [linkKey(link.a, link.b, link.cause), link]))
  const isNews = (group: LoadedGroup) =>
    pairsOf(group.members).some(([x, y]) => {
      const node = nodeSeenWith(x, y)
      const link = stored.get(linkKey(x.node, node, group.cause))
      if (!link) return true
      if (link.isUndone) return link.mayReturn && group.isVerified
      if (compareLinks({ ...group, a: link.a, b: link.b }, link) < 0) return true
      // The visitor id was seen with another identifier in the meantime, and returns.
      const mayMove = y.visitor !== undefined && mayMoveVisitor(y.visitor, group.isVerified)
      return node !== y.node && mayMove && group.cause.kind !== 'record' && group.cause.kind !== 'sale'
    })
  const news = groups.filter(isNews)
  const visitorsOf = ({ members }: LoadedGroup) => members.flatMap(({ visitor }) => visitor ?? [])
  // Also the other groups of their visitor ids, because these may have a new node.
  const visitors = new Set(news.flatMap(visitorsOf))
  const isConcerned = (group: LoadedGroup) => visitorsOf(group).some(visitor => visitors.has(visitor))
  const changing = new Set([...news, ...groups.filter(isConcerned)])
  // The nodes of visitor ids in these groups are known after their links.
  const verified = groups.flatMap(group => {
    const { tenantId, members, isVerified, cause } = group
    const byInput = cause.kind !== 'record'
    const isKnown = (member: StoredIdentifier) => (byInput ? member.verifiedByInput : member.verified)
    if (!isVerified) return []
    const primary = choosePrimary(members)
    return members
      .filter(member => !(member.visitor && changing.has(group)))
      .filter(member => !isKnown(member) && isActiveWith(primary, member))
      .map(({ node }) => ({ tenantId, node, byInput }))
  })
  return { groups: groups.filter(group => changing.has(group)), verified, stored }
}

/** Whether the group is about the active node of a visitor id, and not about another one or a new one. */
function isActiveWith(primary: StoredIdentifier, { node, visitor }: StoredIdentifier): boolean {
  if (!visitor || primary.kind === 'visitor') return true
  const { found } = findVisitorNode(visitor, primary)
  return found ? found.node === node : visitor.nodes.find(own => own.node === node)!.seenWith === null
}

/** The node that a visitor id has with the primary identifier, else its active node; of other identifiers, their node. */
function nodeSeenWith(primary: StoredIdentifier, { node, visitor }: StoredIdentifier): number {
  if (!visitor || primary.kind === 'visitor') return node
  return findVisitorNode(visitor, primary).found?.node ?? node
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

/** These profiles, those that a link connects with them, and new nodes, which have no links yet. `own`: without the second. */
async function loadGraph(client: Transaction['client'], profiles: ProfileKey[], created: StoredNode[]): Promise<Graph> {
  const own = profiles.length > 0 ? await loadProfileNodes(client, profiles) : []
  const links = own.length > 0 ? await loadNodeLinks(client, own) : []
  const known = new Set(own.map(({ node }) => node))
  const ends = links.flatMap(({ tenantId, a, b }) =>
    [a, b].flatMap(node => (known.has(node) ? [] : [{ tenantId, node }])),
  )
  const found = ends.length > 0 ? await findProfiles(client, ends) : []
  const near = [...new Map(found.map(key => [key.profile, key])).values()].slice(0, MAX_NEIGHBORS)
  const others = near.length > 0 ? await loadProfileNodes(client, near) : []
  const more = others.length > 0 ? await loadNodeLinks(client, others) : []
  const all = new Map([...links, ...more].map(link => [linkKey(link.a, link.b, link.cause), link]))
  return {
    nodes: [...own, ...others, ...created],
    links: [...all.values()],
    own: new Set([...profiles, ...created].map(({ profile }) => profile)),
  }
}

/** `seen`: per group, the nodes of its visitor ids. */
type Written = Linked & Pick<LinkedGroups, 'pairs'> & { seen: number[][] }

type Derivation = {
  profiles: ProfileKey[]
  created?: StoredNode[]
  groups: LoadedGroup[]
  stored: ReadonlyMap<string, StoredLink>
  keep?: number
}

/** Derives these profiles and their neighbors, with the groups added, and writes what changed. */
async function derive(
  transaction: Transaction,
  { profiles, created = [], groups, stored, keep }: Derivation,
): Promise<Written> {
  for (let round = 1, own = profiles; ; round++) {
    const graph = await loadGraph(transaction.client, own, created)
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
  const nothingNew = { stored: new Map(), groups: [] }
  const { changes } = await derive(transaction, { profiles, ...nothingNew, ...(keep !== undefined && { keep }) })
  return changes
}

/** Undoes the links that these orders caused, except those with the buyer: the contact that the order still names. */
export async function unlinkSales(transaction: Transaction, orders: OrderBuyer[]): Promise<ProfileChanges> {
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
): Promise<Written> {
  const { client } = transaction
  const tenants = new Map(graph.nodes.map(({ node, tenantId }) => [node, tenantId]))
  const people = new Map(plan.people.flatMap(person => person.nodes.map(({ node }) => [node, person])))
  const changing = graph.nodes.filter(({ node }) => assigned.has(node))
  await rememberSalesOfContacts(transaction, graph, changing, assigned, people)
  const allocated = plan.created.length > 0 ? await allocateNodes(client, plan.created.length) : []
  const written = new Map(plan.created.map(({ node }, i) => [node, allocated[i]!]))
  const nodeAt = (node: number) => written.get(node) ?? node
  for (const { from, node } of plan.created) tenants.set(node, tenants.get(from)!)
  await writeVisitorNodes(
    client,
    plan.changed.map(change => ({ ...change, tenantId: tenants.get(change.node)! })),
    plan.created.map(created => {
      const { profile } = people.get(created.node)!.nodes.find(({ node }) => node === created.node)!
      const own = { node: nodeAt(created.node), profile: nodeAt(assigned.get(created.node) ?? profile) }
      return { ...created, ...own, tenantId: tenants.get(created.node)! }
    }),
  )
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
        return { ...link, tenantId: tenants.get(link.a)!, ...sortPair(nodeAt(link.a), nodeAt(link.b)) }
      }),
    )
  const split = splitNodes(graph, assigned)
  const outdated = new Set([
    ...split.map(({ tenantId }) => tenantId),
    ...plan.created.map(({ from }) => tenants.get(from)!),
  ])
  if (outdated.size > 0) await bumpIdentityVersions(client, [...outdated])
  const verified = new Set(groups.flatMap(({ tenantId, isVerified }) => (isVerified ? tenantId : [])))
  const merged = new Map(
    changing.map(({ tenantId, node }) => [assigned.get(node)!, { tenantId, profile: assigned.get(node)! }]),
  )
  return {
    nodes: plan.nodes.map(node => (node === null ? null : nodeAt(node))),
    pairs: plan.pairs.map(own => own.map(([x, y]) => sortPair(nodeAt(x), nodeAt(y)))),
    seen: plan.seen.map(own => own.map(nodeAt)),
    outdated,
    changes: {
      merged: [...merged.values()],
      // A public tracking key cannot make workers read all events of a tenant.
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

function keyText(tenantId: number, { kind, value }: Identifier): string {
  return `${tenantId} ${kind} ${value}`
}

function visitorKeys({ tenantId, identifiers }: IdentifierGroup): string[] {
  return identifiers.flatMap(identifier => (identifier.kind === 'visitor' ? keyText(tenantId, identifier) : []))
}

/** With lengths, because a value may contain any characters, also those of another identifier. */
function groupText({ identifiers, verified }: IdentifierGroup): string {
  let text = verified ? '+' : '-'
  for (const { kind, value } of identifiers) text += `${kind}${value.length} ${value}`
  return text
}
