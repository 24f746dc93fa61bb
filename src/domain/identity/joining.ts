import type { IdentityKind } from './identity.ts'

/**
 * Who belongs together. Names seen together share a profile, but joining is careful: an anonymous id belongs to one
 * person at a time, two known people are merged only by those who may, and a profile has its limits.
 */

/** A profile that takes no more names keeps a stranger from hanging thousands of them on somebody. */
export const MAX_NAMES = 200

export type Profile = {
  id: number
  names: number
  hasUser: boolean
  hasContact: boolean
  /** The profile that took it in, in this run. */
  mergedInto: Profile | null
}

/** Where a name's events are kept. A name that moves on to another person gets a new one; what was stays. */
export type Node = {
  /** null until it is written */
  id: number | null
  profile: Profile
}

export type Name = {
  kind: IdentityKind
  node: Node
  /** A record, a server or an operator said so; not merely an event that anybody could have sent. */
  trusted: boolean
}

/** Why a join was made: kept with it, so that it can be explained and undone. */
export type Cause = { kind: 'event' | 'record' | 'sale' | 'command'; id: string }

/** Names that were seen together. */
type Sighting = { names: Name[]; trusted: boolean; cause: Cause }

/** `node` and `other` were seen together: `node` on the side of `from`. */
type Merge = { from: Profile; into: Profile; node: Node; other: Node; cause: Cause }
export type Move = { name: Name; from: Node; to: Node; other: Node; cause: Cause }

export type Joins = {
  merges: Merge[]
  moves: Move[]
  /** Seen together, but the profile was full: kept, so that an erasure finds them. */
  unjoined: { node: Node; other: Node; cause: Cause }[]
  /** Names that are trusted from now on. */
  vouched: Name[]
  /** Of each sighting, the node of its first name, after it; null where it has none. */
  nodes: (Node | null)[]
}

/** Plays the sightings in their order; profiles and names are changed as it goes. */
export function join(sightings: Sighting[]): Joins {
  const joins: Joins = { merges: [], moves: [], unjoined: [], vouched: [], nodes: [] }
  for (const sighting of sightings) {
    const { names, trusted } = sighting
    const primary = primaryOf(names)
    for (const name of names) if (name !== primary) joinName(joins, sighting, primary!, name)
    noteApart(joins, sighting)
    if (trusted && vouchesFor(names)) {
      for (const name of names) {
        if (name.trusted) continue
        name.trusted = true
        joins.vouched.push(name)
      }
    }
    joins.nodes.push(names[0]?.node ?? null)
  }
  return joins
}

/** Its events are kept under the first name: who is named beside it and stayed somebody else leads to them, too. */
function noteApart(joins: Joins, { names: [first, ...others], cause }: Sighting): void {
  for (const { node } of others)
    if (profileOf(node) !== profileOf(first!.node))
      joins.unjoined.push({ node: first!.node, other: node, cause })
}

export function profileOf({ profile }: Node): Profile {
  let current = profile
  while (current.mergedInto) current = current.mergedInto
  return current
}

/** Only together with a name that is somebody's own: what hangs on a browser alone may still be anybody's. */
export function vouchesFor(names: { kind: IdentityKind }[]): boolean {
  return names.length > 1 && names.some(({ kind }) => kind === 'user' || kind === 'contact')
}

/** Whom the others are joined to: the name that says most surely who it is. */
function primaryOf(names: Name[]): Name | undefined {
  return (
    names.find(({ kind }) => kind === 'user') ??
    names.find(({ kind }) => kind === 'contact') ??
    names.find(({ kind, node }) => kind === 'email' && isKnown(profileOf(node))) ??
    names[0]
  )
}

function joinName(joins: Joins, { trusted, cause }: Sighting, primary: Name, name: Name): void {
  const target = profileOf(primary.node)
  const own = profileOf(name.node)
  if (own === target) return
  const areKnown = isKnown(own) && isKnown(target)
  // An e-mail that only events had tied to somebody else is taken out: they must not merge two customers in the end.
  const isSomebodyElse = (own.hasUser && target.hasUser) || (own.hasContact && target.hasContact)
  const isTakenOut = trusted && name.kind === 'email' && !name.trusted && isSomebodyElse
  if (areKnown && (name.kind === 'visitor' || isTakenOut)) move(joins, primary, name, cause)
  else if (!areKnown || trusted) merge(joins, primary, name, cause)
  // Two people stay two; but what the one said of the other goes when the other is erased.
  else {
    joins.unjoined.push({ node: name.node, other: primary.node, cause })
    joins.unjoined.push({ node: primary.node, other: name.node, cause })
  }
}

/** A user id or a contact id: somebody in particular, not just a browser. */
export function isKnown({ hasUser, hasContact }: Pick<Profile, 'hasUser' | 'hasContact'>): boolean {
  return hasUser || hasContact
}

export function newProfile(id: number): Profile {
  return { id, names: 1, hasUser: false, hasContact: false, mergedInto: null }
}

/** The known takes the unknown in; of two alike, the older the newer. */
function merge(joins: Joins, primary: Name, name: Name, cause: Cause): void {
  const a = profileOf(primary.node)
  const b = profileOf(name.node)
  const isFirst = isKnown(a) === isKnown(b) ? a.id < b.id : isKnown(a)
  const [into, from] = isFirst ? [a, b] : [b, a]
  if (into.names + from.names > MAX_NAMES) {
    joins.unjoined.push({ node: name.node, other: primary.node, cause })
    return
  }
  into.names += from.names
  into.hasUser ||= from.hasUser
  into.hasContact ||= from.hasContact
  from.mergedInto = into
  const [node, other] = isFirst ? [name.node, primary.node] : [primary.node, name.node]
  joins.merges.push({ from, into, node, other, cause })
}

function move(joins: Joins, primary: Name, name: Name, cause: Cause): void {
  const target = profileOf(primary.node)
  if (target.names >= MAX_NAMES) {
    joins.unjoined.push({ node: name.node, other: primary.node, cause })
    return
  }
  const from = name.node
  profileOf(from).names--
  target.names++
  name.node = { id: null, profile: target }
  joins.moves.push({ name, from, to: name.node, other: primary.node, cause })
}
