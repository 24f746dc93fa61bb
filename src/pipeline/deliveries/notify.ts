import { formatMovement } from '../../domain/billing/account.ts'
import { isWanted, type What } from '../../domain/destinations/destinations.ts'
import { hashToId, newEntryId } from '../../domain/ids.ts'
import { type Archivable, archiveState, insertArchivable } from '../../store/archive/archive.ts'
import type { MovementRow } from '../../store/billing/accounts.ts'
import type { ObjectKey } from '../../store/billing/rows.ts'
import { type SaleKey, type SaleState, saleStates, salesOfProfiles } from '../../store/conversions/conversions.ts'
import { type Destination, listSubscribed } from '../../store/destinations/destinations.ts'
import {
  findSentMessages,
  insertMessages,
  insertQueued,
  lockMovementClock,
  type Message,
  movementsBetween,
} from '../../store/destinations/outbox.ts'
import { peopleOfNodes } from '../../store/events/events.ts'
import { conversionText, eventText, recordText } from '../../store/export/row-texts.ts'
import { loadRecords } from '../../store/records/records.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import type { FreshEvent } from '../events/events.ts'
import type { ChangedRecord } from '../records/records.ts'
import { type Deriving, openMemory, type Transaction } from '../unit.ts'

// A transaction writes a sale in several places and steps. Destinations get one message per change, so sales are
// compared before and after: `startSaleChanges`, then `rememberSales` before each write, then `notifySaleChanges`.

export function startSaleChanges(transaction: Transaction, audience: Audience): void {
  transaction.salesBefore = {
    isWanted: tenantId => audience.isArchived || wantsAny(audience, tenantId, 'conversions'),
    keys: new Map(),
    states: new Map(),
  }
}

/** Call before sales are written, once they are locked. */
export async function rememberSales({ client, salesBefore }: Transaction, sales: SaleKey[]): Promise<void> {
  if (!salesBefore) return
  const fresh = sales.flatMap(({ tenantId, saleKey }) =>
    salesBefore.isWanted(tenantId) && !salesBefore.keys.has(`${tenantId} ${saleKey}`) ? [{ tenantId, saleKey }] : [],
  )
  if (fresh.length === 0) return
  for (const sale of fresh) salesBefore.keys.set(`${sale.tenantId} ${sale.saleKey}`, sale)
  for (const state of await saleStates(client, fresh)) salesBefore.states.set(idText(state), state)
}

/** Call before profiles are merged or split, if that may change the contact of their sales. */
export async function rememberSalesOfProfiles(
  transaction: Transaction,
  profiles: { tenantId: number; profile: number }[],
): Promise<void> {
  const { client, salesBefore } = transaction
  const wanted = salesBefore ? profiles.filter(({ tenantId }) => salesBefore.isWanted(tenantId)) : []
  const sales = wanted.length > 0 ? await salesOfProfiles(client, wanted) : []
  if (sales.length > 0) await rememberSales(transaction, sales)
}

/** Writes messages about the sales that are different now. */
export async function notifySaleChanges({ client, now, salesBefore }: Transaction, audience: Audience): Promise<void> {
  if (!salesBefore || salesBefore.keys.size === 0) return
  const changes = compareSales(salesBefore.states, await saleStates(client, [...salesBefore.keys.values()]))
  if (changes.length === 0) return
  if (audience.isArchived)
    await insertArchivable(
      client,
      changes.map(change => toArchivable(change, now)),
    )
  const wanted = changes.filter(({ state }) => wantsAny(audience, state.tenantId, 'conversions'))
  await enqueueMessages(
    { client },
    audience,
    wanted.map(change => saleMessage(change, now)),
  )
}

type Change = { verb: 'created' | 'updated' | 'deleted'; state: SaleState }

/** For destinations, a row that is not listed does not exist. */
function compareSales(before: Map<string, SaleState>, after: SaleState[]): Change[] {
  const now = new Map(after.map(state => [idText(state), state]))
  return [...new Set([...before.keys(), ...now.keys()])].flatMap((key): Change[] => {
    const [was, is] = [before, now].map(states => listed(states.get(key))) as [Listed, Listed]
    if (is && !was) return [{ verb: 'created', state: is }]
    if (was && !is) return [{ verb: 'deleted', state: was }]
    return was && is && saleFacts(was) !== saleFacts(is) ? [{ verb: 'updated', state: is }] : []
  })
}

