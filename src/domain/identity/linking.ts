import type { Identifier, IdentifierKind } from './identifiers.ts'

/**
 * Decides which identifiers share a profile. Every pair of identifiers that appeared together is stored as a link, verified
 * or unverified (decisions.md §3). The profiles are a function of the stored links: the order in which they arrived does
 * not matter. A link between two profiles is a claim: it is stored and shown, and connects nothing.
 */

/** The limit of unverified identifiers in a profile, and of unverified links of an identifier. Verified ones have no limit. */
export const MAX_UNVERIFIED = 200

/** Why a link exists. Stored with it, so that it can be explained and undone. */
export type Cause = { kind: 'event' | 'record' | 'sale' | 'command'; id: string }

/**
 * A node of the identity graph. Events of an identifier point to its node. A visitor id has one node per identifier that it
 * was seen with; all but the latest are retired. `seenAfter`: see `VisitorNode`.
 */
export type GraphNode = Identifier & {
  node: number
  profile: number
  isVerified: boolean
  isRetired: boolean
  seenAfter: number | null
}

/** Two nodes that appeared together. `at`: when the first input that says so was received. */
export type GraphLink = { a: number; b: number; isVerified: boolean; at: number; cause: Cause }

/** Links of one pair with different origins are stored beside each other. Removing one restores the former state. */
export type Origin = 'event' | 'record' | 'command'

export function originOf({ kind }: Cause): Origin {
  return kind === 'record' || kind === 'command' ? kind : 'event'
}

/** Whether the first link takes precedence: verified before unverified, sales last, then the one received first. */
export function compareLinks(x: GraphLink, y: GraphLink): number {
  if (x.isVerified !== y.isVerified) return x.isVerified ? -1 : 1
  if ((x.cause.kind === 'sale') !== (y.cause.kind === 'sale')) return x.cause.kind === 'sale' ? 1 : -1
  return x.at - y.at || (x.cause.id < y.cause.id ? -1 : x.cause.id > y.cause.id ? 1 : 0)
}

/** The identifier that the others of its group are linked to: a user id, else a contact id, else an e-mail address. */
export function choosePrimary<T extends { kind: IdentifierKind }>(identifiers: T[]): T {
  const find = (wanted: IdentifierKind) => identifiers.find(({ kind }) => kind === wanted)
  return find('user') ?? find('contact') ?? find('email') ?? identifiers[0]!
}

/** A set of nodes that belong to one person. */
export type Person = { nodes: GraphNode[]; hasUser: boolean; hasContact: boolean }

/** A person with a user id or a contact id, and not just a browser or an address. */
export function isKnown({ hasUser, hasContact }: Pick<Person, 'hasUser' | 'hasContact'>): boolean {
  return hasUser || hasContact
}

type People = {
  personOf(node: number): Person
  all(): Person[]
  add(node: GraphNode): void
  join(a: number, b: number): void
}

function startPeople(nodes: GraphNode[]): People {
  const people = new Map<number, Person>()
  const add = (own: GraphNode) =>
    people.set(own.node, { nodes: [own], hasUser: own.kind === 'user', hasContact: own.kind === 'contact' })
  for (const own of nodes) add(own)
  return {
    add,
    personOf: node => people.get(node)!,
    all: () => [...new Set(people.values())],
    join(a, b) {
      let [into, from] = [people.get(a)!, people.get(b)!]
      if (into === from) return
      if (into.nodes.length < from.nodes.length) [into, from] = [from, into]
      for (const own of from.nodes) {
        into.nodes.push(own)
        people.set(own.node, into)
      }
      into.hasUser ||= from.hasUser
      into.hasContact ||= from.hasContact
    },
  }
}

/**
 * Derives people from their links, in the order of decisions.md §6: verified links, then user ids with contacts (rule 2),
 * then visitors (rule 1), then e-mail addresses of no contact (rule 3). Within a step, `compareLinks` decides.
 */
