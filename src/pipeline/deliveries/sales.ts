import { newEntryId } from '../../domain/ids.ts'
import { type Archivable, insertArchivable } from '../../store/archive/archive.ts'
import { type SaleRef, type SaleState, saleStates, salesOfProfiles } from '../../store/conversions/changes.ts'
import type { Message } from '../../store/destinations/outbox.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { Transaction } from '../unit.ts'
import { type AudienceOf, isNobody, tell, wantsAny } from './audience.ts'

/** Tells of conversions by comparing them before and after: a sale is written in several places, in several steps. */
export type SaleChanges = {
  begin(transaction: Transaction): void
  /** Called once what was begun has been written: in the same transaction. */
  end(transaction: Transaction): Promise<void>
}

type Kept = { refs: SaleRef[]; before: Map<string, SaleState> }

export function openSaleChanges(audienceOf: AudienceOf): SaleChanges {
  const keptIn = new WeakMap<Transaction, Kept>()

  /** What is of tenants of whose sales somebody is told. */
  async function ofListened<T extends { tenantId: number }>(
    transaction: Transaction,
    things: T[],
  ): Promise<T[]> {
    const audience = await audienceOf(transaction)
    if (isNobody(audience)) return []
    if (audience.isArchived) return things
    return things.filter(({ tenantId }) => wantsAny(audience, tenantId, 'conversions'))
  }

  return {
    begin(transaction) {
      const kept: Kept = { refs: [], before: new Map() }
      keptIn.set(transaction, kept)
      transaction.beforeSales = async refs => {
        const wanted = await ofListened(transaction, refs)
        if (wanted.length === 0) return
        // What was kept under another name before may have been written since: what it is now is not what it was.
        const known = new Set(kept.refs.map(refText))
        const fresh = wanted.filter(ref => !known.has(refText(ref)))
        if (fresh.length === 0) return
        kept.refs.push(...fresh)
        for (const state of await saleStates(transaction.client, fresh))
          if (!namesOf(state).some(name => known.has(name))) kept.before.set(idText(state), state)
      }
      transaction.beforePeople = async profiles => {
        const wanted = await ofListened(transaction, profiles)
        const sales = wanted.length > 0 ? await salesOfProfiles(transaction.client, wanted) : []
        if (sales.length > 0) await transaction.beforeSales!(sales)
      }
    },
    async end(transaction) {
      const kept = keptIn.get(transaction)
      if (!kept || kept.refs.length === 0) return
      const { client, now } = transaction
      const changes = changesOf(kept.before, await saleStates(client, kept.refs))
      if (changes.length === 0) return
      const audience = await audienceOf(transaction)
      if (audience.isArchived)
        await insertArchivable(
          client,
          changes.map(change => archivable(change, now)),
        )
      const wanted = changes.filter(({ state }) => wantsAny(audience, state.tenantId, 'conversions'))
      await tell(
        transaction,
        audience,
        wanted.map(change => messageOf(change, now)),
      )
    },
  }
}

type Change = { verb: 'created' | 'updated' | 'deleted'; state: SaleState }

/** A row that is not listed is not there for those who are told. */
function changesOf(before: Map<string, SaleState>, after: SaleState[]): Change[] {
  const now = new Map(after.map(state => [idText(state), state]))
  return [...new Set([...before.keys(), ...now.keys()])].flatMap((key): Change[] => {
    const [was, is] = [before, now].map(states => listed(states.get(key))) as [Listed, Listed]
    if (is && !was) return [{ verb: 'created', state: is }]
    if (was && !is) return [{ verb: 'deleted', state: was }]
    return was && is && facts(was) !== facts(is) ? [{ verb: 'updated', state: is }] : []
  })
}

function messageOf({ verb, state }: Change, at: Date): Message {
  return {
    ...{ tenantId: state.tenantId, id: newEntryId(at.getTime()), at, what: 'conversions' },
    type: `conversion.${verb}`,
    object: state.id,
    data: conversionText(state),
  }
}

/** One row a change, which says what it was and when. */
function archivable({ verb, state }: Change, at: Date): Archivable {
  const { tenantId, id, occurredAt } = state
  const body = `${JSON.stringify({ change: verb, changed_at: at }).slice(0, -1)},${conversionText(state).slice(1)}`
  return { tenantId, what: 'conversions', id, receivedAt: at, occurredAt, bytes: body.length, body }
}

type Listed = SaleState | null

function listed(state: SaleState | undefined): Listed {
  return state?.isListed ? state : null
}

function facts({ amount, currency, conversionType, contactId }: SaleState): string {
  return JSON.stringify([amount === null ? null : Number(amount), currency, conversionType, contactId])
}

function idText({ tenantId, id }: SaleState): string {
  return `${tenantId} ${id}`
}

function namesOf({ tenantId, saleKey, orderId }: SaleState): string[] {
  const names = [refText({ tenantId, saleKey })]
  return orderId === null ? names : [...names, refText({ tenantId, orderId })]
}

function refText({ tenantId, saleKey, orderId }: SaleRef): string {
  return JSON.stringify([tenantId, saleKey ?? null, orderId ?? null])
}
