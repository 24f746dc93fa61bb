// Checks the oracle before it is used: its books must balance for any seed.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Business, business } from './business.ts'
import { DAY, HOUR, later } from './calendar.ts'
import { type Books, keepBooks } from './ledger.ts'
import type { Fact } from './model.ts'
import { sum } from './money.ts'
import { chance } from './random.ts'

const SEEDS = [1, 2, 3]

for (const seed of SEEDS)
  describe(`the books of seed ${seed}`, () => {
    let history: Business
    let books: Books
    before(() => {
      history = business({ seed, months: 14, accounts: 60 })
      books = keepBooks(history.facts)
    })

    /** Ends of months, random instants, and the exact seconds of movements. */
    function instants(currency: string): number[] {
      const { between, pick } = chance(`instants ${seed}`)
      const moved = books.movementsIn(currency, 0, history.until).map(({ at }) => at)
      return [
        ...Array.from({ length: 14 }, (_, n) => later(history.from, 'month', n + 1) - 1),
        ...Array.from({ length: 10 }, () => between(history.from, history.until)),
        ...(moved.length > 0 ? Array.from({ length: 10 }, () => pick(moved)) : []),
      ]
    }

    function everywhere(check: (currency: string, at: number) => void): void {
      for (const currency of history.currencies) for (const at of instants(currency)) check(currency, at)
    }

    test('opening plus movements is closing, for every window', () => {
      const { between } = chance(`windows ${seed}`)
      everywhere((currency, until) => {
        const after = between(history.from, until)
        const { opening, net, closing } = books.flow(currency, after, until)
        assert.equal(opening + net, closing)
      })
    })

    test('each movement of an account starts where the previous one ended, the first at 0', () => {
      for (const { movements } of books.accounts) {
        let mrr = 0
        for (const [i, movement] of movements.entries()) {
          assert.equal(movement.before, mrr)
          assert.ok(movement.after >= 0 && movement.after !== movement.before)
          assert.equal(movement.type === 'new', i === 0)
          mrr = movement.after
        }
      }
    })

    test('rows of every kind add up to the total', () => {
      everywhere((currency, at) => {
        const { mrr, arr, committed, activeAccounts, activeSubscriptions } = books.totalsAt(currency, at)
        assert.equal(sum(books.inCurrency(currency).map(account => books.mrrAt(account, at))), mrr)
        for (const by of ['plan', 'interval', 'source', 'country'] as const)
          assert.equal(sum(books.breakdown(currency, at, by).map(row => row.mrr)), mrr)
        assert.equal(sum(books.acquisition(currency, at, 30).map(row => row.mrr)), mrr)
        assert.ok(committed <= mrr && activeAccounts <= activeSubscriptions)
        assert.equal(arr, 12 * mrr)
      })
    })

    test('an item counts or has a reason, never both', () => {
      everywhere((currency, at) => {
        const excluded = books.exclusionsAt(currency, at)
        assert.ok(excluded.every(({ mrr }) => mrr === 0))
        const live = excluded.filter(({ reason }) => reason !== 'test_mode')
        const items = books.valuesAt(currency, at).flatMap(({ value }) => value.items)
        assert.equal(items.filter(({ mrr }) => mrr === 0).length, live.length)
      })
    })

    test('history by day, week and month equals one window', () => {
      for (const currency of history.currencies)
        for (const bucket of ['day', 'week', 'month'] as const) {
          const rows = books.historyRows(currency, history.from, history.until, bucket, history.until - 1)
          const whole = books.flow(currency, rows[0]!.start - 1, history.until - 1)
          for (const name of ['new', 'expansion', 'contraction', 'churn', 'reactivation', 'net'] as const)
            assert.equal(sum(rows.map(row => row[name])), whole[name], name)
          for (const [i, row] of rows.entries()) assert.equal(row.opening, rows[i - 1]?.mrr ?? 0)
          assert.equal(rows.at(-1)!.mrr, whole.closing)
        }
    })

    test('cash by month adds up, except for refunds that failed later and invoices that were voided later', () => {
      const isFinal = (fact: Fact) =>
        !(fact.kind === 'refund' && fact.what === 'failed') && !(fact.kind === 'invoice' && fact.what === 'voided')
      const settled = keepBooks(history.facts.filter(isFinal))
      for (const currency of history.currencies) {
        const months = Array.from({ length: 14 }, (_, n) => later(history.from, 'month', n) - 1)
        const parts = months.map(at => settled.collected(currency, at, later(at + 1, 'month', 1) - 1))
        const whole = settled.collected(currency, history.from - 1, history.until - 1)
        for (const name of ['amount', 'count', 'refunded', 'disputed', 'oneOff'] as const)
          assert.equal(sum(parts.map(part => part[name])), whole[name], name)
        const billed = months.map(at => settled.invoiced(currency, at, later(at + 1, 'month', 1) - 1).amount)
        assert.equal(sum(billed), settled.invoiced(currency, history.from - 1, history.until - 1).amount)
      }
    })

    test('every billed amount was paid, credited, written off or voided, or is owed', () => {
      for (const currency of history.currencies)
        for (const invoice of books.invoicesAt(currency, history.until)) {
          const { total, startingBalance, endingBalance, creditedBeforePayment, amountPaid } = invoice
          if (invoice.status === 'draft') continue
          const usedBalance = endingBalance! - startingBalance
          const due = total - usedBalance - creditedBeforePayment
          assert.equal(invoice.amountDue, due)
          assert.equal(invoice.amountRemaining, due - amountPaid)
          assert.equal(invoice.status === 'paid', invoice.amountRemaining === 0)
        }
    })

    test('rates are fractions of the opening state', () => {
      everywhere((currency, at) => {
        const { customer_churn_rate: churn, gross_revenue_retention: gross, ...rates } = books.rates(currency, at)
        if (churn !== null) assert.ok(churn >= 0 && churn <= 1)
        if (gross !== null) assert.ok(gross >= 0 && gross <= 1 && gross <= rates.net_revenue_retention! + 1e-12)
        const { opening } = books.flow(currency, at - 30 * DAY, at)
        assert.equal(gross === null, opening === 0)
      })
    })

    test('a cohort starts complete and never grows', () => {
      for (const currency of history.currencies)
        for (const row of books.retention(currency, history.until - 1)) {
          assert.ok(row.accounts <= row.startingAccounts)
          assert.ok(row.grossMrr <= row.startingMrr && row.grossMrr <= row.mrr)
        }
    })

    test('attention lists future dates, payment issues list owed amounts', () => {
      everywhere((currency, at) => {
        for (const days of [30, 60, 90]) {
          const rows = [
            ...books.renewals(currency, at, days),
            ...books.cancellations(currency, at, days),
            ...books.upcoming(currency, at, days).rows,
          ]
          assert.ok(rows.every(row => row.at > at && row.at <= at + days * DAY))
        }
        const issues = books.paymentIssues(currency, at)
        assert.ok(issues.every(row => row.type === 'subscription_unpaid' || row.amountRemaining > 0))
      })
    })
  })