function saleMessage({ verb, state }: Change, at: Date): Message {
  return {
    ...{ tenantId: state.tenantId, id: newEntryId(at.getTime()), at, what: 'conversions' },
    type: `conversion.${verb}`,
    object: state.id,
    data: conversionText(state),
  }
}

/** One archived row per change, with its kind and time. */
function toArchivable({ verb, state }: Change, at: Date): Archivable {
  const { tenantId, id } = state
  const body = `${JSON.stringify({ change: verb, changed_at: at }).slice(0, -1)},${conversionText(state).slice(1)}`
  return { tenantId, what: 'conversions', id, receivedAt: at, bytes: body.length, body }
}

type Listed = SaleState | null

function listed(state: SaleState | undefined): Listed {
  return state?.isListed ? state : null
}

function saleFacts({ amount, currency, conversionType, contactId }: SaleState): string {
  return JSON.stringify([amount === null ? null : Number(amount), currency, conversionType, contactId])
}

function idText({ tenantId, id }: SaleState): string {
  return `${tenantId} ${id}`
}

type Listener = Pick<Destination, 'id' | 'what' | 'eventTypes' | 'alertRules' | 'enabled'>

/** The destinations that receive messages, and whether the archive is on. */
export type Audience = {
  ofTenant: ReadonlyMap<number, Listener[]>
  /** Whether everything is also written to the file archive. */
  isArchived: boolean
}

/** Reads the audience once per version of the configuration. Without destinations, a transaction pays nothing. */
export type LoadAudience = (transaction: Transaction) => Promise<Audience>

export function openAudience(): LoadAudience {
  const memory = openMemory((): { audience: Audience | null } => ({ audience: null }))
  return async transaction => {
    const known = memory(transaction)
    known.audience ??= await loadAudience(transaction)
    return known.audience
  }
}

// Uses the transaction's own connection. A worker that waits for a second one could wait forever.
async function loadAudience({ client }: Pick<Transaction, 'client'>): Promise<Audience> {
  const { enabled } = await archiveState(client)
  return { ofTenant: Map.groupBy(await listSubscribed(client), ({ tenantId }) => tenantId), isArchived: enabled }
}

/** Also true for a disabled destination, because its messages can be replayed later. */
function isWantedByAny({ ofTenant }: Audience, tenantId: number, message: { what: What; type: string }): boolean {
  return ofTenant.get(tenantId)?.some(listener => isWanted(listener, message)) ?? false
}

function wantsAny({ ofTenant }: Pick<Audience, 'ofTenant'>, tenantId: number, what: What): boolean {
  return ofTenant.get(tenantId)?.some(listener => listener.what.includes(what)) ?? false
}

/** Writes messages and their deliveries to the outbox, in the transaction of the effects that they report. */
export async function enqueueMessages(
  { client }: Pick<Transaction, 'client'>,
  { ofTenant }: Pick<Audience, 'ofTenant'>,
  messages: Message[],
): Promise<void> {
  if (messages.length === 0) return
  await insertMessages(client, messages)
  const queued = messages.flatMap(message =>
    (ofTenant.get(message.tenantId) ?? [])
      .filter(listener => listener.enabled && isWanted(listener, message))
      .map(({ id: destinationId }) => ({ ...message, destinationId })),
  )
  if (queued.length > 0) await insertQueued(client, queued)
}

type TenantAudience = Pick<Audience, 'ofTenant'>
type NewMovement = Pick<MovementRow, 'tenantId' | 'id' | 'currency' | 'movement'>

/**
 * Notifies destinations of the movements that `replace` writes for the first time. A movement that a late event only
 * rewrites is not sent again. Jobs, which have no memory, derive accounts, too. So the destinations are read every time.
 */
export async function notifyMovements(
  { client, now }: Deriving,
  accounts: ObjectKey[],
  replace: (isNotifying: boolean) => Promise<MovementRow[]>,
): Promise<void> {
  const tenants = new Set(accounts.map(({ tenantId }) => tenantId))
  const listeners = (await listSubscribed(client, 'movements')).filter(({ tenantId }) => tenants.has(tenantId))
  const audience: TenantAudience = { ofTenant: Map.groupBy(listeners, ({ tenantId }) => tenantId) }
  const added = await replace(listeners.length > 0)
  // Future movements are sent when they are due, because they may still change.
  await enqueueMovements(
    { client, now },
    audience,
    added.filter(({ movement }) => movement.at <= now.getTime()),
  )
}

