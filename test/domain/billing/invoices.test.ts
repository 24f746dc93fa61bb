import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { daysOverdue, findIssueStart, invoiceIssue } from '../../../src/domain/billing/attention.ts'
import { readCanonical } from '../../../src/domain/billing/canonical.ts'
import {
  cashRows,
  deriveInvoice,
  type InvoiceState,
  invoicedAt,
  mergeRefund,
  type PaymentRecord,
} from '../../../src/domain/billing/cash.ts'
import type { InvoiceVersion, Refund } from '../../../src/domain/billing/types.ts'
import { countedRefunds } from './counted-refunds.ts'
import { at, type Payload } from './subscriptions.ts'

function invoice(changes: Payload = {}, eventType = 'invoice.updated'): InvoiceVersion {
  const change = readCanonical(
    eventType,
    {
      id: 'in_1',
      subscription: 'sub_1',
      customer: 'acme',
      status: 'open',
      currency: 'USD',
      total: 23.8,
      tax: 3.8,
      amount_due: 23.8,
      finalized_at: '2025-02-01',
      updated_at: '2025-02-01',
      ...changes,
    },
    at('2025-06-01'),
  )
  if (change?.kind !== 'invoice') throw new Error('not an invoice')
  return change.version
}

function refund(changes: Payload = {}, eventType = 'refund.created'): Refund {
  const given = {
    id: 're_1',
    invoice: 'in_1',
    amount: 5,
    currency: 'USD',
    created_at: '2025-02-10',
    ...changes,
  }
  const change = readCanonical(eventType, given, at('2025-02-11'))
  if (change?.kind !== 'cash') throw new Error('not a refund')
  return change.refunds[0]!
}

function day(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString().slice(0, 10)
}

function stretches(...versions: InvoiceVersion[]): [string | null, string | null, string, number][] {
  return deriveInvoice(versions).map(({ from, to, status, amountRemaining }) => [
    day(from),
    day(to),
    status,
    amountRemaining,
  ])
}

const paid = {
  status: 'paid',
  amount_paid: 23.8,
  amount_remaining: 0,
  paid_at: '2025-02-03',
  updated_at: '2025-02-03',
}

test('an invoice is owed from its finalization until its payment', () => {
  const expected = [
    ['2025-02-01', '2025-02-03', 'open', 23_80],
    ['2025-02-03', null, 'paid', 0],
  ]
  assert.deepEqual(stretches(invoice(), invoice(paid)), expected)
  assert.deepEqual(stretches(invoice(paid)), expected)
  assert.deepEqual(stretches(invoice({ ...paid, updated_at: '2025-05-01' }), invoice()), expected)
})

test('invoiced: finalized and neither draft nor void, tax included', () => {
  const state = (changes: Payload) => deriveInvoice([invoice(changes)]).at(-1)!
  assert.equal(day(invoicedAt(state({}))), '2025-02-01')
  assert.equal(state({}).total, 23_80)
  assert.equal(day(invoicedAt(state(paid))), '2025-02-01')
  assert.equal(day(invoicedAt(state({ status: 'uncollectible' }))), '2025-02-01')
  assert.equal(invoicedAt(state({ status: 'draft', finalized_at: null })), null)
  assert.equal(invoicedAt(state({ status: 'void' })), null)
  assert.equal(invoicedAt(state({ status: 'odd' })), null)
})

/** The cash rows of an invoice, by day. */
function cameOf(versions: InvoiceVersion[], payments: PaymentRecord[] = []): [string | null, number][] {
  const states = deriveInvoice(versions)
  return cashRows({ states, payments, returns: [] }).map(row => [day(row.at), row.amount])
}

function payment(id: string, amount: number, paidAt: string | null): PaymentRecord {
  const at_ = paidAt === null ? null : at(paidAt)
  return { id, invoiceId: 'in_1', customer: null, paidAt: at_, amount, currency: 'USD', failures: [] }
}