function derivePeople(nodes: GraphNode[], links: GraphLink[]): People {
  const people = startPeople(nodes)
  const kinds = new Map(nodes.map(({ node, kind }) => [node, kind]))
  // One message can name several identifiers at the same time. Their values decide, because nodes depend on the order of arrival.
  const texts = new Map(nodes.map(({ node, kind, value }) => [node, `${kind} ${value}`]))
  const pairText = ({ a, b }: GraphLink) => [texts.get(a), texts.get(b)].sort().join('\n')
  const ordered = links
    .filter(({ a, b }) => kinds.has(a) && kinds.has(b))
    .sort((x, y) => compareLinks(x, y) || (pairText(x) < pairText(y) ? -1 : 1))
  const isVisitor = (node: number) => kinds.get(node) === 'visitor'
  for (const { a, b, isVerified } of ordered) if (isVerified && !isVisitor(a) && !isVisitor(b)) people.join(a, b)
  for (const { user, email } of namedAddresses(ordered, nodes))
    if (areOnePerson(people.personOf(user), people.personOf(email))) people.join(user, email)
  const isKnownNode = (node: number) => isKnown(people.personOf(node))
  for (const { a, b } of ordered) {
    if (isVisitor(a) === isVisitor(b)) continue
    const [visitor, other] = isVisitor(a) ? [a, b] : [b, a]
    if (isKnownNode(other) && !isKnownNode(visitor)) people.join(visitor, other)
  }
  for (const { a, b } of ordered)
    if (isVisitor(a) && isVisitor(b) && !(isKnownNode(a) && isKnownNode(b))) people.join(a, b)
  joinFreeAddresses(people, ordered, kinds)
  return people
}

/** Rule 3. An address that no verified link connects with a known person is free. */
function joinFreeAddresses(people: People, ordered: GraphLink[], kinds: Map<number, IdentifierKind>): void {
  const free = new Set<number>()
  for (const [node, kind] of kinds) if (kind === 'email' && !isKnown(people.personOf(node))) free.add(node)
  if (free.size === 0) return
  for (const { a, b, isVerified } of ordered) {
    const [email, other] = free.has(a) ? [a, b] : [b, a]
    const kind = kinds.get(other)
    if (!free.has(email) || (kind !== 'user' && kind !== 'visitor')) continue
    const [own, its] = [people.personOf(email), people.personOf(other)]
    if (isKnown(own) && isKnown(its)) continue
    if (!isVerified && (own.hasContact || its.hasContact)) continue
    people.join(email, other)
  }
}

/**
 * Rule 2: a user id without a contact, and a contact without a user id. An address that verified input names for the user
 * id takes precedence over that of the contact.
 */
function areOnePerson(user: Person, contact: Person): boolean {
  const hasVerifiedAddress = user.nodes.some(({ kind }) => kind === 'email')
  return user.hasUser && !user.hasContact && !hasVerifiedAddress && contact.hasContact && !contact.hasUser
}

/**
 * User ids and the addresses that belong to them: those that verified visitors seen with them named, those that they named,
 * then those that other visitors seen with them named. The one received first comes first.
 */
