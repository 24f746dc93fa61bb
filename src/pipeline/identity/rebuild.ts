import { parseStoredEvent } from '../../domain/events/stored.ts'
import { isEarlierTouch, touchOf } from '../../domain/identity/attribution.ts'
import {
  contactIdentifiers,
  eventIdentifiers,
  type Identifier,
  orderIdentifiers,
} from '../../domain/identity/identifiers.ts'
import type { StoredNode } from '../../store/events/events.ts'
import { bumpIdentityVersions, type NewTouch, upsertTouches } from '../../store/identity/identities.ts'
import {
  deleteUnreferenced,
  loadConnected,
  loadLinkingRecords,
  loadLinksAmong,
  loadUndoneCauses,
  moveEvents,
  type NodeIdentifier,
  resetIdentifiers,
  takeTouches,
  updateReferences,
} from '../../store/identity/rebuild.ts'
import { attributeAccounts } from '../billing/subscriptions.ts'
import { combineSales } from '../conversions/profile-sales.ts'
import type { Transaction } from '../unit.ts'
import { type IdentifierGroup, openIdentities } from './linking.ts'

type Rebuild = {
  tenantId: number
  /** All identifiers concerned: see `loadConnected`. */
  circle: NodeIdentifier[]
  /** Their remaining events, in the order of arrival. */
  events: StoredNode[]
  /** Sales that are derived again. They link no one by themselves. */
  openSales: Set<string>
  /** Identifiers first seen since then are deleted unless a remaining event or record has them. */
  since: Date
  /** Whether it is derived again which identifiers are verified. */
  unverify: boolean
}

type Seen = IdentifierGroup & { event: StoredNode | null }

const AT_A_TIME = 1_000

/**
 * Derives these profiles again from what is left: their events, their records, and the links made by operators. The
 * caller holds the profile lock. Returns the number of deleted identifiers.
 */
export async function rebuildPeople(transaction: Transaction, rebuild: Rebuild): Promise<number> {
  const { client } = transaction
  const { tenantId, circle, unverify } = rebuild
  const nodes = circle.map(({ node }) => node)
  const seen = await loadSightings(transaction, rebuild, nodes)
  const touches = await takeTouches(client, tenantId, nodes)
  const first = new Map<string, number>()
  for (const name of circle) if (!first.has(nameText(name))) first.set(nameText(name), name.node)
  await resetIdentifiers(client, tenantId, { nodes, first: [...first.values()], unverify })
  const identities = openIdentities()
  const placed = new Map<string, number | null>()
  for (let from = 0; from < seen.length; from += AT_A_TIME) {
    const some = seen.slice(from, from + AT_A_TIME)
    const { nodes } = await identities.resolve(transaction, some)
    for (const [i, { event }] of some.entries()) if (event) placed.set(event.id, nodes[i] ?? null)
  }
  await bumpIdentityVersions(client, [tenantId])
  const places = await findCurrentNodes(transaction, tenantId, circle, first)
  await moveEvents(
    client,
    rebuild.events.flatMap(({ table, row, id, node }) =>
      placed.get(id) === node ? [] : [{ table, row, id, node: placed.get(id) ?? null }],
    ),
  )
  await updateReferences(client, tenantId, { nodes: places, events: placed })
  await writeTouches(transaction, rebuild, { placed, places, touches })
  const gone = await deleteUnseen(transaction, rebuild, seen)
  const left = await loadConnected(client, tenantId, [...first.values()])
  const profiles = [...new Set(left.map(({ profile }) => profile))].map(profile => ({ tenantId, profile }))
  await combineSales(transaction, profiles)
  await attributeAccounts(
    transaction,
    left.map(({ node }) => ({ tenantId, node })),
  )
  return gone
}

