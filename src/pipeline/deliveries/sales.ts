import { newEntryId } from '../../domain/ids.ts'
import { type SaleRef, type SaleState, saleStates } from '../../store/conversions/changes.ts'
import type { Message } from '../../store/destinations/outbox.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { Transaction } from '../unit.ts'
import { type AudienceOf, tell, wantsAny } from './audience.ts'

/** Tells of conversions by comparing them before and after: a sale is written in several places, in several steps. */
export type SaleChanges = {
  begin(transaction: Transaction): void
  /** Called once what was begun has been written: in the same transaction. */
  end(transaction: Transaction): Promise<void>
}

type Kept = { refs: SaleRef[]; before: Map<string, SaleState> }

export function openSaleChanges(audienceOf: AudienceOf): SaleChanges {
  const keptIn = new WeakMap<Transaction, Kept>()
  return {
    begin(transaction) {
      const kept: Kept = { refs: [], before: new Map() }
      keptIn.set(transaction, kept)
      transaction.beforeSales = async refs => {
        const audience = await audienceOf(transaction)
        if (audience.ofTenant.size === 0) return
        const wanted = refs.filter(({ tenantId }) => wantsAny(audience, tenantId, 'conversions'))
        if (wanted.length === 0) return
        // What was kept under another name before may have been written since: what it is now is not what it was.
        const known = new Set(kept.refs.map(refText))
        const fresh = wanted.filter(ref => !known.has(refText(ref)))
        if (fresh.length === 0) return
        kept.refs.push(...fresh)
        for (const state of await saleStates(transaction.client, fresh))
          if (!namesOf(state).some(name => known.has(name))) kept.before.set(idText(state), state)
      }
    },
    async end(transaction) {
      const kept = keptIn.get(transaction)
      if (!kept || kept.refs.length === 0) return
      const { client, now } = transaction
      const after = await saleStates(client, kept.refs)
      await tell(transaction, await audienceOf(transaction), messagesOf(kept.before, after, now))
    },
  }
}

/** What changed, as messages. A row that is not listed is not there for those who are told. */
export function messagesOf(before: Map<string, SaleState>, after: SaleState[], at: Date): Message[] {
  const now = new Map(after.map(state => [idText(state), state]))
  const changes = [...new Set([...before.keys(), ...now.keys()])].flatMap(key => {
    const [was, is] = [before, now].map(states => listed(states.get(key))) as [Listed, Listed]
    if (is && !was) return [{ verb: 'created', state: is }]
    if (was && !is) return [{ verb: 'deleted', state: was }]
    return was && is && facts(was) !== facts(is) ? [{ verb: 'updated', state: is }] : []
  })
  return changes.map(({ verb, state }) => ({
    ...{ tenantId: state.tenantId, id: newEntryId(at.getTime()), at, what: 'conversions' },
    type: `conversion.${verb}`,
    object: state.id,
    data: conversionText(state),
  }))
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
