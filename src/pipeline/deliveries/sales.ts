import { newEntryId } from '../../domain/ids.ts'
import { type Archivable, insertArchivable } from '../../store/archive/archive.ts'
import { type SaleRef, type SaleState, saleStates, salesOfProfiles } from '../../store/conversions/conversions.ts'
import type { Message } from '../../store/destinations/outbox.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { Transaction } from '../unit.ts'
import { type Audience, enqueueMessages, wantsAny } from './audience.ts'

// A transaction writes a sale in several places and steps. Destinations get one message per change, so sales are
// compared before and after: `startSaleChanges`, then `rememberSales` before each write, then `notifySaleChanges`.

export function startSaleChanges(transaction: Transaction, audience: Audience): void {
  transaction.salesBefore = {
    isWanted: tenantId => audience.isArchived || wantsAny(audience, tenantId, 'conversions'),
    refs: [],
    states: new Map(),
  }
}

/** Call before sales are written, once they are locked. */
export async function rememberSales({ client, salesBefore }: Transaction, refs: SaleRef[]): Promise<void> {
  const wanted = salesBefore ? refs.filter(({ tenantId }) => salesBefore.isWanted(tenantId)) : []
  if (!salesBefore || wanted.length === 0) return
  // A sale that is known under another reference may have been written already. Its state is no longer the one before.
  const known = new Set(salesBefore.refs.map(refText))
  const fresh = wanted.filter(ref => !known.has(refText(ref)))
  if (fresh.length === 0) return
  salesBefore.refs.push(...fresh)
  for (const state of await saleStates(client, fresh))
    if (!saleReferences(state).some(name => known.has(name))) salesBefore.states.set(idText(state), state)
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
  if (!salesBefore || salesBefore.refs.length === 0) return
  const changes = compareSales(salesBefore.states, await saleStates(client, salesBefore.refs))
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
  const { tenantId, id, occurredAt } = state
  const body = `${JSON.stringify({ change: verb, changed_at: at }).slice(0, -1)},${conversionText(state).slice(1)}`
  return { tenantId, what: 'conversions', id, receivedAt: at, occurredAt, bytes: body.length, body }
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

function saleReferences({ tenantId, saleKey, orderId }: SaleState): string[] {
  const names = [refText({ tenantId, saleKey })]
  return orderId === null ? names : [...names, refText({ tenantId, orderId })]
}

function refText({ tenantId, saleKey, orderId }: SaleRef): string {
  return JSON.stringify([tenantId, saleKey ?? null, orderId ?? null])
}
