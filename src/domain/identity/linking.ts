import type { Identifier, IdentifierKind } from './identity.ts'

/**
 * Decides which identifiers share a profile. Every pair of identifiers that appeared together is stored as a link, verified
 * or unverified (decisions.md §3). The profiles are a function of the stored links: the order in which they arrived does
 * not matter. A link between two profiles is a claim: it is stored and shown, and connects nothing.
 */

/** The limit of unverified identifiers in a profile, and of unverified links of an identifier. Verified ones have no limit. */
export const MAX_UNVERIFIED = 200

/** Why a link exists. Stored with it, so that it can be explained and undone. */
export type Cause = { kind: 'event' | 'record' | 'sale' | 'command'; id: string }

/** A node of the identity graph. Events of an identifier point to its node. */
export type GraphNode = Identifier & { node: number; profile: number; isVerified: boolean; isRetired: boolean }

/** Two nodes that appeared together. `at`: when the first input that says so was received. */
export type GraphLink = { a: number; b: number; isVerified: boolean; at: number; cause: Cause }

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
export function derivePeople(nodes: GraphNode[], links: GraphLink[]): People {
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
  for (const { user, email } of namedAddresses(ordered, kinds))
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

/** Rule 2: a user id without a contact, and a contact without a user id. */
function areOnePerson(user: Person, contact: Person): boolean {
  return user.hasUser && !user.hasContact && contact.hasContact && !contact.hasUser
}

/** User ids and the addresses that they named, then those that visitors seen with them named. The one received first comes first. */
function namedAddresses(
  ordered: GraphLink[],
  kinds: Map<number, IdentifierKind>,
): { user: number; email: number; at: number }[] {
  const named: { user: number; email: number; at: number }[] = []
  const byVisitors: typeof named = []
  const visitors = new Map<number, { users: { node: number; at: number }[]; emails: { node: number; at: number }[] }>()
  for (const { a, b, at } of ordered) {
    const [x, y] = kindOrder(kinds.get(a)!) <= kindOrder(kinds.get(b)!) ? [a, b] : [b, a]
    const [first, second] = [kinds.get(x), kinds.get(y)]
    if (first === 'user' && second === 'email') named.push({ user: x, email: y, at })
    if (second !== 'visitor' || first === 'contact' || first === 'visitor') continue
    const own = visitors.get(y) ?? { users: [], emails: [] }
    visitors.set(y, own)
    own[first === 'user' ? 'users' : 'emails'].push({ node: x, at })
  }
  // A visitor id belongs to one person at a time: the first.
  for (const { users, emails } of visitors.values())
    for (const user of users.slice(0, 1))
      for (const email of emails)
        byVisitors.push({ user: user.node, email: email.node, at: Math.max(user.at, email.at) })
  const [own, others] = [named, byVisitors].map(pairs =>
    // Stable: pairs of the same time stay in the order of their links.
    pairs.sort((x, y) => x.at - y.at),
  )
  return [...own!, ...others!]
}

function kindOrder(kind: IdentifierKind): number {
  return ['user', 'contact', 'email', 'visitor'].indexOf(kind)
}

/** An identifier of a group and its current node. */
type GroupMember = { kind: IdentifierKind; node: number }

/** Identifiers that appear together in one event or record. `at`: when it was received. */
export type LinkGroup = { members: GroupMember[]; isVerified: boolean; cause: Cause; at: number }

export type PlannedLink = GraphLink & { isUndone: boolean }

export type LinkPlan = {
  links: PlannedLink[]
  /** Visitor ids that move to another person. `to` is a provisional node. */
  moves: { from: number; to: number }[]
  /** Per group, the node of its first identifier. */
  nodes: number[]
  people: Person[]
  /** Links that a limit prevented. */
  dropped: number
}

/** Provisional nodes are larger than any stored one. */
const FIRST_PROVISIONAL = 2 ** 52

export const pairKey = (a: number, b: number): string => (a < b ? `${a} ${b}` : `${b} ${a}`)

/**
 * Adds groups to the graph. `links` are the links among `nodes`; `stored` has those of the groups' pairs, also undone ones.
 * A visitor id that appears with a second known person gets a new node: only later events move.
 */
export function planLinks(
  nodes: GraphNode[],
  links: GraphLink[],
  stored: ReadonlyMap<string, PlannedLink>,
  groups: LinkGroup[],
): LinkPlan {
  const all = new Map(nodes.map(own => [own.node, own]))
  const added = new Map<string, PlannedLink>()
  const plan: LinkPlan = { links: [], moves: [], nodes: [], people: [], dropped: 0 }
  const limits = startLimits(nodes, links)

  function addLink(x: number, y: number, { isVerified, cause, at }: LinkGroup): boolean {
    const key = pairKey(x, y)
    const link = { a: Math.min(x, y), b: Math.max(x, y), isVerified, cause, at, isUndone: false }
    const before = added.get(key) ?? stored.get(key)
    if (before?.isUndone) return false
    if (before && compareLinks(link, before) >= 0) return true
    if (!before && !isVerified && limits.isReached(x, y)) {
      plan.dropped++
      added.set(key, { ...link, isUndone: true })
      return false
    }
    if (!before) limits.add(x, y, isVerified)
    added.set(key, link)
    return true
  }

  /** Stores a pair that is not linked. */
  function remember(x: number, y: number, { isVerified, cause, at }: LinkGroup): void {
    const key = pairKey(x, y)
    if (stored.has(key) || added.has(key)) return
    added.set(key, { a: Math.min(x, y), b: Math.max(x, y), isVerified, cause, at, isUndone: true })
  }

  for (const group of groups) {
    const primary = choosePrimary(group.members)
    for (const { kind, node } of group.members)
      if (node !== primary.node && (kind !== 'visitor' || primary.kind === 'visitor'))
        addLink(primary.node, node, group)
  }
  const derive = () => {
    const others = links.filter(({ a, b, cause }) => cause.kind === 'command' || !added.has(pairKey(a, b)))
    return derivePeople([...all.values()], [...others, ...[...added.values()].filter(({ isUndone }) => !isUndone)])
  }
  const people = derive()
  /** Whether the visitor's addresses make its person and the other one the same (rule 2). */
  const isOnePersonBy = (visitor: number, own: Person, primary: GroupMember, other: Person) =>
    primary.kind === 'email'
      ? areOnePerson(own, other)
      : primary.kind === 'user' && areOnePerson(other, own) && hasNamedAddress(visitor, own)
  const hasNamedAddress = (visitor: number, { nodes }: Person) =>
    nodes.some(({ kind, node }) => kind === 'email' && isLinked(visitor, node))
  const pairs = new Set(links.map(({ a, b }) => pairKey(a, b)))
  const isLinked = (x: number, y: number) => pairs.has(pairKey(x, y)) || added.get(pairKey(x, y))?.isUndone === false
  /** The current node of visitor ids, by the node they had at the start. */
  const visitors = new Map<number, number>()
  for (const group of groups) {
    const primary = choosePrimary(group.members)
    if (primary.kind !== 'visitor')
      for (const { kind, node: start } of group.members) {
        if (kind !== 'visitor') continue
        const node = visitors.get(start) ?? start
        const [own, person] = [people.personOf(node), people.personOf(primary.node)]
        // An address of no contact names no person.
        const isNamed = primary.kind !== 'email' || person.hasContact
        const isSame = own === person || isOnePersonBy(node, own, primary, person)
        if (!isKnown(own) || isSame || !isNamed) {
          if (addLink(node, primary.node, group) && isNamed) people.join(node, primary.node)
        } else if (group.cause.kind !== 'sale') {
          const from = all.get(node)!
          const moved = { ...from, node: FIRST_PROVISIONAL + plan.moves.length, isVerified: group.isVerified }
          limits.addNode(moved)
          if (!addLink(moved.node, primary.node, group)) {
            // The other person is full. The visitor id stays where it is, and the pair is remembered.
            added.delete(pairKey(moved.node, primary.node))
            remember(node, primary.node, group)
            continue
          }
          all.set(node, { ...from, isRetired: true })
          all.set(moved.node, moved)
          people.add(moved)
          people.join(moved.node, primary.node)
          plan.moves.push({ from: node, to: moved.node })
          visitors.set(start, moved.node)
        }
      }
    const first = group.members[0]!
    plan.nodes.push(visitors.get(first.node) ?? first.node)
  }
  plan.links = [...added.values()]
  plan.people = derive().all()
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
  const order: IdentifierKind[] = ['contact', 'user', 'email', 'visitor']
  const rank = ({ kind }: GraphNode) => order.indexOf(kind)
  const start = nodes.filter(({ isVerified }) => isVerified).toSorted((x, y) => rank(x) - rank(y) || x.node - y.node)[0]
  if (!start) return new Set()
  return reachableNodes(
    links.filter(({ isVerified }) => isVerified),
    start.node,
  )
}

/** Undoing links so that two nodes of one profile are no longer one person. */
export type Split<Link> = {
  undone: Link[]
  /** The nodes that are split off: those of the same person as the node to split. */
  splitOff: Set<number>
}

/**
 * Undoes the latest merge by an operator that connects the two nodes. If there is none, undoes one link after another on the
 * paths between them. Null if no link connects them.
 */
export function findSplit<Link extends GraphLink>(
  nodes: GraphNode[],
  links: Link[],
  node: number,
  from: number,
): Split<Link> | null {
  /** The split without these links, if they connect the nodes. */
  const without = (undone: ReadonlySet<Link>): Split<Link> | null => {
    const people = derivePeople(
      nodes,
      links.filter(link => !undone.has(link)),
    )
    const person = people.personOf(node)
    if (person === people.personOf(from)) return null
    return { undone: [...undone], splitOff: new Set(person.nodes.map(own => own.node)) }
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
    const path = findPath(
      links.filter(link => !undone.has(link)),
      node,
      from,
    )
    if (path === null) return null
    undone.add(path.reduce((first, link) => (isUndoneFirst(link, first) ? link : first)))
  }
}

/** Whether the first link is undone first: those of operators, then unverified ones, then the latest. */
function isUndoneFirst(x: GraphLink, y: GraphLink): boolean {
  const rank = ({ cause, isVerified }: GraphLink) => (cause.kind === 'command' ? 0 : isVerified ? 2 : 1)
  return (rank(x) - rank(y) || y.at - x.at || (x.cause.id > y.cause.id ? -1 : 1)) < 0
}

/** The nodes connected with this one, including itself. */
function reachableNodes(links: GraphLink[], node: number): Set<number> {
  const adjacent = buildAdjacency(links)
  const reached = new Set([node])
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
