import type { IdentifierKind } from './identity.ts'

/**
 * Who belongs together. Names seen together share a profile, but joining is careful: an anonymous id belongs to one
 * person at a time, two known people are merged only by those who may, and a profile has its limits.
 */

/** A profile that takes no more names keeps a stranger from hanging thousands of them on somebody. */
export const MAX_IDENTIFIERS = 200

export type Profile = {
  id: number
  identifiers: number
  hasUser: boolean
  hasContact: boolean
  /** The profile that took it in, in this run. */
  mergedInto: Profile | null
}

/** Where a name's events are kept. A name that moves on to another person gets a new one; what was stays. */
type Node = {
  /** null until it is written */
  id: number | null
  profile: Profile
}

export type KnownIdentifier = {
  kind: IdentifierKind
  node: Node
  /** A record, a server or an operator said so; not merely an event that anybody could have sent. */
  trusted: boolean
}

/** Why a join was made: kept with it, so that it can be explained and undone. */
export type Cause = { kind: 'event' | 'record' | 'sale' | 'command'; id: string }

/** Names that were seen together. */
type Group = { identifiers: KnownIdentifier[]; trusted: boolean; cause: Cause }

/** `node` and `other` were seen together: `node` on the side of `from`. */
type Merge = { from: Profile; into: Profile; node: Node; other: Node; cause: Cause }
type Move = { identifier: KnownIdentifier; from: Node; to: Node; other: Node; cause: Cause }

export type Links = {
  merges: Merge[]
  moves: Move[]
  /** Seen together, but the profile was full: kept, so that an erasure finds them. */
  unlinked: { node: Node; other: Node; cause: Cause }[]
  /** Names that are trusted from now on. */
  confirmed: KnownIdentifier[]
  /** Of each sighting, the node of its first name, after it; null where it has none. */
  nodes: (Node | null)[]
}

/** Plays the sightings in their order; profiles and names are changed as it goes. */
export function linkIdentifiers(sightings: Group[]): Links {
  const joins: Links = { merges: [], moves: [], unlinked: [], confirmed: [], nodes: [] }
  for (const sighting of sightings) {
    const { identifiers: names, trusted } = sighting
    const primary = choosePrimary(names)
    for (const name of names) if (name !== primary) linkIdentifier(joins, sighting, primary!, name)
    recordUnlinked(joins, sighting)
    if (trusted && areConfirming(names)) {
      for (const name of names) {
        if (name.trusted) continue
        name.trusted = true
        joins.confirmed.push(name)
      }
    }
    joins.nodes.push(names[0]?.node ?? null)
  }
  return joins
}

/** Its events are kept under the first name: who is named beside it and stayed somebody else leads to them, too. */
function recordUnlinked(joins: Links, { identifiers: [first, ...others], cause }: Group): void {
  for (const { node } of others)
    if (survivingProfile(node) !== survivingProfile(first!.node))
      joins.unlinked.push({ node: first!.node, other: node, cause })
}

export function survivingProfile({ profile }: Node): Profile {
  let current = profile
  while (current.mergedInto) current = current.mergedInto
  return current
}

/** Only together with a name that is somebody's own: what hangs on a browser alone may still be anybody's. */
export function areConfirming(names: { kind: IdentifierKind }[]): boolean {
  return names.length > 1 && names.some(({ kind }) => kind === 'user' || kind === 'contact')
}

/** Whom the others are joined to: the name that says most surely who it is. */
function choosePrimary(names: KnownIdentifier[]): KnownIdentifier | undefined {
  return (
    names.find(({ kind }) => kind === 'user') ??
    names.find(({ kind }) => kind === 'contact') ??
    names.find(({ kind, node }) => kind === 'email' && isIdentified(survivingProfile(node))) ??
    names[0]
  )
}

function linkIdentifier(
  joins: Links,
  { trusted, cause }: Group,
  primary: KnownIdentifier,
  name: KnownIdentifier,
): void {
  const target = survivingProfile(primary.node)
  const own = survivingProfile(name.node)
  if (own === target) return
  const areKnown = isIdentified(own) && isIdentified(target)
  // An e-mail that only events had tied to somebody else is taken out: they must not merge two customers in the end.
  const isSomebodyElse = (own.hasUser && target.hasUser) || (own.hasContact && target.hasContact)
  const isTakenOut = trusted && name.kind === 'email' && !name.trusted && isSomebodyElse
  if (areKnown && (name.kind === 'visitor' || isTakenOut)) move(joins, primary, name, cause)
  else if (!areKnown || trusted) merge(joins, primary, name, cause)
  // Two people stay two; but what the one said of the other goes when the other is erased.
  else {
    joins.unlinked.push({ node: name.node, other: primary.node, cause })
    joins.unlinked.push({ node: primary.node, other: name.node, cause })
  }
}

/** A user id or a contact id: somebody in particular, not just a browser. */
export function isIdentified({ hasUser, hasContact }: Pick<Profile, 'hasUser' | 'hasContact'>): boolean {
  return hasUser || hasContact
}

export function createProfile(id: number): Profile {
  return { id, identifiers: 1, hasUser: false, hasContact: false, mergedInto: null }
}