test('collected: the known payments, and the paid amount of the invoice beyond them', () => {
  assert.deepEqual(cameOf([invoice(paid)]), [['2025-02-03', 23_80]])
  const partly = invoice({ amount_paid: 5, updated_at: '2025-02-02' })
  assert.deepEqual(cameOf([invoice(), partly]), [['2025-02-02', 5_00]])
  assert.deepEqual(cameOf([invoice(), partly, invoice(paid)]), [
    ['2025-02-02', 5_00],
    ['2025-02-03', 18_80],
  ])
  assert.deepEqual(cameOf([invoice(paid)], [payment('pi_1', 23_80, '2025-02-04')]), [['2025-02-04', 23_80]])
  assert.deepEqual(cameOf([invoice(paid)], [payment('pi_1', 20_00, '2025-02-02'), payment('pi_2', 0, null)]), [
    ['2025-02-02', 20_00],
    ['2025-02-03', 3_80],
  ])
  const nothing = { ...paid, total: 0, amount_due: 0, amount_paid: 0 }
  assert.deepEqual(cameOf([invoice(nothing)]), [])
})

test('missing fields are derived from the given ones', () => {
  const bare = { status: undefined, amount_due: undefined, finalized_at: undefined, updated_at: '2025-02-05' }
  const state = deriveInvoice([invoice(bare, 'invoice.paid')]).at(-1)!
  assert.deepEqual(
    [state.status, state.amountDue, state.amountPaid, state.amountRemaining, day(state.finalizedAt), day(state.paidAt)],
    ['paid', 23_80, 23_80, 0, '2025-02-05', '2025-02-05'],
  )
})

test('of several paid versions without a date, the first one sets the date', () => {
  const silent = { ...paid, paid_at: undefined }
  const states = deriveInvoice([invoice({ ...silent, updated_at: '2025-03-01' }), invoice(silent)])
  assert.equal(day(states.at(-1)!.paidAt), '2025-02-03')
})

function issueOf(versions: InvoiceVersion[], asOf = '2025-02-20'): string | null {
  const state: InvoiceState = deriveInvoice(versions).at(-1)!
  return invoiceIssue(state, at(asOf))
}

test('payment issues by severity', () => {
  assert.equal(issueOf([invoice()]), null)
  assert.equal(issueOf([invoice({ attempt_count: 1 })]), null)
  assert.equal(issueOf([invoice({ failure_code: 'card_declined' })]), 'payment_failed')
  assert.equal(issueOf([invoice({}, 'invoice.payment_failed')]), 'payment_failed')
  assert.equal(issueOf([invoice({}, 'invoice.payment_action_required')]), 'action_required')
  assert.equal(issueOf([invoice({ failure_code: 'authentication_required' })]), 'action_required')
  assert.equal(issueOf([invoice({ due_date: '2025-02-15' })]), 'overdue')
  assert.equal(issueOf([invoice({ due_date: '2025-02-25' })]), null)
  assert.equal(issueOf([invoice({ status: 'uncollectible', attempt_count: 4 })]), 'uncollectible')
  assert.equal(issueOf([invoice({ ...paid, attempt_count: 2 })]), null)
  assert.equal(issueOf([invoice({ status: 'void', attempt_count: 2 })]), null)
  assert.equal(issueOf([invoice({ attempt_count: 1, amount_remaining: 0 })]), null)
})

test('an invoice received only when it was paid was no issue before', () => {
  const states = deriveInvoice([
    invoice({ ...paid, attempt_count: 2, finalized_at: '2025-02-01', paid_at: '2025-02-09' }),
  ])
  assert.deepEqual(
    states.map(state => [state.status, findIssueStart(state)]),
    [
      ['open', null],
      ['paid', null],
    ],
  )
})

