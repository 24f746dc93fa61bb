/** Money that came in and went back, each as a row of its own: what is collected is what the rows add up to. */

import type { InvoiceState } from './invoices.ts'
import type { CashReturn, FailedAttempt, Instant, Payment } from './types.ts'

/** What all tellings of one payment come to. */
export type PaymentRecord = {
  id: string
  invoiceId: string | null
  customer: string | null
  /** When it came in; null: it did not, as far as is known. */
  paidAt: Instant | null
  amount: number
  currency: string | null
  /** Attempts that failed, in their order. */
  failures: FailedAttempt[]
  /** Nobody said which invoice it is of, and it may be of one: what to look for. */
  unlinked?: { amount: number; at: Instant }
}

export type CashRow = {
  kind: 'payment' | 'refund' | 'dispute'
  id: string
  at: Instant
  /** From when on it is undone: a refund that failed. */
  to: Instant | null
  currency: string
  amount: number
  /** Of an invoice of a subscription; everything else is one-off. */
  recurring: boolean
}

/** A charge tells best when money moved, the payment of an invoice which part of it was meant. */
const BY_TIME: Payment['told'][] = ['charge', 'invoice_payment', 'payment_intent', 'invoice']
const BY_AMOUNT: Payment['told'][] = ['invoice_payment', 'charge', 'payment_intent', 'invoice']

/** All tellings of one payment, at least one, in the order of their arrival. */
export function mergePayments(tellings: Payment[]): PaymentRecord {
  const inOrder = [...tellings].sort((a, b) => a.sourceAt - b.sourceAt)
  const paid = inOrder.filter(({ status, amount }) => status === 'succeeded' && amount !== null && amount > 0)
  const first = (order: Payment['told'][]) =>
    order.map(told => paid.findLast(payment => payment.told === told)).find(payment => payment !== undefined)
  const open = inOrder.findLast(payment => payment.unlinkedAmount !== undefined)
  const newest = (field: 'invoiceId' | 'customer' | 'currency') =>
    inOrder.findLast(payment => payment[field] !== null)?.[field] ?? null
  return {
    id: tellings[0]!.id,
    invoiceId: newest('invoiceId'),
    customer: newest('customer'),
    paidAt: first(BY_TIME)?.at ?? null,
    amount: first(BY_AMOUNT)?.amount ?? 0,
    currency: newest('currency'),
    failures: inOrder.flatMap(({ at, failure }) => (failure ? [{ at, failure }] : [])),
    ...(open && newest('invoiceId') === null && { unlinked: { amount: open.unlinkedAmount!, at: open.at } }),
  }
}

/** What is known of the money of one invoice, or of a payment without one (`states` empty). */
type CashFacts = { states: InvoiceState[]; payments: PaymentRecord[]; returns: CashReturn[] }

export function cashRows({ states, payments, returns }: CashFacts): CashRow[] {
  const recurring = states.some(state => state.subscriptionId !== null)
  const came = [...paymentRows(payments, recurring), ...impliedRows(states, payments, recurring)]
  // what goes back of money that never came, as far as is known, takes nothing off
  if (came.length === 0 && states.length === 0) return []
  return [...came, ...returns.flatMap(entry => returnRow(entry, recurring))]
}

function paymentRows(payments: PaymentRecord[], recurring: boolean): CashRow[] {
  return payments.flatMap(({ id, paidAt, amount, currency }) =>
    paidAt === null || currency === null
      ? []
      : [{ kind: 'payment' as const, id, at: paidAt, to: null, currency, amount, recurring }],
  )
}

/** What an invoice says was paid on it, beyond the payments that are known: each time that the sum grew. */
function impliedRows(states: InvoiceState[], payments: PaymentRecord[], recurring: boolean): CashRow[] {
  let known = payments.reduce((sum, { paidAt, amount }) => sum + (paidAt === null ? 0 : amount), 0)
  return states.flatMap(({ invoiceId, amountPaid, currency, paidAt, from, status }) => {
    if (currency === null || amountPaid <= known) return []
    const amount = amountPaid - known
    known = amountPaid
    const at = status === 'paid' ? (paidAt ?? from) : from
    return [
      {
        kind: 'payment' as const,
        id: `${invoiceId}:${amountPaid}`,
        at,
        to: null,
        currency,
        amount,
        recurring,
      },
    ]
  })
}

function returnRow(entry: CashReturn, recurring: boolean): CashRow[] {
  const { refund, superseded } = entry
  const { id, currency, amount, createdAt, counts, sourceAt, kind } = refund
  if (superseded || currency === null || !amount) return []
  const isDispute = kind === 'dispute'
  // a refund that failed counted until then; a dispute takes something off once it is lost
  if (!counts && (isDispute || sourceAt <= createdAt)) return []
  return [
    {
      kind: isDispute ? 'dispute' : 'refund',
      id,
      at: createdAt,
      to: counts ? null : sourceAt,
      currency,
      amount,
      recurring,
    },
  ]
}
