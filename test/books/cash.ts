// Invoiced, collected, refunded and outstanding amounts.
import { lastAt, push } from './accounts.ts'
import type { Fact, FactOf, Invoice } from './model.ts'
import { sum } from './money.ts'

export type Collected = {
  /** Payments of subscription invoices, minus returned money. */
  amount: number
  /** How many payments. */
  count: number
  refunded: number
  disputed: number
  /** Charges and manual invoices, minus their refunds. */
  oneOff: number
}

/** Money returned at an instant. */
type Return = { at: number; amount: number; currency: string; isOneOff: boolean; what: 'refund' | 'dispute' }

export type Cash = ReturnType<typeof cashOf>

export function cashOf(facts: Fact[]) {
  const invoices = new Map<string, { at: number; what: FactOf<'invoice'>['what']; state: Invoice }[]>()
  for (const fact of facts)
    if (fact.kind === 'invoice' && fact.after.livemode)
      push(invoices, fact.after.id, { at: fact.at, what: fact.what, state: fact.after })
  const payments = facts.flatMap(fact =>
    fact.kind === 'payment' && fact.payment.livemode && fact.payment.outcome === 'succeeded' ? [fact.payment] : [],
  )

  function invoicesAt(currency: string, at: number): Invoice[] {
    return [...invoices.values()].flatMap(versions => {
      const state = lastAt(versions, at)?.state
      return state && state.currency === currency ? [state] : []
    })
  }

  return {
    invoicesAt,
    /** Every version of every invoice, oldest first. */
    invoiceVersions: invoices,
    /** By totals including tax, without invoices that are drafts or voided at the end of the window. */
    invoiced(currency: string, after: number, until: number) {
      const counted = invoicesAt(currency, until).filter(
        ({ finalizedAt, status }) =>
          finalizedAt !== null &&
          finalizedAt > after &&
          finalizedAt <= until &&
          status !== 'void' &&
          status !== 'draft',
      )
      return { amount: sum(counted.map(({ total }) => total)), count: counted.length }
    },
    collected(currency: string, after: number, until: number): Collected {
      const isIn = (row: { at: number; currency: string }) =>
        row.currency === currency && row.at > after && row.at <= until
      const came = payments.filter(isIn)
      const recurring = came.filter(({ subscription }) => subscription !== null)
      const went = returnsOf(facts, until).filter(isIn)
      const back = (what: Return['what'], isOneOff: boolean) =>
        sum(went.filter(row => row.what === what && row.isOneOff === isOneOff).map(({ amount }) => amount))
      const paid = sum(recurring.map(({ amount }) => amount))
      const [refunded, disputed] = [back('refund', false), back('dispute', false)]
      const oneOff = sum(came.map(({ amount }) => amount)) - paid - back('refund', true)
      return { amount: paid - refunded - disputed, count: recurring.length, refunded, disputed, oneOff }
    },
    /** The remaining amount of open invoices. */
    outstanding(currency: string, at: number) {
      const open = invoicesAt(currency, at).filter(
        ({ status, amountRemaining }) => status === 'open' && amountRemaining > 0,
      )
      return { amount: sum(open.map(({ amountRemaining }) => amountRemaining)), count: open.length }
    },
  }
}

/** As known at an instant: a refund that has failed by then does not count, nor does an open dispute. */
function returnsOf(facts: Fact[], asOf: number): Return[] {
  const failed = new Set(
    facts.flatMap(fact => (fact.kind === 'refund' && fact.what === 'failed' && fact.at <= asOf ? [fact.after.id] : [])),
  )
  return facts.flatMap((fact): Return[] => {
    if (fact.at > asOf) return []
    if (fact.kind === 'refund' && fact.what === 'created') {
      const { id, amount, payment } = fact.after
      if (failed.has(id) || !payment.livemode) return []
      const isOneOff = payment.subscription === null
      return [{ at: fact.at, amount, currency: payment.currency, isOneOff, what: 'refund' }]
    }
    // Refunds of credit notes are counted above. Only money returned outside of the provider is counted here.
    if (fact.kind === 'credit_note' && fact.after.how === 'out_of_band') {
      const { amount, invoice } = fact.after
      if (!invoice.livemode) return []
      const isOneOff = invoice.subscription === null
      return [{ at: fact.at, amount, currency: invoice.currency, isOneOff, what: 'refund' }]
    }
    if (fact.kind === 'dispute' && fact.after.status === 'lost') {
      const { amount, payment } = fact.after
      if (!payment.livemode) return []
      const isOneOff = payment.subscription === null
      return [{ at: fact.at, amount, currency: payment.currency, isOneOff, what: 'dispute' }]
    }
    return []
  })
}