/** The known takes the unknown in; of two alike, the older the newer. */
function merge(joins: Links, primary: KnownIdentifier, name: KnownIdentifier, cause: Cause): void {
  const a = survivingProfile(primary.node)
  const b = survivingProfile(name.node)
  const isFirst = isIdentified(a) === isIdentified(b) ? a.id < b.id : isIdentified(a)
  const [into, from] = isFirst ? [a, b] : [b, a]
  if (into.identifiers + from.identifiers > MAX_IDENTIFIERS) {
    joins.unlinked.push({ node: name.node, other: primary.node, cause })
    return
  }
  into.identifiers += from.identifiers
  into.hasUser ||= from.hasUser
  into.hasContact ||= from.hasContact
  from.mergedInto = into
  const [node, other] = isFirst ? [name.node, primary.node] : [primary.node, name.node]
  joins.merges.push({ from, into, node, other, cause })
}

function move(joins: Links, primary: KnownIdentifier, name: KnownIdentifier, cause: Cause): void {
  const target = survivingProfile(primary.node)
  if (target.identifiers >= MAX_IDENTIFIERS) {
    joins.unlinked.push({ node: name.node, other: primary.node, cause })
    return
  }
  const from = name.node
  survivingProfile(from).identifiers--
  target.identifiers++
  name.node = { id: null, profile: target }
  joins.moves.push({ identifier: name, from, to: name.node, other: primary.node, cause })
}

/**
 * Undoing a join. The joins of a profile are a tree over its nodes: each brought two parts together that were apart. What
 * brought two names together is the latest join on the way from the one to the other; without it the tree has two
 * parts, each as it would be had that join never been made.
 */

/** A join that holds: `node` was taken in, and was seen with `other`. A higher id is a later join. */
export type Link = { id: number; node: number; other: number; profile: number; fromProfile: number }

export type Split = {
  undone: Link
  /** The nodes that part from the others: those around the name that is split off. */
  splitOff: Set<number>
  /** Whether those are the side that the join had taken in. */
  isMergedSide: boolean
}

/** How to part `node` from `from`; null where no join is known that brought them together. */
export function findSplit(links: Link[], node: number, from: number): Split | null {
  const way = findPath(buildAdjacency(links), node, from)
  if (way === null || way.length === 0) return null
  const undone = way.reduce((latest, link) => (link.id > latest.id ? link : latest))
  const parted = reachableNodes(buildAdjacency(links.filter(link => link !== undone)), node)
  return { undone, splitOff: parted, isMergedSide: parted.has(undone.node) }
}

/** Which profiles the two sides are: the one with the name that the profile began with keeps its id, the other gets its own back. */
export function splitProfiles(
  profile: number,
  { undone, splitOff: parted, isMergedSide: isTakenIn }: Split,
): SplitProfiles {
  const before = parted.has(profile) === isTakenIn ? undone.profile : undone.fromProfile
  return parted.has(profile) ? { splitOff: profile, kept: before } : { splitOff: before, kept: profile }
}

export type SplitProfiles = { splitOff: number; kept: number }

/**
 * The joins that still hold, under the names of the profiles that they are about now. Those of the side with a new id are
 * its own, but for those of profiles that were merged within it; on the other side nobody goes by that id any more.
 */
export function relabelLinks(
  links: Link[],
  profile: number,
  { undone, splitOff: parted }: Split,
  sides: SplitProfiles,
): Link[] {
  const isPartedNew = sides.splitOff !== profile
  const given = isPartedNew ? sides.splitOff : sides.kept
  const other = undone.profile === given ? undone.fromProfile : undone.profile
  const isNew = (link: Link) => parted.has(link.node) === isPartedNew
  const held = links.filter(link => link !== undone)
  const within = new Set(held.filter(isNew).map(({ fromProfile }) => fromProfile))
  const renamed = held.map(link =>
    isNew(link)
      ? { ...link, profile: within.has(link.profile) ? link.profile : given }
      : {
          ...link,
          profile: link.profile === given ? other : link.profile,
          fromProfile: link.fromProfile === given ? other : link.fromProfile,
        },
  )
  return renamed.filter(
    (link, i) => link.profile !== held[i]!.profile || link.fromProfile !== held[i]!.fromProfile,
  )
}

/** The nodes that links connect with this one, itself included. */
function reachableNodes(links: Map<number, Link[]>, node: number): Set<number> {
  const reached = new Set([node])
  for (const at of reached) for (const link of links.get(at) ?? []) reached.add(link.node).add(link.other)
  return reached
}

function findPath(links: Map<number, Link[]>, node: number, goal: number): Link[] | null {
  const cameBy = new Map<number, Link | null>([[node, null]])
  for (const [at] of cameBy)
    for (const link of links.get(at) ?? [])
      for (const next of [link.node, link.other]) if (!cameBy.has(next)) cameBy.set(next, link)
  if (!cameBy.has(goal)) return null
  const way: Link[] = []
  for (let at = goal; at !== node; ) {
    const link = cameBy.get(at)!
    way.push(link)
    at = link.node === at ? link.other : link.node
  }
  return way
}

function buildAdjacency(links: Link[]): Map<number, Link[]> {
  const found = new Map<number, Link[]>()
  for (const link of links)
    for (const node of [link.node, link.other]) {
      const own = found.get(node)
      if (own) own.push(link)
      else found.set(node, [link])
    }
  return found
}
