// Refunds, disputes and credit notes, and payments without a subscription.
import type { Collecting } from './collecting.ts'
import type { Journal } from './journal.ts'
import type { CreditNote, Dispute, Invoice, Payment, Refund, TaxRate } from './model.ts'
import { sum } from './money.ts'

export function returning(journal: Journal, collect: () => Collecting) {
  const { payments, refunds, disputes, invoices, customers } = journal

  function refundedOf(payment: string): number {
    const made = [...refunds.values()].filter(refund => refund.payment.id === payment && refund.status === 'succeeded')
    return sum(made.map(({ amount }) => amount))
  }

  function refund(payment: string, amount: number, creditNote: string | null = null): Refund {
    const after: Refund = {
      id: journal.id('re'),
      payment: payments.get(payment)!,
      amount,
      createdAt: journal.now,
      status: 'succeeded',
      failedAt: null,
      creditNote,
    }
    refunds.set(after.id, after)
    journal.record({
      kind: 'refund',
      what: 'created',
      after,
      before: null,
      refundedInAll: refundedOf(payment),
    })
    return after
  }

  return {
    refund,
    /** The refundable rest of a payment. */
    left: (payment: Payment) => payment.amount - refundedOf(payment.id),
    /** The bank returned the refund, so it does not count. */
    failRefund(id: string): void {
      const before = refunds.get(id)!
      const after: Refund = { ...before, status: 'failed', failedAt: journal.now }
      refunds.set(id, after)
      journal.record({
        kind: 'refund',
        what: 'failed',
        after,
        before,
        refundedInAll: refundedOf(before.payment.id),
      })
    },
    dispute(payment: string): string {
      const disputed = payments.get(payment)!
      const after: Dispute = {
        id: journal.id('dp'),
        payment: disputed,
        amount: disputed.amount,
        createdAt: journal.now,
        status: 'needs_response',
        closedAt: null,
      }
      disputes.set(after.id, after)
      journal.record({ kind: 'dispute', what: 'created', after, before: null })
      return after.id
    },
    closeDispute(id: string, status: 'won' | 'lost'): void {
      const before = disputes.get(id)!
      const after: Dispute = { ...before, status, closedAt: journal.now }
      disputes.set(id, after)
      journal.record({ kind: 'dispute', what: 'closed', after, before })
    },
    /** Reduces an open invoice. For a paid one, the amount is refunded or kept as a balance. */
    creditNote(invoice: string, amount: number, how: Exclude<CreditNote['how'], 'less_owed'>): void {
      const { status, customer: customerId } = invoices.get(invoice)!
      const isOpen = status === 'open'
      const id = journal.id('cn')
      const paid = [...payments.values()].find(
        candidate => candidate.invoice === invoice && candidate.outcome === 'succeeded',
      )
      const given = !isOpen && how === 'refund' ? refund(paid!.id, amount, id) : null
      if (!isOpen && how === 'balance') {
        const before = customers.get(customerId)!
        const after = { ...before, balance: before.balance - amount }
        customers.set(customerId, after)
        journal.record({ kind: 'customer', what: 'updated', after, before })
      }
      const after = isOpen ? collect().credit(invoice, amount) : collect().creditPaid(invoice, amount)
      const note: CreditNote = {
        id,
        number: `${after.number}-CN-${id.split('_')[1]}`.toUpperCase(),
        invoice: after,
        amount,
        createdAt: journal.now,
        how: isOpen ? 'less_owed' : how,
        refund: given?.id ?? null,
      }
      journal.record({ kind: 'credit_note', what: 'created', after: note })
      if (isOpen && after.amountRemaining === 0) collect().settle(invoice, {})
    },
    /** A payment without an invoice: a workshop, a poster. */
    charge(customer: string, currency: string, amount: number, description: string): Payment {
      const payment: Payment = {
        id: journal.id('ch'),
        intent: journal.id('pi'),
        invoicePayment: null,
        invoice: null,
        subscription: null,
        customer,
        currency,
        livemode: journal.livemode,
        amount,
        at: journal.now,
        outcome: 'succeeded',
        failure: null,
        description,
      }
      payments.set(payment.id, payment)
      journal.record({ kind: 'payment', payment })
      return payment
    },
    manualInvoice(
      customer: string,
      currency: string,
      lines: { description: string; quantity: number; unitAmount: number }[],
      { tax = null, collection = 'charge_automatically' }: ManualOptions = {},
    ): Invoice {
      const period = { start: journal.now, end: journal.now }
      const { id } = collect().draft({
        customer,
        subscription: null,
        currency,
        reason: 'manual',
        collection,
        daysUntilDue: 14,
        discounts: [],
        tax,
        period,
        lines: lines.map(({ description, quantity, unitAmount }) => ({
          id: journal.id('il'),
          kind: 'one_off',
          item: null,
          description,
          quantity,
          amount: quantity * unitAmount,
          periodStart: period.start,
          periodEnd: period.end,
        })),
      })
      return collect().issue(id)
    },
  }
}

type ManualOptions = { tax?: TaxRate | null; collection?: Invoice['collection'] }