test('the same seed gives the same history, another seed another one', () => {
  const facts = (seed: number) => JSON.stringify(business({ seed, months: 4, accounts: 10 }).facts)
  assert.equal(facts(1), facts(1))
  assert.notEqual(facts(1), facts(2))
})

test('a large history contains every feature', () => {
  const { facts, until, currencies } = business({ seed: 4, months: 30, accounts: 150 })
  const books = keepBooks(facts)
  const kinds = new Set(facts.map(fact => ('what' in fact ? `${fact.kind} ${fact.what}` : fact.payment.outcome)))
  for (const what of ['finalized', 'paid', 'payment_failed', 'payment_action_required', 'overdue', 'voided'])
    assert.ok(kinds.has(`invoice ${what}`), what)
  for (const kind of ['subscription paused', 'subscription resumed', 'refund failed', 'dispute closed', 'failed'])
    assert.ok(kinds.has(kind), kind)
  const causes = new Set(
    currencies.flatMap(currency => books.movementsIn(currency, 0, until).flatMap(m => [...m.causes])),
  )
  assert.equal(causes.size, 15)
  const last = currencies.flatMap(currency => books.exclusionsAt(currency, until)).map(({ reason }) => reason)
  for (const reason of [
    'test_mode',
    'canceled',
    'trialing',
    'paused',
    'metered_usage',
    'free',
    'incomplete_expired',
  ] as const)
    assert.ok(last.includes(reason), reason)
  const ways = new Set(facts.flatMap(fact => (fact.kind === 'credit_note' ? [fact.after.how] : [])))
  assert.equal(ways.size, 4)
  const statuses = new Set(facts.flatMap(fact => (fact.kind === 'subscription' ? [fact.after.status] : [])))
  assert.equal(statuses.size, 8)
})

test('disabled features do not occur', () => {
  const features = { refunds: false, disputes: false, creditNotes: false, pauses: false, testMode: false }
  const { facts } = business({ seed: 5, months: 12, accounts: 60, features })
  assert.ok(!facts.some(({ kind }) => kind === 'refund' || kind === 'dispute' || kind === 'credit_note'))
  assert.ok(!facts.some(fact => fact.kind === 'subscription' && (fact.after.pause || !fact.after.livemode)))
})

test('facts are ordered by time, and some share a second', () => {
  const { facts } = business({ seed: 6, months: 12, accounts: 60 })
  for (const [i, fact] of facts.entries()) assert.ok(i === 0 || facts[i - 1]!.at <= fact.at)
  const changes = facts.filter(fact => fact.kind === 'subscription' && fact.cause !== 'other')
  const seconds = changes.map(fact => (fact.kind === 'subscription' ? `${fact.after.id} ${fact.at}` : ''))
  assert.ok(new Set(seconds).size < seconds.length)
})

test('a pause is no churn if the policy keeps paused MRR', () => {
  const { facts, until, currencies } = business({ seed: 7, months: 12, accounts: 60 })
  const paused = (policy: 'churn' | 'keep') => {
    const books = keepBooks(facts, { pause: policy })
    const all = currencies.flatMap(currency => books.movementsIn(currency, 0, until + HOUR))
    return all.filter(({ causes }) => causes.size === 1 && causes.has('pause')).length
  }
  assert.ok(paused('churn') > 0)
  assert.equal(paused('keep'), 0)
})