function namedAddresses(ordered: GraphLink[], nodes: GraphNode[]): { user: number; email: number; at: number }[] {
  const byNode = new Map(nodes.map(own => [own.node, own]))
  const named: { user: number; email: number; at: number }[] = []
  const byVisitors: typeof named = []
  const byVerifiedVisitors: typeof named = []
  type Seen = { node: number; at: number; seenAfter: number | null; isVerified: boolean }
  const visitors = new Map<string, { users: Seen[]; emails: Seen[] }>()
  for (const { a, b, at, isVerified } of ordered) {
    const [x, y] = [byNode.get(a)!, byNode.get(b)!].sort((x, y) => kindOrder(x.kind) - kindOrder(y.kind)) as [
      GraphNode,
      GraphNode,
    ]
    if (x.kind === 'user' && y.kind === 'email') named.push({ user: x.node, email: y.node, at })
    if (y.kind !== 'visitor' || x.kind === 'contact' || x.kind === 'visitor') continue
    const own = visitors.get(y.value) ?? { users: [], emails: [] }
    visitors.set(y.value, own)
    own[x.kind === 'user' ? 'users' : 'emails'].push({ node: x.node, at, seenAfter: y.seenAfter, isVerified })
  }
  // An address belongs to the user id that the visitor id was seen with before, else to the first one. Verified input takes
  // precedence.
  for (const { users, emails } of visitors.values())
    for (const email of emails) {
      const before = email.seenAfter === null ? users[0] : users.find(({ node }) => node === email.seenAfter)
      const isOverridden = email.isVerified && !before?.isVerified
      const user = (isOverridden && users.find(({ isVerified }) => isVerified)) || before
      if (!user) continue
      const pairs = user.isVerified && email.isVerified ? byVerifiedVisitors : byVisitors
      pairs.push({ user: user.node, email: email.node, at: Math.max(user.at, email.at) })
    }
  // Stable: pairs of the same time stay in the order of their links.
  return [byVerifiedVisitors, named, byVisitors].flatMap(pairs => pairs.sort((x, y) => x.at - y.at))
}

function kindOrder(kind: IdentifierKind): number {
  return ['user', 'contact', 'email', 'visitor'].indexOf(kind)
}

/**
 * A node of a visitor id, which has one for each identifier that it was seen with, because any of them may turn out to be
 * another person. Until then they belong together. `seenWith`: the user id, contact id or address. `seenAfter`: for an
 * address, the user id or contact id that the visitor id was seen with before.
 */
export type VisitorNode = {
  node: number
  profile: number
  seenWith: number | null
  seenAfter: number | null
  /** Seen with a user id or contact id. */
  isNamed: boolean
  /** Whether verified input links it with an identifier of another kind. */
  isVerified: boolean
}

/** Its nodes, oldest first. New events belong to the active one. */
export type VisitorId = { nodes: VisitorNode[]; active: number }

/** Whether input may change the active node. A verified link takes precedence over unverified input. */
export function mayMoveVisitor({ nodes, active }: VisitorId, isVerified: boolean): boolean {
  return isVerified || !nodes.find(({ node }) => node === active)!.isVerified
}

/** The node of a visitor id that was seen with this identifier. */
export function findVisitorNode(
  { nodes, active }: VisitorId,
  { kind, node }: GroupMember,
): { found: VisitorNode | undefined; seenAfter: number | null } {
  const now = nodes.find(own => own.node === active)!
  const seenAfter = kind !== 'email' ? null : now.isNamed ? now.seenWith : now.seenAfter
  return { found: nodes.find(own => own.seenWith === node && own.seenAfter === seenAfter), seenAfter }
}

/** An identifier of a group and its current node. `visitor`: of a visitor id. Groups share it. */
export type GroupMember = { kind: IdentifierKind; node: number; visitor?: VisitorId }

/** Identifiers that appear together in one event or record. `at`: when it was received. */
export type LinkGroup = { members: GroupMember[]; isVerified: boolean; cause: Cause; at: number }

/** `isUndone`: an operator undid it; or, if `mayReturn`, a limit was reached or its records no longer have it. */
export type PlannedLink = GraphLink & { isUndone: boolean; mayReturn: boolean }

export type LinkPlan = {
  links: PlannedLink[]
  /** New nodes of visitor ids. `node` is provisional, `from` another node of the visitor id. */
  created: (Omit<VisitorNode, 'profile' | 'isNamed'> & { from: number; isActive: boolean })[]
  /** Nodes of visitor ids that changed. */
  changed: (Omit<VisitorNode, 'profile' | 'isNamed' | 'isVerified'> & { isActive: boolean })[]
  /** Per group, the node of its first identifier. Null if it has none. */
  nodes: (number | null)[]
  /** Per group, the pairs that it links. */
  pairs: [number, number][][]
  /** Per group, the nodes of its visitor ids. */
  seen: number[][]
  people: Person[]
}