/** All groups of identifiers that appear together, in the order of arrival. */
async function loadSightings({ client }: Transaction, rebuild: Rebuild, nodes: number[]): Promise<Seen[]> {
  const { tenantId, circle, events, openSales } = rebuild
  const names = new Map<number, Identifier>(circle.map(({ node, kind, value }) => [node, { kind, value }]))
  const undone = await loadUndoneCauses(client, tenantId, nodes)
  const seen: Seen[] = events.map(event => {
    const cause = { kind: 'event' as const, id: event.id }
    const all = eventIdentifiers(parseStoredEvent(event))
    const identifiers = undone.has(`event ${event.id}`) ? all.slice(0, 1) : all
    return { tenantId, identifiers, verified: event.trusted, cause, receivedAt: event.receivedAt, event }
  })
  const kept = new Set(events.map(({ id }) => id))
  for (const { a, b, isVerified, cause, at } of await loadLinksAmong(client, tenantId, nodes)) {
    const isReplayed =
      cause.kind === 'record' || (cause.kind === 'event' ? kept.has(cause.id) : openSales.has(`order:${cause.id}`))
    if (isReplayed || (cause.kind === 'event' && isPurged(cause.id, rebuild))) continue
    const identifiers = [names.get(a)!, names.get(b)!]
    seen.push({ tenantId, identifiers, verified: isVerified, cause, receivedAt: new Date(at), event: null })
  }
  const contactIds = circle.flatMap(({ kind, value }) => (kind === 'contact' ? [value] : []))
  for (const { entityType, id, data, updatedAt } of await loadLinkingRecords(client, tenantId, nodes, contactIds)) {
    const identifiers =
      entityType === 'order' ? orderIdentifiers(JSON.parse(data)) : contactIdentifiers(id, JSON.parse(data))
    const cause = { kind: 'record' as const, id: `${entityType}/${id}` }
    if (undone.has(`record ${cause.id}`)) continue
    seen.push({
      tenantId,
      identifiers,
      verified: true,
      cause,
      receivedAt: updatedAt,
      event: null,
    })
  }
  return seen.sort((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime() || (a.cause.id < b.cause.id ? -1 : 1))
}

/** An event that is no longer stored was purged if it arrived since then. An earlier one was dropped by retention. */
function isPurged(eventId: string, { since }: Rebuild): boolean {
  return Number.parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16) >= since.getTime()
}

/** The current node of each identifier, by its former node. */
async function findCurrentNodes(
  { client }: Transaction,
  tenantId: number,
  circle: NodeIdentifier[],
  first: Map<string, number>,
): Promise<Map<number, number>> {
  const now = new Map(
    (await loadConnected(client, tenantId, [...first.values()]))
      .filter(({ retired }) => !retired)
      .map(name => [nameText(name), name.node]),
  )
  return new Map(circle.map(name => [name.node, now.get(nameText(name)) ?? first.get(nameText(name))!]))
}

type Placed = { placed: Map<string, number | null>; places: Map<number, number>; touches: NewTouch[] }

async function writeTouches(
  { client }: Transaction,
  rebuild: Rebuild,
  { placed, places, touches }: Placed,
): Promise<void> {
  const earliest = new Map<string, NewTouch>()
  const add = (touch: NewTouch) => {
    const key = `${touch.node} ${touch.kind}`
    const before = earliest.get(key)
    if (!before || isEarlierTouch(touch, before)) earliest.set(key, touch)
  }
  // Of events that retention dropped, only the touch is left.
  for (const touch of touches)
    if (!placed.has(touch.eventId) && !isPurged(touch.eventId, rebuild))
      add({ ...touch, node: places.get(touch.node)! })
  for (const stored of rebuild.events) {
    const node = placed.get(stored.id) ?? null
    const touch = node === null ? null : touchOf(parseStoredEvent(stored))
    if (node !== null && touch !== null) add({ tenantId: rebuild.tenantId, node, ...touch })
  }
  if (earliest.size > 0) await upsertTouches(client, [...earliest.values()])
}

/** Deletes identifiers that no event or record has any more and that first appeared with the purged events. */
async function deleteUnseen({ client }: Transaction, rebuild: Rebuild, seen: Seen[]): Promise<number> {
  const spoken = new Set(seen.flatMap(({ identifiers }) => identifiers.map(nameText)))
  const unseen = new Map<string, number>()
  for (const name of rebuild.circle) {
    const isKept = spoken.has(nameText(name)) || unseen.has(nameText(name))
    if (!isKept && name.firstSeenAt >= rebuild.since) unseen.set(nameText(name), name.node)
  }
  return unseen.size === 0 ? 0 : deleteUnreferenced(client, rebuild.tenantId, [...unseen.values()])
}

function nameText({ kind, value }: Identifier): string {
  return `${kind} ${value}`
}
