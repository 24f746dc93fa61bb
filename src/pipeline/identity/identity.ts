import type { Identifier, NodeKey } from '../../domain/identity/identity.ts'
import {
  areConfirming,
  type Cause,
  createProfile,
  type KnownIdentifier,
  type Links,
  linkIdentifiers,
  type Profile,
  survivingProfile,
} from '../../domain/identity/linking.ts'
import {
  allocateNodes,
  bumpIdentityVersions,
  ensureIdentifiers,
  type IdentifierKey,
  insertLinks,
  insertUnlinked,
  loadIdentityVersions,
  loadProfileFacts,
  mergeProfiles,
  moveIdentifiers,
  type ProfileKey,
  type StoredIdentifier,
  trustIdentifiers,
} from '../../store/identity/identities.ts'
import { rememberSalesOfProfiles } from '../deliveries/notify.ts'
import { prepareProfileLock, takeProfileLock } from '../profile-lock.ts'
import { type IdentifierMemory, type Learned, openMemory, type Transaction } from '../unit.ts'

/** Identifiers that appear together in one event or record. A trusted group may merge two identified profiles. */
export type IdentifierGroup = { tenantId: number; identifiers: Identifier[]; trusted: boolean; cause: Cause }

// About 10 MB.
const MAX_REMEMBERED = 50_000

export type Identities = {
  /**
   * Links the identifiers of each group, and finds the node of its first identifier. It changes identifiers, nodes and
   * profiles only: see `resolveNodes` for the effects of a merge.
   */
  resolve(transaction: Transaction, groups: IdentifierGroup[]): Promise<Resolved>
}

type Resolved = {
  /** Per group, the node of its first identifier. Null if it has none. */
  nodes: (number | null)[]
  /** Profiles into which others were merged, */
  merged: ProfileKey[]
  /** and the nodes of the groups that were resolved then. */
  changed: NodeKey[]
}

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
      if (groups.length === 0) return { nodes, merged: [], changed: [] }
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
      if (open.length === 0) return { nodes, merged: [], changed: [] }
      const { links, movedTenants, merged } = await linkAll(
        transaction,
        open.map(({ index }) => groups[index]!),
      )
      const changed: NodeKey[] = []
      for (const [i, { index, first, all }] of open.entries()) {
        const { tenantId } = groups[index]!
        const node = links.nodes[i]?.id ?? null
        nodes[index] = node
        if (node === null) continue
        if (merged.length > 0) changed.push({ tenantId, node })
        // A moved identifier changes the version of its tenant, so nothing of that tenant may be remembered.
        if (movedTenants.has(tenantId)) continue
        transaction.learned?.nodes.push({ memory: remembered.get(tenantId)!, first, all, node })
      }
      return { nodes, merged, changed }
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

/** Links the identifiers and writes the changes. `movedTenants` are those whose remembered nodes are no longer valid. */
async function linkAll(
  transaction: Transaction,
  groups: IdentifierGroup[],
): Promise<{ links: Links; movedTenants: Set<number>; merged: ProfileKey[] }> {
  const { client } = transaction
  await prepareProfileLock(transaction)
  let loaded = await loadGroups(client, groups)
  if (loaded.newNodes.length > 0) {
    transaction.newNodes ??= new Set()
    for (const node of loaded.newNodes) transaction.newNodes.add(node)
  }
  let links = linkIdentifiers(loaded.groups)
  const tenants = tenantsToLock(groups, loaded, links)
  if (tenants.size > 0) {
    await takeProfileLock(transaction, tenants)
    // Another worker may have linked them while this one waited for the lock.
    loaded = await loadGroups(client, groups)
    links = linkIdentifiers(loaded.groups)
    const contacts = mergedWithContacts(loaded, links)
    if (contacts.length > 0) await rememberSalesOfProfiles(transaction, contacts)
    await writeLinks(client, loaded, links)
  }
  const survivors = new Set(links.merges.map(({ into }) => survivingProfile({ id: null, profile: into })))
  return {
    links,
    movedTenants: new Set(links.moves.map(({ identifier }) => loaded.tenantOf(identifier))),
    merged: [...survivors].map(profile => ({
      tenantId: loaded.tenantOfProfile(profile),
      profile: profile.id,
    })),
  }
}