/** Provisional nodes are larger than any stored one. */
const FIRST_PROVISIONAL = 2 ** 52

export const pairKey = (a: number, b: number): string => (a < b ? `${a} ${b}` : `${b} ${a}`)
export const linkKey = (a: number, b: number, cause: Cause): string => `${pairKey(a, b)} ${originOf(cause)}`

/**
 * Adds groups to the graph. `links` are the links among `nodes`; `stored` has those of the groups' pairs, also undone ones.
 * A visitor id that appears with another identifier gets a new node: only later events can move.
 */
export function planLinks(
  nodes: GraphNode[],
  links: GraphLink[],
  stored: ReadonlyMap<string, PlannedLink>,
  groups: LinkGroup[],
): LinkPlan {
  const all = new Map(nodes.map(own => [own.node, own]))
  const added = new Map<string, PlannedLink>()
  const plan: LinkPlan = {
    ...{ links: [], created: [], changed: [], nodes: [], pairs: groups.map(() => []), seen: [], people: [] },
  }
  const limits = startLimits(nodes, links)
  const find = (key: string) => added.get(key) ?? stored.get(key)
  /** Whether an operator undid the link of this pair. Only an operator links it again. */
  const isUndoneByOperator = (pair: string) =>
    ['event', 'record'].some(origin => {
      const link = find(`${pair} ${origin}`)
      return link?.isUndone && !link.mayReturn
    })

  function addLink(x: number, y: number, { isVerified, cause, at }: LinkGroup): boolean {
    const key = linkKey(x, y, cause)
    const state = { isUndone: false, mayReturn: false }
    const link = { a: Math.min(x, y), b: Math.max(x, y), isVerified, cause, at, ...state }
    if (cause.kind !== 'command' && isUndoneByOperator(pairKey(x, y))) return false
    const before = find(key)
    if (before?.isUndone && !isVerified) return false
    if (before && !before.isUndone && compareLinks(link, before) >= 0) return true
    if (!before && !isVerified && limits.isReached(x, y)) {
      added.set(key, { ...link, isUndone: true, mayReturn: true })
      return false
    }
    if (!before || before.isUndone) limits.add(x, y, isVerified)
    added.set(key, link)
    return true
  }

  /** Stores a pair that is not linked. */
  function remember(x: number, y: number, { isVerified, cause, at }: LinkGroup): void {
    const key = linkKey(x, y, cause)
    if (find(key)) return
    const state = { isUndone: true, mayReturn: true }
    added.set(key, { a: Math.min(x, y), b: Math.max(x, y), isVerified, cause, at, ...state })
  }

  const visitors = new Map<VisitorId, VisitorId>()
  function visitorOf(given: VisitorId): VisitorId {
    const own = visitors.get(given) ?? structuredClone(given)
    visitors.set(given, own)
    return own
  }

  /** The node of the event: the visitor id was seen with `primary`. */
  function seeVisitor(own: VisitorId, primary: GroupMember, group: LinkGroup): { node: number; isLinked: boolean } {
    const { found, seenAfter } = findVisitorNode(own, primary)
    const active = own.nodes.find(({ node }) => node === own.active)!
    if (group.cause.kind === 'sale') return { node: own.active, isLinked: addLink(own.active, primary.node, group) }
    if (!found && active.seenWith !== null) return createNode(own, { primary, seenAfter }, group)
    const target = found ?? active
    const isNew = !find(linkKey(target.node, primary.node, group.cause))
    if (!addLink(target.node, primary.node, group)) return { node: own.active, isLinked: false }
    const mayMove = mayMoveVisitor(own, group.isVerified)
    const isVerified = target.isVerified || group.isVerified
    Object.assign(target, { seenWith: primary.node, seenAfter, isNamed: primary.kind !== 'email', isVerified })
    // A record that is sent again says nothing about who uses the browser now.
    if (mayMove && (group.cause.kind !== 'record' || isNew)) own.active = target.node
    return { node: target.node, isLinked: true }
  }

  function createNode(
    own: VisitorId,
    { primary, seenAfter }: { primary: GroupMember; seenAfter: number | null },
    group: LinkGroup,
  ): { node: number; isLinked: boolean } {
    const before = own.nodes.find(({ isNamed, seenWith }) => isNamed && seenWith === seenAfter) ?? own.nodes[0]!
    const node = FIRST_PROVISIONAL + plan.created.length
    const created = { ...all.get(own.active)!, node, isVerified: group.isVerified, isRetired: false, seenAfter }
    limits.addNode(created)
    const isFull = !group.isVerified && limits.hasMaxLinks(before.node)
    if (isFull || !addLink(node, primary.node, group)) {
      // The visitor id stays where it is, and the pair is remembered.
      added.delete(linkKey(node, primary.node, group.cause))
      remember(own.active, primary.node, group)
      return { node: own.active, isLinked: false }
    }
    all.set(node, created)
    addLink(node, before.node, group)
    const row = { node, seenWith: primary.node, seenAfter, isVerified: group.isVerified }
    plan.created.push({ ...row, from: own.nodes[0]!.node, isActive: false })
    const mayMove = mayMoveVisitor(own, group.isVerified)
    own.nodes.push({ ...row, profile: created.profile, isNamed: primary.kind !== 'email' })
    if (mayMove) own.active = node
    return { node, isLinked: true }
  }

  for (const [i, group] of groups.entries()) {
    const primary = choosePrimary(group.members)
    const pairs = plan.pairs[i]!
    const nodes = group.members.map(member => {
      if (!member.visitor || primary.kind === 'visitor')
        return member.visitor ? visitorOf(member.visitor).active : member.node
      const seen = seeVisitor(visitorOf(member.visitor), primary, group)
      if (seen.isLinked) pairs.push([seen.node, primary.node])
      return seen.node
    })
    const own = nodes[group.members.indexOf(primary)]!
    for (const [m, { kind }] of group.members.entries())
      if (nodes[m] !== own && (kind !== 'visitor' || primary.kind === 'visitor'))
        if (addLink(own, nodes[m]!, group)) pairs.push([own, nodes[m]!])
    plan.nodes.push(nodes[0] ?? null)
    plan.seen.push(nodes.filter((_, m) => group.members[m]!.visitor))
  }
  for (const [given, own] of visitors) {
    for (const { node, seenWith, seenAfter } of own.nodes) {
      const isActive = node === own.active
      if (all.has(node)) all.set(node, { ...all.get(node)!, isRetired: !isActive, seenAfter })
      const before = given.nodes.find(other => other.node === node)
      if (!before) plan.created.find(other => other.node === node)!.isActive = isActive
      else if (before.seenWith !== seenWith || isActive !== (node === given.active))
        plan.changed.push({ node, seenWith, seenAfter, isActive })
    }
  }
  const others = links.filter(({ a, b, cause }) => !added.has(linkKey(a, b, cause)))
  plan.links = [...added.values()]
  plan.people = derivePeople([...all.values()], [...others, ...plan.links.filter(({ isUndone }) => !isUndone)]).all()
  return plan
}

