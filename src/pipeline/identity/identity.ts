import type { Identity, PersonNode } from '../../domain/identity/identity.ts'
import {
  type Cause,
  type Joins,
  join,
  type Name,
  newProfile,
  type Profile,
  profileOf,
  vouchesFor,
} from '../../domain/identity/joining.ts'
import {
  ensureIdentities,
  factsOfProfiles,
  type IdentityKey,
  identityVersions,
  insertJoins,
  type KnownIdentity,
  keepUnjoined,
  mergeProfiles,
  moveIdentityVersions,
  moveNames,
  newNodes,
  type ProfileKey,
  trustNames,
} from '../../store/identity/identities.ts'
import { rememberSalesOfProfiles } from '../deliveries/sales.ts'
import { prepareProfileLock, takeProfileLock } from '../profile-lock.ts'
import { type IdentifierMemory, type Learned, openMemory, type Transaction } from '../unit.ts'

/** Names of one person, seen together. `trusted`: by somebody who may merge people that are known. */
export type NamesSeen = { tenantId: number; identities: Identity[]; trusted: boolean; cause: Cause }

// About 10 MB at the most.
const MAX_REMEMBERED = 50_000

export type Identities = {
  /**
   * Links the identifiers of each group, and finds the node of its first identifier. It changes identifiers, nodes and
   * profiles only: see `resolveNodes` for the effects of a merge.
   */
  resolve(transaction: Transaction, groups: NamesSeen[]): Promise<Resolved>
}

type Resolved = {
  /** Per group, the node of its first identifier. Null if it has none. */
  nodes: (number | null)[]
  /** Profiles into which others were merged, */
  merged: ProfileKey[]
  /** and the nodes of the groups that were resolved then. */
  changed: PersonNode[]
}