/** Profiles that merge with one that has a contact. Their sales may become sales of that contact. */
function mergedWithContacts({ tenantOfProfile }: Loaded, { merges }: Links): ProfileKey[] {
  return merges.flatMap(({ from, into }) =>
    from.hasContact || into.hasContact
      ? [from, into].map(profile => ({ tenantId: tenantOfProfile(profile), profile: profile.id }))
      : [],
  )
}

type Loaded = {
  /** Nodes that this statement created, as `tenant node`. */
  newNodes: string[]
  groups: { identifiers: KnownIdentifier[]; trusted: boolean; cause: Cause }[]
  tenantOf(identifier: KnownIdentifier): number
  tenantOfProfile(profile: Profile): number
}

async function loadGroups(client: Transaction['client'], groups: IdentifierGroup[]): Promise<Loaded> {
  const wanted = new Map<string, IdentifierKey & { trusted: boolean }>()
  for (const { tenantId, identifiers, trusted } of groups) {
    const isConfirmed = trusted && areConfirming(identifiers)
    for (const identifier of identifiers) {
      const key = keyText(tenantId, identifier)
      const before = wanted.get(key)
      if (!before) wanted.set(key, { tenantId, ...identifier, trusted: isConfirmed })
      else if (isConfirmed) before.trusted = true
    }
  }
  const known = wanted.size > 0 ? await ensureIdentifiers(client, [...wanted.values()]) : []
  const rows = new Map(known.map(row => [keyText(row.tenantId, row), row]))
  const profiles = await loadProfiles(client, groups, rows)
  const tenants = new Map<KnownIdentifier | Profile, number>()
  const byKey = new Map<string, KnownIdentifier>()
  for (const [key, row] of rows) {
    const profile = profiles.get(profileText(row))!
    const identifier = { kind: row.kind, node: { id: row.node, profile }, trusted: row.trusted }
    byKey.set(key, identifier)
    tenants.set(identifier, row.tenantId).set(profile, row.tenantId)
  }
  return {
    newNodes: known.flatMap(row => (row.isNew ? `${row.tenantId} ${row.node}` : [])),
    groups: groups.map(({ tenantId, identifiers, trusted, cause }) => ({
      identifiers: identifiers.flatMap(identifier => byKey.get(keyText(tenantId, identifier)) ?? []),
      trusted,
      cause,
    })),
    tenantOf: identifier => tenants.get(identifier)!,
    tenantOfProfile: profile => tenants.get(profile)!,
  }
}

/** Most identifiers appear alone or with others of their profile. Facts are loaded only for profiles that may merge. */
async function loadProfiles(
  client: Transaction['client'],
  groups: IdentifierGroup[],
  rows: Map<string, StoredIdentifier>,
): Promise<Map<string, Profile>> {
  const profiles = new Map<string, Profile>()
  for (const row of rows.values()) {
    const profile = profiles.get(profileText(row)) ?? createProfile(row.profile)
    if (row.kind === 'user') profile.hasUser = true
    if (row.kind === 'contact') profile.hasContact = true
    profiles.set(profileText(row), profile)
  }
  const merging = new Map<string, StoredIdentifier>()
  for (const { tenantId, identifiers } of groups) {
    if (identifiers.length < 2) continue
    const rowsOfGroup = identifiers.flatMap(identifier => rows.get(keyText(tenantId, identifier)) ?? [])
    if (rowsOfGroup.every(({ profile }) => profile === rowsOfGroup[0]!.profile)) continue
    for (const row of rowsOfGroup) if (!row.isNew) merging.set(profileText(row), row)
  }
  if (merging.size === 0) return profiles
  for (const { tenantId, profile, ...facts } of await loadProfileFacts(client, [...merging.values()]))
    Object.assign(profiles.get(profileText({ tenantId, profile }))!, facts)
  return profiles
}

/** The tenants whose profile lock is needed to write these links. Empty if nothing changes. */
function tenantsToLock(groups: IdentifierGroup[], { tenantOf }: Loaded, links: Links): Set<number> {
  const { merges, moves, unlinked, confirmed } = links
  if (merges.length + moves.length + unlinked.length + confirmed.length === 0) return new Set()
  if (merges.length + unlinked.length === 0)
    return new Set([...moves.map(({ identifier }) => identifier), ...confirmed].map(tenantOf))
  return new Set(groups.map(({ tenantId }) => tenantId))
}

