// Invoices from draft to paid or lost, and their payments.
import { DAY, HOUR } from './calendar.ts'
import { bill } from './invoicing.ts'
import type { Journal } from './journal.ts'
import type { Discount, FactOf, Failure, Invoice, Line, Payment, TaxRate } from './model.ts'
import { share } from './money.ts'

export type Collecting = ReturnType<typeof collecting>

/** Notifications to the other parts of the company. */
export type Listener = {
  onPaid(invoice: Invoice): void
  onLate(invoice: Invoice): void
  onLost(invoice: Invoice): void
}

export type Order = Pick<Invoice, 'customer' | 'subscription' | 'currency' | 'reason' | 'collection'> & {
  lines: Omit<Line, 'discounts' | 'tax'>[]
  discounts: Discount[]
  tax: TaxRate | null
  daysUntilDue: number | null
  period: { start: number; end: number }
}

const DECLINES: Failure[] = [
  { code: 'card_declined', declineCode: 'insufficient_funds', message: 'Your card has insufficient funds.' },
  { code: 'card_declined', declineCode: 'generic_decline', message: 'Your card was declined.' },
  { code: 'expired_card', declineCode: 'expired_card', message: 'Your card has expired.' },
]
const AUTHENTICATION: Failure = {
  code: 'authentication_required',
  declineCode: 'authentication_required',
  message: 'Your card was declined. This transaction requires authentication.',
}
/** Days between attempts. The last attempt precedes the next weekly or monthly invoice. */
const RETRY_DAYS = { short: [1, 2, 2], long: [3, 5, 7] }