/** Sends each movement once, however often it is written: its id is a hash of account, currency and time. */
async function enqueueMovements(
  { client, now }: Deriving,
  audience: TenantAudience,
  movements: NewMovement[],
): Promise<void> {
  const wanted = movements.filter(({ tenantId }) => wantsAny(audience, tenantId, 'movements'))
  for (const [tenantId, own] of Map.groupBy(wanted, movement => movement.tenantId)) {
    const known = await findSentMessages(client, tenantId, own.map(movementId))
    const fresh = own.filter(movement => !known.has(movementId(movement)))
    const names = await accountNames(client, tenantId, [...new Set(fresh.map(({ id }) => id))])
    await enqueueMessages(
      { client },
      audience,
      fresh.map(movement => movementMessage(movement, names.get(movement.id) ?? null, now)),
    )
  }
}

/** Notifies destinations of the movements that have become due since the last run. */
export async function notifyDueMovements({ client, now }: Deriving): Promise<void> {
  const since = await lockMovementClock(client, now)
  if (since === null) return
  const listeners = await listSubscribed(client, 'movements')
  if (listeners.length === 0) return
  const ofTenant = Map.groupBy(listeners, ({ tenantId }) => tenantId)
  const due = await movementsBetween(client, [...ofTenant.keys()], { since, until: now })
  await enqueueMovements({ client, now }, { ofTenant }, due)
}

function movementId({ tenantId, id, currency, movement }: NewMovement): string {
  return hashToId(JSON.stringify(['movement', tenantId, id, currency, movement.at]))
}

function movementMessage(moved: NewMovement, name: string | null, at: Date): Message {
  const { tenantId, id, currency, movement } = moved
  return {
    ...{ tenantId, id: movementId(moved), at, what: 'movements', object: id },
    type: `movement.${movement.type}`,
    data: JSON.stringify(
      formatMovement({ ...movement, account: id, customerName: name, currency, at: new Date(movement.at) }),
    ),
  }
}

const messageType = ({ event }: FreshEvent) => `event.${event.eventType}`

/** Sends events to destinations. A message has the id of its event. */
export async function notifyEvents(transaction: Transaction, audience: Audience, events: FreshEvent[]): Promise<void> {
  if (audience.isArchived) await insertArchivable(transaction.client, events.map(archivable))
  if (audience.ofTenant.size === 0) return
  const wanted = events.filter(fresh =>
    isWantedByAny(audience, fresh.tenantId, { what: 'events', type: messageType(fresh) }),
  )
  if (wanted.length === 0) return
  const { client, now: at } = transaction
  const nodes = wanted.flatMap(({ tenantId, node }) => (node === null ? [] : [{ tenantId, node }]))
  const people = await peopleOfNodes(client, nodes)
  await enqueueMessages(
    transaction,
    audience,
    wanted.map((fresh): Message => {
      const { tenantId, event, node } = fresh
      const person = people.get(`${tenantId} ${node}`)
      const data = eventText({
        ...event,
        profile: person?.profile ?? null,
        contactId: person?.contactId ?? null,
        verified: event.trusted,
        headers: JSON.stringify(event.headers),
        meta: JSON.stringify(event.meta),
      })
      return { tenantId, id: event.id, at, what: 'events', type: messageType(fresh), object: event.id, data }
    }),
  )
}

function archivable({ tenantId, event }: FreshEvent): Archivable {
  const { id, receivedAt } = event
  return { tenantId, what: 'events', id, receivedAt, bytes: event.payload.length, body: null }
}

/** Sends records to destinations in their current state. */
export async function notifyRecords(
  transaction: Transaction,
  audience: Audience,
  changed: ChangedRecord[],
): Promise<void> {
  if (audience.ofTenant.size === 0) return
  const wanted = changed.filter(({ tenantId }) => wantsAny(audience, tenantId, 'records'))
  if (wanted.length === 0) return
  const { client, now: at } = transaction
  await enqueueMessages(
    transaction,
    audience,
    (await loadRecords(client, wanted)).map(
      ({ tenantId, ...record }): Message => ({
        ...{ tenantId, id: newEntryId(at.getTime()), at, what: 'records' },
        type: `${record.entityType}.${record.deleted ? 'deleted' : 'updated'}`,
        object: `${record.entityType}/${record.id}`,
        data: recordText(record, true),
      }),
    ),
  )
}