export function openIdentities(): Identities {
  const memory = openMemory(() => new Map<number, IdentifierMemory>())

  /** Per tenant, what is remembered and still valid. */
  async function recall(
    transaction: Transaction,
    groups: NamesSeen[],
  ): Promise<Map<number, IdentifierMemory>> {
    const remembered = memory(transaction)
    const tenantIds = [...new Set(groups.map(({ tenantId }) => tenantId))]
    const versions = await identityVersions(transaction.client, tenantIds)
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
        if (group.identities.length === 0) continue
        const { nodes: known, settled } = remembered.get(group.tenantId)!
        const first = nameText(group.identities[0]!)
        const all = settledKey(group)
        const node = known.get(first)
        if (node !== undefined && settled.has(all)) nodes[index] = node
        else open.push({ index, first, all })
      }
      if (open.length === 0) return { nodes, merged: [], changed: [] }
      const { joins, movedTenants, merged } = await joinAll(
        transaction,
        open.map(({ index }) => groups[index]!),
      )
      const changed: PersonNode[] = []
      for (const [i, { index, first, all }] of open.entries()) {
        const { tenantId } = groups[index]!
        const node = joins.nodes[i]?.id ?? null
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
async function joinAll(
  transaction: Transaction,
  groups: NamesSeen[],
): Promise<{ joins: Joins; movedTenants: Set<number>; merged: ProfileKey[] }> {
  const { client } = transaction
  await prepareProfileLock(transaction)
  let people = await loadPeople(client, groups)
  if (people.newNodes.length > 0) {
    transaction.newNodes ??= new Set()
    for (const node of people.newNodes) transaction.newNodes.add(node)
  }
  let joins = join(people.sightings)
  const tenants = joiningTenants(groups, people, joins)
  if (tenants.size > 0) {
    await takeProfileLock(transaction, tenants)
    // Another worker may have linked them while this one waited for the lock.
    people = await loadPeople(client, groups)
    joins = join(people.sightings)
    const contacts = contactsMeeting(people, joins)
    if (contacts.length > 0) await rememberSalesOfProfiles(transaction, contacts)
    await writeJoins(client, people, joins)
  }
  const survivors = new Set(joins.merges.map(({ into }) => profileOf({ id: null, profile: into })))
  return {
    joins,
    movedTenants: new Set(joins.moves.map(({ name }) => people.tenantOf(name))),
    merged: [...survivors].map(profile => ({
      tenantId: people.tenantOfProfile(profile),
      profile: profile.id,
    })),
  }
}

/** Profiles that are merged with one that has a contact: their sales may become that contact's. */
function contactsMeeting({ tenantOfProfile }: People, { merges }: Joins): ProfileKey[] {
  return merges.flatMap(({ from, into }) =>
    from.hasContact || into.hasContact
      ? [from, into].map(profile => ({ tenantId: tenantOfProfile(profile), profile: profile.id }))
      : [],
  )
}

type People = {
  /** Nodes that this statement created, as `tenant node`. */
  newNodes: string[]
  sightings: { names: Name[]; trusted: boolean; cause: Cause }[]
  tenantOf(name: Name): number
  tenantOfProfile(profile: Profile): number
}

async function loadPeople(client: Transaction['client'], seen: NamesSeen[]): Promise<People> {
  const wanted = new Map<string, IdentityKey & { trusted: boolean }>()
  for (const { tenantId, identities, trusted } of seen) {
    const isVouched = trusted && vouchesFor(identities)
    for (const identity of identities) {
      const key = keyText(tenantId, identity)
      const before = wanted.get(key)
      if (!before) wanted.set(key, { tenantId, ...identity, trusted: isVouched })
      else if (isVouched) before.trusted = true
    }
  }
  const known = wanted.size > 0 ? await ensureIdentities(client, [...wanted.values()]) : []
  const rows = new Map(known.map(row => [keyText(row.tenantId, row), row]))
  const profiles = await loadProfiles(client, seen, rows)
  const tenants = new Map<Name | Profile, number>()
  const names = new Map<string, Name>()
  for (const [key, row] of rows) {
    const profile = profiles.get(profileText(row))!
    const name = { kind: row.kind, node: { id: row.node, profile }, trusted: row.trusted }
    names.set(key, name)
    tenants.set(name, row.tenantId).set(profile, row.tenantId)
  }
  return {
    newNodes: known.flatMap(row => (row.isNew ? `${row.tenantId} ${row.node}` : [])),
    sightings: seen.map(({ tenantId, identities, trusted, cause }) => ({
      names: identities.flatMap(identity => names.get(keyText(tenantId, identity)) ?? []),
      trusted,
      cause,
    })),
    tenantOf: name => tenants.get(name)!,
    tenantOfProfile: profile => tenants.get(profile)!,
  }
}

/** Most names are seen alone, or with others of their own profile: only where profiles meet is it asked what they are. */
async function loadProfiles(
  client: Transaction['client'],
  seen: NamesSeen[],
  rows: Map<string, KnownIdentity>,
): Promise<Map<string, Profile>> {
  const profiles = new Map<string, Profile>()
  for (const row of rows.values()) {
    const profile = profiles.get(profileText(row)) ?? newProfile(row.profile)
    if (row.kind === 'user') profile.hasUser = true
    if (row.kind === 'contact') profile.hasContact = true
    profiles.set(profileText(row), profile)
  }
  const meeting = new Map<string, KnownIdentity>()
  for (const { tenantId, identities } of seen) {
    if (identities.length < 2) continue
    const met = identities.flatMap(identity => rows.get(keyText(tenantId, identity)) ?? [])
    if (met.every(({ profile }) => profile === met[0]!.profile)) continue
    for (const row of met) if (!row.isNew) meeting.set(profileText(row), row)
  }
  if (meeting.size === 0) return profiles
  for (const { tenantId, profile, ...facts } of await factsOfProfiles(client, [...meeting.values()]))
    Object.assign(profiles.get(profileText({ tenantId, profile }))!, facts)
  return profiles
}

/** Whose merge lock it takes to write these joins: none where nothing is new. */
function joiningTenants(seen: NamesSeen[], { tenantOf }: People, joins: Joins): Set<number> {
  const { merges, moves, unjoined, vouched } = joins
  if (merges.length + moves.length + unjoined.length + vouched.length === 0) return new Set()
  if (merges.length + unjoined.length === 0)
    return new Set([...moves.map(({ name }) => name), ...vouched].map(tenantOf))
  return new Set(seen.map(({ tenantId }) => tenantId))
}

async function writeJoins(client: Transaction['client'], people: People, joins: Joins): Promise<void> {
  const { merges, moves, unjoined, vouched } = joins
  const { tenantOf, tenantOfProfile } = people
  if (moves.length > 0) {
    await writeMoves(client, people, joins)
    await moveIdentityVersions(client, [...new Set(moves.map(({ name }) => tenantOf(name)))])
  }
  // After the moves: their new nodes go where their profiles go.
  const moved =
    merges.length > 0
      ? await mergeProfiles(
          client,
          merges.map(({ from }) => ({
            tenantId: tenantOfProfile(from),
            from: from.id,
            into: profileOf({ id: null, profile: from }).id,
          })),
        )
      : []
  const joined = joinRows(people, joins, moved)
  if (joined.length > 0) await insertJoins(client, joined)
  if (vouched.length > 0)
    await trustNames(
      client,
      vouched.map(name => ({ tenantId: tenantOf(name), node: name.node.id! })),
    )
  if (unjoined.length > 0)
    await keepUnjoined(
      client,
      unjoined.map(({ node, other, cause }) => ({
        tenantId: tenantOfProfile(node.profile),
        node: node.id!,
        other: other.id!,
        causeId: cause.kind === 'event' ? cause.id : null,
      })),
    )
}

/** All at once, however often a name moved: a batch can send one to and fro thousands of times. */
async function writeMoves(
  client: Transaction['client'],
  { tenantOf }: People,
  { moves }: Joins,
): Promise<void> {
  const nodes = await newNodes(client, moves.length)
  const first = new Map<Name, number>()
  const last = new Map(moves.map(move => [move.name, move]))
  for (const [i, { name, from, to }] of moves.entries()) {
    if (!first.has(name)) first.set(name, from.id!)
    to.id = nodes[i]!
  }
  await moveNames(
    client,
    moves.map(move => ({
      tenantId: tenantOf(move.name),
      first: first.get(move.name)!,
      from: move.from.id!,
      to: move.to.id!,
      profile: move.to.profile.id,
      isLast: last.get(move.name) === move,
    })),
  )
}

/** Each join with the nodes that it brought: those of its profile, and of the profiles that this had taken in before. */
function joinRows(
  { tenantOf, tenantOfProfile }: People,
  { merges, moves }: Joins,
  moved: { tenantId: number; from: number; node: number }[],
) {
  const nodesOf = new Map(
    [...Map.groupBy(moved, ({ tenantId, from }) => `${tenantId} ${from}`)].map(
      ([key, rows]) => [key, rows.map(({ node }) => node)] as const,
    ),
  )
  const brought = new Map<Profile, number[]>()
  const merged = merges.map(({ from, into, node, other, cause }) => {
    const tenantId = tenantOfProfile(from)
    const nodes = [...(nodesOf.get(`${tenantId} ${from.id}`) ?? []), ...(brought.get(from) ?? [])]
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
  const went = moves.map(({ name, to, other, cause }) => ({
    tenantId: tenantOf(name),
    profile: to.profile.id,
    fromProfile: to.id!,
    nodes: [to.id!],
    node: to.id!,
    other: other.id!,
    cause,
  }))
  return [...merged, ...went]
}

function nameText({ kind, value }: Identity): string {
  return `${kind} ${value}`
}

function keyText(tenantId: number, identity: Identity): string {
  return `${tenantId} ${nameText(identity)}`
}

function profileText({ tenantId, profile }: { tenantId: number; profile: number }): string {
  return `${tenantId} ${profile}`
}

function settledKey({ identities, trusted }: NamesSeen): string {
  return `${trusted ? '+' : '-'}${identities.map(nameText).join('\n')}`
}