export function collecting(journal: Journal, listener: Listener) {
  const { invoices, customers, world } = journal

  function change(id: string, what: FactOf<'invoice'>['what'], changes: Partial<Invoice> = {}): Invoice {
    const before = invoices.get(id)!
    const after = { ...before, ...changes }
    invoices.set(id, after)
    journal.record({ kind: 'invoice', what, after, before })
    return after
  }

  function draft({ lines, tax, daysUntilDue, period, ...order }: Order): Invoice {
    const parts = bill(lines, order.discounts, tax)
    const owed = Math.max(0, parts.total)
    const invoice: Invoice = {
      ...order,
      ...parts,
      id: journal.id('in'),
      number: null,
      livemode: journal.livemode,
      status: 'draft',
      taxRate: tax,
      startingBalance: 0,
      endingBalance: null,
      amountDue: owed,
      amountPaid: 0,
      amountRemaining: owed,
      creditedBeforePayment: 0,
      creditedAfterPayment: 0,
      createdAt: journal.now,
      finalizedAt: null,
      paidAt: null,
      voidedAt: null,
      uncollectibleAt: null,
      dueAt: order.collection === 'send_invoice' ? journal.now + (daysUntilDue ?? 30) * DAY : null,
      attempts: 0,
      nextAttemptAt: null,
      failure: null,
      needsAction: false,
      periodStart: period.start,
      periodEnd: period.end,
    }
    invoices.set(invoice.id, invoice)
    journal.record({ kind: 'invoice', what: 'created', after: invoice, before: null })
    return invoice
  }

  /** The invoice gets its number, and the customer's balance is applied to it. */
  function finalize(id: string): Invoice {
    const { total, currency, dueAt, createdAt, ...rest } = invoices.get(id)!
    const customer = customers.get(rest.customer)!
    const balance = customer.currency === currency ? customer.balance : 0
    const used = Math.min(-balance, Math.max(0, total))
    if (used > 0) {
      const after = { ...customer, balance: customer.balance + used }
      customers.set(customer.id, after)
      journal.record({ kind: 'customer', what: 'updated', after, before: customer })
    }
    return change(id, 'finalized', {
      status: 'open',
      number: `K${journal.id('').slice(1).toUpperCase().padStart(6, '0')}`,
      startingBalance: used > 0 ? balance : 0,
      endingBalance: used > 0 ? balance + used : 0,
      amountDue: total - used,
      amountRemaining: total - used,
      finalizedAt: journal.now,
      dueAt: dueAt === null ? null : journal.now + dueAt - createdAt,
    })
  }

  /** Finalizes and collects an invoice. An invoice of 0 is paid immediately, without a payment. */
  function issue(id: string): Invoice {
    const invoice = finalize(id)
    if (invoice.amountDue === 0) return settle(id, {})
    if (invoice.collection === 'send_invoice') send(invoice)
    else attempt(id)
    return invoices.get(id)!
  }

  function send(invoice: Invoice): void {
    change(invoice.id, 'sent')
    for (const { afterDays, part } of world.transfers(invoice))
      journal.plan(journal.now + afterDays * DAY + HOUR, () => {
        const { status, amountDue, amountRemaining } = invoices.get(invoice.id)!
        if (status !== 'open') return
        receive(invoice.id, part === 1 ? amountRemaining : Math.min(share(amountDue, part), amountRemaining))
      })
    journal.plan(invoice.dueAt!, () => {
      if (invoices.get(invoice.id)!.status === 'open') listener.onLate(change(invoice.id, 'overdue'))
    })
  }

  /** One attempt to collect the remaining amount. A failure schedules the next attempt, the last failure a loss. */
  function attempt(id: string): void {
    const invoice = invoices.get(id)!
    if (invoice.status !== 'open') return
    const attempts = invoice.attempts + 1
    const outcome = world.pays(invoice, attempts)
    if (outcome === 'succeeds') {
      receive(id, invoice.amountRemaining)
      return
    }
    const needsAction = outcome === 'needs_action'
    const failure = needsAction ? AUTHENTICATION : DECLINES[attempts % DECLINES.length]!
    const waits = invoice.periodEnd - invoice.periodStart < 10 * DAY ? RETRY_DAYS.short : RETRY_DAYS.long
    const wait = waits[attempts - 1]
    const nextAttemptAt = wait === undefined ? null : journal.now + wait * DAY
    const was = needsAction ? 'requires_action' : 'failed'
    payment(invoice, { amount: invoice.amountRemaining, outcome: was, failure })
    if (needsAction) change(id, 'payment_action_required', { attempts, needsAction, failure, nextAttemptAt })
    const late = change(id, 'payment_failed', { attempts, needsAction, failure, nextAttemptAt })
    listener.onLate(late)
    if (nextAttemptAt === null) listener.onLost(invoices.get(id)!)
    else
      journal.plan(nextAttemptAt, () => {
        if (invoices.get(id)!.nextAttemptAt === nextAttemptAt) attempt(id)
      })
  }

  /** A payment for an open invoice, which is paid when nothing remains. */
  function receive(id: string, amount: number): void {
    const invoice = invoices.get(id)!
    payment(invoice, { amount, outcome: 'succeeded', failure: null })
    const changes = {
      amountPaid: invoice.amountPaid + amount,
      amountRemaining: invoice.amountRemaining - amount,
      attempts: invoice.attempts + 1,
    }
    if (changes.amountRemaining > 0) change(id, 'updated', changes)
    else settle(id, changes)
  }

  function settle(id: string, changes: Partial<Invoice>): Invoice {
    const ends = { nextAttemptAt: null, needsAction: false, failure: null }
    const invoice = change(id, 'paid', { ...changes, ...ends, status: 'paid', paidAt: journal.now })
    listener.onPaid(invoice)
    return invoice
  }

  function payment(
    invoice: Invoice,
    { amount, outcome, failure }: Pick<Payment, 'amount' | 'outcome' | 'failure'>,
  ): void {
    const last = [...journal.payments.values()].findLast(payment => payment.invoice === invoice.id)
    const continues = last && last.outcome !== 'succeeded'
    const made: Payment = {
      id: journal.id('ch'),
      intent: continues ? last.intent : journal.id('pi'),
      invoicePayment: continues ? last.invoicePayment : journal.id('inpay'),
      invoice: invoice.id,
      subscription: invoice.subscription,
      customer: invoice.customer,
      currency: invoice.currency,
      livemode: invoice.livemode,
      amount,
      at: journal.now,
      outcome,
      failure,
      description: `Payment for invoice ${invoice.number}`,
    }
    journal.payments.set(made.id, made)
    journal.record({ kind: 'payment', payment: made })
  }

  return {
    draft,
    issue,
    /** Finalized, but not collected. */
    finalize,
    receive,
    attempt,
    /** Stops collection. */
    stop(id: string): void {
      if (invoices.get(id)!.nextAttemptAt !== null) change(id, 'updated', { nextAttemptAt: null })
    },
    void: (id: string) =>
      change(id, 'voided', {
        status: 'void',
        voidedAt: journal.now,
        nextAttemptAt: null,
        needsAction: false,
      }),
    writeOff: (id: string) =>
      change(id, 'marked_uncollectible', {
        status: 'uncollectible',
        uncollectibleAt: journal.now,
        nextAttemptAt: null,
        needsAction: false,
      }),
    credit: (id: string, amount: number) =>
      change(id, 'updated', {
        creditedBeforePayment: invoices.get(id)!.creditedBeforePayment + amount,
        amountDue: invoices.get(id)!.amountDue - amount,
        amountRemaining: invoices.get(id)!.amountRemaining - amount,
      }),
    creditPaid: (id: string, amount: number) =>
      change(id, 'updated', {
        creditedAfterPayment: invoices.get(id)!.creditedAfterPayment + amount,
      }),
    settle,
    /** Overdue invoices of a subscription. */
    lateOf: (subscription: string) =>
      [...invoices.values()].filter(
        invoice =>
          invoice.subscription === subscription &&
          invoice.status === 'open' &&
          (invoice.failure !== null || (invoice.dueAt !== null && invoice.dueAt <= journal.now)),
      ),
  }
}
