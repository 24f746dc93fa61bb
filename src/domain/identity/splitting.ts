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