/** Counts unverified identifiers per person and unverified links per identifier. */
function startLimits(nodes: GraphNode[], links: GraphLink[]) {
  const people = derivePeople(nodes, links)
  const degrees = new Map<number, number>()
  const count = (node: number) => degrees.set(node, (degrees.get(node) ?? 0) + 1)
  for (const { a, b, isVerified } of links) if (!isVerified) for (const node of [a, b]) count(node)
  const unverified = ({ nodes }: Person) => nodes.filter(own => !own.isVerified && !own.isRetired).length
  return {
    addNode: people.add,
    hasMaxLinks: (node: number) => (degrees.get(node) ?? 0) >= MAX_UNVERIFIED,
    isReached(x: number, y: number): boolean {
      if ([x, y].some(node => (degrees.get(node) ?? 0) >= MAX_UNVERIFIED)) return true
      const [own, other] = [people.personOf(x), people.personOf(y)]
      if (own === other || (isKnown(own) && isKnown(other))) return false
      return unverified(own) + unverified(other) > MAX_UNVERIFIED
    },
    add(x: number, y: number, isVerified: boolean): void {
      if (!isVerified) for (const node of [x, y]) count(node)
      if (!(isKnown(people.personOf(x)) && isKnown(people.personOf(y)))) people.join(x, y)
    },
  }
}