test('a failure is remembered while the invoice stays open', () => {
  const failed = invoice({ failure_code: 'card_declined', failure_message: 'Declined' }, 'invoice.payment_failed')
  const later = invoice({ updated_at: '2025-02-05' })
  const state = deriveInvoice([later, failed]).at(-1)!
  assert.equal(state.failure?.code, 'card_declined')
  assert.equal(deriveInvoice([later, failed, invoice({ ...paid, updated_at: '2025-02-06' })]).at(-1)!.failure, null)
})

test('failed and action required within one second: action required counts', () => {
  const failed = invoice({}, 'invoice.payment_failed')
  const action = invoice({}, 'invoice.payment_action_required')
  assert.equal(issueOf([action, failed]), 'action_required')
})

test('an issue starts with the failure, or right after the due date', () => {
  const [failed] = deriveInvoice([
    invoice({ status: 'open', total: 5, finalized_at: '2025-01-01' }, 'invoice.payment_failed'),
  ])
  assert.equal(findIssueStart(failed!), failed!.from)
  const due = { status: 'open', total: 5, finalized_at: '2025-01-01', due_date: '2025-01-15' }
  const [owed] = deriveInvoice([invoice(due)])
  assert.equal(findIssueStart(owed!), at('2025-01-15') + 1)
  const [early] = deriveInvoice([
    invoice(due),
    invoice({ ...due, status: 'paid', paid_at: '2025-01-10', updated_at: '2025-01-10' }),
  ])
  assert.equal(findIssueStart(early!), null)
})

test('days overdue are whole days', () => {
  assert.equal(daysOverdue(null, at('2025-02-20')), null)
  assert.equal(daysOverdue(at('2025-02-10'), at('2025-02-20') + 5), 10)
  assert.equal(daysOverdue(at('2025-02-21'), at('2025-02-20')), 0)
})

const anyInvoice = fc
  .record({
    status: fc.constantFrom('draft', 'open', 'paid', 'void', 'uncollectible'),
    updated_at: fc.integer({ min: 1, max: 9 }).map(n => `2025-02-0${n}`),
    paid_at: fc.option(fc.constantFrom('2025-02-03', '2025-02-06'), { nil: undefined }),
    finalized_at: fc.option(fc.constantFrom('2025-02-01', '2025-02-04'), { nil: undefined }),
    attempt_count: fc.integer({ min: 0, max: 2 }),
    kind: fc.constantFrom('updated', 'paid', 'payment_failed', 'payment_action_required'),
  })
  .map(({ kind, ...changes }) => invoice(changes, `invoice.${kind}`))

test('versions of an invoice in any order, with repeats, give the same invoice', () => {
  const feed = fc
    .array(anyInvoice, { minLength: 1, maxLength: 8 })
    .map(versions => versions.map((version, sequence) => ({ ...version, sequence })))
  fc.assert(
    fc.property(
      feed.chain(given =>
        fc.tuple(fc.constant(given), fc.shuffledSubarray([...given, ...given], { minLength: given.length * 2 })),
      ),
      ([given, shuffled]) => {
        const states = deriveInvoice(given)
        assert.deepEqual(deriveInvoice(shuffled), states)
        for (const [i, state] of states.entries()) assert.equal(state.to, states[i + 1]?.from ?? null)
        for (const state of states) assert.ok(state.status !== 'paid' || state.paidAt! <= state.from)
      },
    ),
  )
})

test('refunds: the newest version wins, failed refunds do not count', () => {
  const created = refund()
  const failed = refund({ status: 'failed', updated_at: '2025-02-12' }, 'refund.updated')
  assert.deepEqual(mergeRefund(created, failed), mergeRefund(failed, created))
  assert.deepEqual(countedRefunds([mergeRefund(failed, created)]), [])
  assert.deepEqual([created.amount, day(created.createdAt), created.invoiceId], [5_00, '2025-02-10', 'in_1'])
  assert.equal(refund({ amount: 'x' }).amount, null)
  assert.equal(refund({ amount: -5 }).amount, null)
})