async function writeLinks(client: Transaction['client'], loaded: Loaded, links: Links): Promise<void> {
  const { merges, moves, unlinked, confirmed } = links
  const { tenantOf, tenantOfProfile } = loaded
  if (moves.length > 0) {
    await writeMoves(client, loaded, links)
    await bumpIdentityVersions(client, [...new Set(moves.map(({ identifier }) => tenantOf(identifier)))])
  }
  // After the moves, so that the new nodes move with their profiles.
  const moved =
    merges.length > 0
      ? await mergeProfiles(
          client,
          merges.map(({ from }) => ({
            tenantId: tenantOfProfile(from),
            from: from.id,
            into: survivingProfile({ id: null, profile: from }).id,
          })),
        )
      : []
  const rows = buildLinks(loaded, links, moved)
  if (rows.length > 0) await insertLinks(client, rows)
  if (confirmed.length > 0)
    await trustIdentifiers(
      client,
      confirmed.map(identifier => ({ tenantId: tenantOf(identifier), node: identifier.node.id! })),
    )
  if (unlinked.length > 0)
    await insertUnlinked(
      client,
      unlinked.map(({ node, other, cause }) => ({
        tenantId: tenantOfProfile(node.profile),
        node: node.id!,
        other: other.id!,
        causeId: cause.kind === 'event' ? cause.id : null,
      })),
    )
}

/** In one statement, however often an identifier moves: a batch can move one back and forth thousands of times. */
async function writeMoves(client: Transaction['client'], { tenantOf }: Loaded, { moves }: Links): Promise<void> {
  const nodes = await allocateNodes(client, moves.length)
  const first = new Map<KnownIdentifier, number>()
  const last = new Map(moves.map(move => [move.identifier, move]))
  for (const [i, { identifier, from, to }] of moves.entries()) {
    if (!first.has(identifier)) first.set(identifier, from.id!)
    to.id = nodes[i]!
  }
  await moveIdentifiers(
    client,
    moves.map(move => ({
      tenantId: tenantOf(move.identifier),
      first: first.get(move.identifier)!,
      from: move.from.id!,
      to: move.to.id!,
      profile: move.to.profile.id,
      isLast: last.get(move.identifier) === move,
    })),
  )
}

/** Each link with the nodes that it moved: those of its profile, and of profiles merged into that one before. */
function buildLinks(
  { tenantOf, tenantOfProfile }: Loaded,
  { merges, moves }: Links,
  moved: { tenantId: number; from: number; node: number }[],
) {
  const nodesByProfile = new Map(
    [...Map.groupBy(moved, ({ tenantId, from }) => `${tenantId} ${from}`)].map(
      ([key, rows]) => [key, rows.map(({ node }) => node)] as const,
    ),
  )
  const brought = new Map<Profile, number[]>()
  const mergeLinks = merges.map(({ from, into, node, other, cause }) => {
    const tenantId = tenantOfProfile(from)
    const nodes = [...(nodesByProfile.get(`${tenantId} ${from.id}`) ?? []), ...(brought.get(from) ?? [])]
    brought.set(into, [...(brought.get(into) ?? []), ...nodes])
    return {
      tenantId,
      profile: into.id,
      fromProfile: from.id,
      nodes,
      node: node.id!,
      other: other.id!,
      cause,
    }
  })
  const moveLinks = moves.map(({ identifier, to, other, cause }) => ({
    tenantId: tenantOf(identifier),
    profile: to.profile.id,
    fromProfile: to.id!,
    nodes: [to.id!],
    node: to.id!,
    other: other.id!,
    cause,
  }))
  return [...mergeLinks, ...moveLinks]
}

function identifierText({ kind, value }: Identifier): string {
  return `${kind} ${value}`
}

function keyText(tenantId: number, identifier: Identifier): string {
  return `${tenantId} ${identifierText(identifier)}`
}

function profileText({ tenantId, profile }: { tenantId: number; profile: number }): string {
  return `${tenantId} ${profile}`
}

function settledKey({ identifiers, trusted }: IdentifierGroup): string {
  return `${trusted ? '+' : '-'}${identifiers.map(identifierText).join('\n')}`
}