/**
 * The profile id of each person: always the id of one of its nodes. A person keeps its id. Of several ids, that of a known
 * person wins, then the oldest.
 */
export function chooseProfile(person: Person, wasKnown: (profile: number) => boolean): number {
  const own = new Set(person.nodes.map(({ node }) => node))
  const candidates = [...new Set(person.nodes.map(({ profile }) => profile))].filter(profile => own.has(profile))
  if (candidates.length > 0) {
    const known = candidates.filter(wasKnown)
    return Math.min(...(known.length > 0 ? known : candidates))
  }
  const identified = person.nodes.filter(({ kind }) => kind === 'user' || kind === 'contact')
  return Math.min(...(identified.length > 0 ? identified : person.nodes).map(({ node }) => node))
}

/**
 * The identifiers of a profile that verified input identifies, directly or by verified links: those of its contact, else of
 * a user id, else of an address. Empty if the profile has no verified identifier.
 */
export function verifiedCore(nodes: GraphNode[], links: GraphLink[]): Set<number> {
  const verified = verifiedNodes(nodes, links)
  if (verified.size === 0) return new Set()
  return verifiedWith(nodes, links, [mainNode(nodes.filter(({ node }) => verified.has(node))).node])
}

/** The nodes that verified input named. */
export function verifiedNodes(nodes: GraphNode[], links: GraphLink[]): Set<number> {
  return new Set([
    ...nodes.flatMap(({ node, isVerified }) => (isVerified ? node : [])),
    ...verifiedLinks(nodes, links).flatMap(({ a, b }) => [a, b]),
  ])
}

/** The nodes that verified links connect with these, and these. */
export function verifiedWith(nodes: GraphNode[], links: GraphLink[], from: Iterable<number>): Set<number> {
  return reachableNodes(verifiedLinks(nodes, links), from)
}

/**
 * The nodes that may be other people than `person`, until an operator confirms it: those that verified input named and that
 * only unverified links connect with `person`, and those that are linked only to these.
 */
export function unconfirmedNodes(nodes: GraphNode[], links: GraphLink[], person: Set<number>): Set<number> {
  const others = [...verifiedNodes(nodes, links)].filter(node => !person.has(node))
  const own = reachableNodes(links, person, new Set(others))
  return reachableNodes(links, others, own)
}

/** Without those between the nodes of one visitor id, which may belong to several people. */
function verifiedLinks(nodes: GraphNode[], links: GraphLink[]): GraphLink[] {
  const visitors = new Map(
    nodes.flatMap(({ node, kind, value }) => (kind === 'visitor' ? [[node, value] as const] : [])),
  )
  return links.filter(({ a, b, isVerified }) => isVerified && !(visitors.has(a) && visitors.get(a) === visitors.get(b)))
}

const MAIN_KINDS: IdentifierKind[] = ['contact', 'user', 'email', 'visitor']

/** The identifier that stands for the person: of the first kind, then the oldest. */
export function mainNode<T extends GraphNode>(nodes: T[]): T {
  const active = nodes.filter(({ isRetired }) => !isRetired)
  const rank = ({ kind, node }: T) => MAIN_KINDS.indexOf(kind) * FIRST_PROVISIONAL + node
  return (active.length > 0 ? active : nodes).reduce((best, own) => (rank(own) < rank(best) ? own : best))
}

/** Undoing links so that two identifiers of one profile are no longer one person. */
export type Split<Link> = { undone: Link[] }

/**
 * Undoes the latest merge by an operator that connects the two identifiers (all nodes of the first). If there is none, undoes one link after another on the
 * paths between them. Null if no link connects them.
 */
export function findSplit<Link extends GraphLink>(
  nodes: GraphNode[],
  links: Link[],
  node: number,
  from: number,
): Split<Link> | null {
  const { kind, value } = nodes.find(own => own.node === node)!
  const all = nodes.filter(own => own.kind === kind && own.value === value).map(own => own.node)
  /** The split without these links, if they connect the identifiers. */
  const without = (undone: ReadonlySet<Link>): Split<Link> | null => {
    const people = derivePeople(
      nodes,
      links.filter(link => !undone.has(link)),
    )
    const other = people.personOf(from)
    return all.some(own => people.personOf(own) === other) ? null : { undone: [...undone] }
  }
  const merges = Map.groupBy(
    links.filter(({ cause }) => cause.kind === 'command'),
    ({ cause }) => cause.id,
  )
  for (const [, merge] of [...merges].sort(([x], [y]) => (x < y ? 1 : -1))) {
    const split = without(new Set(merge))
    if (split) return split
  }
  const undone = new Set<Link>()
  for (;;) {
    const split = without(undone)
    if (split) return undone.size > 0 ? split : null
    const left = links.filter(link => !undone.has(link))
    const path = all.map(own => findPath(left, own, from)).find(path => path !== null)
    if (!path) return null
    undone.add(path.reduce((first, link) => (isUndoneFirst(link, first) ? link : first)))
  }
}

/** Whether the first link is undone first: those of operators, then unverified ones, then the latest. */
function isUndoneFirst(x: GraphLink, y: GraphLink): boolean {
  const rank = ({ cause, isVerified }: GraphLink) => (cause.kind === 'command' ? 0 : isVerified ? 2 : 1)
  return (rank(x) - rank(y) || y.at - x.at || (x.cause.id > y.cause.id ? -1 : 1)) < 0
}

/** The nodes that links connect with these without passing `except`, and these. */
function reachableNodes(
  links: GraphLink[],
  from: Iterable<number>,
  except: ReadonlySet<number> = new Set(),
): Set<number> {
  const adjacent = buildAdjacency(links.filter(({ a, b }) => !except.has(a) && !except.has(b)))
  const reached = new Set(from)
  for (const at of reached) for (const { a, b } of adjacent.get(at) ?? []) reached.add(a).add(b)
  return reached
}

function findPath<Link extends GraphLink>(links: Link[], node: number, goal: number): Link[] | null {
  const adjacent = buildAdjacency(links)
  const cameBy = new Map<number, Link | null>([[node, null]])
  for (const [at] of cameBy)
    for (const link of adjacent.get(at) ?? [])
      for (const next of [link.a, link.b]) if (!cameBy.has(next)) cameBy.set(next, link)
  if (node === goal || !cameBy.has(goal)) return null
  const path: Link[] = []
  for (let at = goal; at !== node; ) {
    const link = cameBy.get(at)!
    path.push(link)
    at = link.a === at ? link.b : link.a
  }
  return path
}

function buildAdjacency<Link extends GraphLink>(links: Link[]): Map<number, Link[]> {
  const found = new Map<number, Link[]>()
  for (const link of links)
    for (const node of [link.a, link.b]) {
      const own = found.get(node)
      if (own) own.push(link)
      else found.set(node, [link])
    }
  return found
}
