import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, inDays, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const LISTS = ['payment_issues', 'renewals', 'cancellations', 'upcoming_billing']

test('days is 30 by default, and only 30, 60 or 90', async () => {
  assert.equal((await reportOf(server, 'attention')).days, 30)
  for (const days of [30, 60, 90]) assert.equal((await reportOf(server, 'attention', { days })).days, days)
  for (const days of [0, 31, -30, 'month', 30.5]) {
    const { status, body } = await ask(server, 'attention', { currency: 'EUR', days })
    assert.equal(status, 400)
    assert.equal(body.errors[0].pointer, '/days')
  }
})

test('a tenant without data has four empty lists and the policy', async () => {
  const report = await reportOf(server, 'attention')
  assert.deepEqual(Object.keys(report), ['currency', 'as_of', 'days', 'policy', ...LISTS])
  for (const list of LISTS) {
    assert.deepEqual(report[list], { results: [], page: 1, page_size: 50, count: 0, pages: 0 })
  }
})

test('payment issues: each type, with every field, for any window', async () => {
  const tenant = await server.anotherTenant('issues')
  const owed = (subscription: string, changes: object = {}) => ({
    subscription,
    status: 'open',
    total: 10,
    finalized_at: inDays(-200),
    updated_at: inDays(-199),
    ...changes,
  })
  const retryAt = inDays(2)
  const dueAt = inDays(-5.5)
  await send(
    server,
    [
      ...['failed', 'action', 'overdue', 'lost', 'unpaid', 'fine', 'both'].map(id =>
        created(id, {
          started_at: inDays(-300),
          ...((id === 'unpaid' || id === 'both') && { status: 'unpaid' }),
        }),
      ),
      invoice('payment_failed', 'in_failed', {
        ...owed('failed'),
        number: 'A-1',
        customer: 'cus_failed',
        amount_remaining: 7.5,
        attempt_count: 3,
        next_payment_attempt: retryAt,
        failure_code: 'card_declined',
        failure_message: 'No.',
      }),
      invoice('payment_action_required', 'in_action', owed('action', { updated_at: inDays(-198) })),
      invoice('finalized', 'in_overdue', owed('overdue', { due_date: dueAt })),
      invoice('marked_uncollectible', 'in_lost', owed('lost', { status: 'uncollectible' })),
      invoice('finalized', 'in_fine', owed('fine', { due_date: inDays(3) })),
      invoice('payment_failed', 'in_both', owed('both', { attempt_count: 1, updated_at: inDays(-190) })),
      invoice('payment_failed', 'in_paid', owed('fine', { attempt_count: 1 })),
      invoice('paid', 'in_paid', owed('fine', { status: 'paid', paid_at: inDays(-100) })),
    ],
    tenant,
  )
  const { payment_issues } = await reportOf(server, 'attention', {}, tenant)
  const rows = new Map<string, Body>(payment_issues.results.map((row: Body) => [row.subscription_id, row]))
  assert.deepEqual([...rows].map(([id, row]) => [id, row.issue_type]).sort(), [
    ['action', 'action_required'],
    ['both', 'payment_failed'],
    ['failed', 'payment_failed'],
    ['lost', 'uncollectible'],
    ['overdue', 'overdue'],
    ['unpaid', 'subscription_unpaid'],
  ])
  assert.equal(payment_issues.count, 6)
  assert.deepEqual(rows.get('failed'), {
    invoice_id: 'in_failed',
    invoice_number: 'A-1',
    subscription_id: 'failed',
    customer: 'cus_failed',
    customer_name: null,
    issue_type: 'payment_failed',
    amount_due: 10,
    amount_remaining: 7.5,
    attempt_count: 3,
    next_payment_attempt_at: retryAt,
    failure_code: 'card_declined',
    failure_message: 'No.',
    due_at: null,
    days_overdue: null,
    mrr_at_risk: 10,
  })
  assert.deepEqual([rows.get('overdue').due_at, rows.get('overdue').days_overdue], [dueAt, 5])
  assert.deepEqual([rows.get('unpaid').invoice_id, rows.get('unpaid').mrr_at_risk], [null, 0])
  const overview = await reportOf(server, 'overview', {}, tenant)
  assert.equal(overview.attention.payment_issues, 6)
  const flagged = overview.accounts.results.filter((row: Body) => row.has_payment_issue)
  assert.deepEqual(
    flagged.map((row: Body) => row.customer).sort(),
    ['action', 'both', 'failed', 'lost', 'overdue', 'unpaid'].map(id => `cus_${id}`),
  )
  const then = await reportOf(server, 'attention', { as_of: inDays(-150) }, tenant)
  assert.ok(then.payment_issues.results.some((row: Body) => row.invoice_id === 'in_paid'))
  assert.ok(!then.payment_issues.results.some((row: Body) => row.invoice_id === 'in_overdue'))
})

test('an account has a payment issue exactly if the list has one of it, at any time and with a filter', async () => {
  const tenant = await server.anotherTenant('accounts with issues')
  const failed = (id: string, subscription: string | null, customer: string) =>
    invoice('payment_failed', id, {
      ...{ subscription, customer, status: 'open', total: 10, attempt_count: 1 },
      ...{ finalized_at: inDays(-50), updated_at: inDays(-49) },
    })
  await send(
    server,
    [
      ...['own', 'none', 'unseen', 'other', 'fine'].map(id => created(id, { started_at: inDays(-300) })),
      created('later', { customer: 'cus_fine', started_at: inDays(-20) }),
      failed('in_own', 'own', 'cus_own'),
      failed('in_none', null, 'cus_none'),
      failed('in_unseen', 'never received', 'cus_unseen'),
      // It belongs to the account of its subscription.
      failed('in_other', 'own', 'cus_other'),
      failed('in_later', 'later', 'cus_fine'),
    ],
    tenant,
  )
  const queries: Record<string, string>[] = [{}, { as_of: inDays(-40) }, { status: 'active' }]
  for (const query of queries) {
    const { payment_issues } = await reportOf(server, 'attention', query, tenant)
    const { accounts } = await reportOf(server, 'overview', query, tenant)
    const listed = new Set(payment_issues.results.map((row: Body) => row.customer))
    const flagged = accounts.results.filter((row: Body) => row.has_payment_issue).map((row: Body) => row.customer)
    assert.deepEqual(flagged.toSorted(), [...listed].toSorted(), JSON.stringify(query))
    assert.ok(listed.has('cus_own') && !listed.has('cus_other'))
    assert.equal(listed.has('cus_unseen'), !('status' in query))
  }
})

test('renewals: every one of a term longer than a month, unless a cancellation is scheduled', async () => {
  const tenant = await server.anotherTenant('renewals')
  const renewsAt = inDays(20)
  const term = (interval: string, interval_count: number, unit_amount = 120) => ({
    items: [item(unit_amount, { interval, interval_count })],
    current_period_end: renewsAt,
  })
  await send(
    server,
    [
      created('yearly', term('year', 1)),
      created('quarterly', term('month', 3, 30)),
      created('bimonthly', { ...term('month', 2), current_period_end: inDays(10) }),
      created('monthly', term('month', 1)),
      created('leaving', { ...term('year', 1), cancel_at_period_end: true }),
      created('later', { ...term('year', 1), current_period_end: inDays(45) }),
      invoice('payment_failed', 'in_1', {
        subscription: 'yearly',
        status: 'open',
        total: 5,
        attempt_count: 1,
      }),
    ],
    tenant,
  )
  const { renewals } = await reportOf(server, 'attention', {}, tenant)
  assert.deepEqual(
    renewals.results.map((row: Body) => row.subscription_id),
    ['bimonthly', 'quarterly', 'yearly'],
  )
  assert.deepEqual(renewals.results[2], {
    subscription_id: 'yearly',
    customer: 'cus_yearly',
    customer_name: null,
    renews_at: renewsAt,
    days_until: 20,
    interval: 'year',
    interval_count: 1,
    renewal_amount: 120,
    mrr: 10,
    has_payment_issue: true,
  })
  const ninety = await reportOf(server, 'attention', { days: 90 }, tenant)
  assert.deepEqual(
    ninety.renewals.results.map((row: Body) => row.subscription_id),
    ['bimonthly', 'quarterly', 'yearly', 'later', 'bimonthly'],
  )
  const ofBimonthly = (rows: Body[], date: string) =>
    rows.filter(row => row.subscription_id === 'bimonthly').map(row => row[date])
  assert.deepEqual(
    ofBimonthly(ninety.renewals.results, 'renews_at'),
    ofBimonthly(ninety.upcoming_billing.results, 'bills_at'),
  )
  assert.equal((await reportOf(server, 'overview', {}, tenant)).attention.renewals, 3)
})

test('a scheduled cancellation is listed, counts until it takes effect, and then ends automatically', async () => {
  const tenant = await server.anotherTenant('cancellations')
  const cancelsAt = inDays(12)
  const requestedAt = inDays(-2)
  await send(
    server,
    [
      created('s', { items: [item(40)] }),
      updated('s', {
        items: [item(40)],
        updated_at: requestedAt,
        canceled_at: requestedAt,
        cancel_at_period_end: true,
        current_period_end: cancelsAt,
        cancellation_reason: 'too_expensive',
      }),
      created('dated', { cancel_at: inDays(50) }),
      created('stays'),
    ],
    tenant,
  )
  const { cancellations } = await reportOf(server, 'attention', {}, tenant)
  assert.deepEqual(cancellations.results, [
    {
      subscription_id: 's',
      customer: 'cus_s',
      customer_name: null,
      cancels_at: cancelsAt,
      requested_at: requestedAt,
      days_until: 12,
      reason: 'too_expensive',
      mrr_at_risk: 40,
    },
  ])
  assert.equal((await reportOf(server, 'attention', { days: 60 }, tenant)).cancellations.count, 2)
  const overview = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([overview.mrr, overview.committed_mrr, overview.attention.cancellations], [60, 10, 1])
  const after = await reportOf(server, 'overview', { as_of: inDays(13) }, tenant)
  assert.deepEqual([after.mrr, after.movements.churn], [20, 40])
})

test('upcoming billing has one row for every expected charge', async () => {
  const tenant = await server.anotherTenant('billing')
  await send(
    server,
    [
      created('monthly', { current_period_end: inDays(5), collection_method: 'charge_automatically' }),
      created('trial', { status: 'trialing', trial_end: inDays(5), items: [item(99, { interval: 'year' })] }),
      created('metered', {
        current_period_end: inDays(8),
        items: [item(10), item(null, { id: 'm', usage_type: 'metered', unit_amount: 1 })],
      }),
      created('ends', { current_period_end: inDays(3), cancel_at: inDays(20) }),
      created('paused', { status: 'paused', current_period_end: inDays(1) }),
    ],
    tenant,
  )
  const { upcoming_billing } = await reportOf(server, 'attention', { days: 90 }, tenant)
  const of = (id: string): Body[] => upcoming_billing.results.filter((row: Body) => row.subscription_id === id)
  assert.equal(of('monthly').length, 3)
  assert.deepEqual(
    of('trial').map(({ bills_at: _, ...row }) => row),
    [
      {
        subscription_id: 'trial',
        customer: 'cus_trial',
        customer_name: null,
        days_until: 5,
        estimated_amount: 99,
        collection_method: null,
        is_trial_conversion: true,
        includes_metered: false,
      },
    ],
  )
  assert.deepEqual(of('metered').map(row => [row.estimated_amount, row.includes_metered])[0], [10, true])
  assert.deepEqual([of('ends').length, of('paused').length], [1, 0])
  const dates = upcoming_billing.results.map((row: Body) => row.bills_at)
  assert.deepEqual(dates, [...dates].sort())
  const overview = await reportOf(server, 'overview', {}, tenant)
  const thirty = await reportOf(server, 'attention', {}, tenant)
  assert.equal(overview.attention.upcoming_billing, thirty.upcoming_billing.count)
})

test('the stored agenda equals the one derived from the segments', async () => {
  const tenant = await server.anotherTenant('two agendas')
  const events = Array.from({ length: 30 }, (_, i) =>
    created(`s${i}`, {
      items: [item(10 + i, { interval: ['month', 'year', 'week'][i % 3], interval_count: 1 + (i % 2) })],
      current_period_end: inDays(1 + i),
      ...(i % 4 === 0 && { cancel_at: inDays(15 + i) }),
      ...(i % 5 === 0 && {
        discounts: [{ percent_off: 50, duration: 'repeating', ends_at: inDays(10 + i) }],
      }),
      ...(i % 7 === 0 && { status: 'trialing', trial_end: inDays(i + 2) }),
    }),
  )
  await send(server, events, tenant)
  for (const days of [30, 90]) {
    const kept = await reportOf(server, 'attention', { days, page_size: 100 }, tenant)
    // for a time before now, no agenda is stored
    const as_of = new Date(Date.parse(kept.as_of) - 1).toISOString()
    const made = await reportOf(server, 'attention', { days, page_size: 100, as_of }, tenant)
    for (const list of LISTS) assert.deepEqual(made[list], kept[list])
    assert.ok(kept.upcoming_billing.count > 20 && kept.renewals.count > 3 && kept.cancellations.count > 3)
  }
})

test('each list is paged separately, and a page past the end is empty', async () => {
  const tenant = await server.anotherTenant('pages')
  const many = Array.from({ length: 11 }, (_, i) => `s${i}`)
  await send(
    server,
    [
      ...many.map(id =>
        created(id, {
          items: [item(120, { interval: 'year' })],
          current_period_end: inDays(10),
        }),
      ),
      ...many.map(id => created(`leaving ${id}`, { cancel_at: inDays(9) })),
      ...many.map(id =>
        invoice('payment_failed', `in_${id}`, {
          subscription: id,
          status: 'open',
          total: 1,
          attempt_count: 1,
          updated_at: inDays(-1),
        }),
      ),
    ],
    tenant,
  )
  const pages = {
    payment_issues: 'issue_page',
    renewals: 'renewal_page',
    cancellations: 'cancel_page',
    upcoming_billing: 'billing_page',
  }
  const whole = await reportOf(server, 'attention', { page_size: 100 }, tenant)
  for (const [list, parameter] of Object.entries(pages)) {
    const found: Body[] = []
    for (let page = 1; page <= Math.ceil(whole[list].count / 4); page++) {
      const report = await reportOf(server, 'attention', { page_size: 4, [parameter]: page }, tenant)
      assert.deepEqual([report[list].page, report[list].page_size, report[list].count], [page, 4, whole[list].count])
      for (const other of LISTS) if (other !== list) assert.equal(report[other].page, 1)
      found.push(...report[list].results)
    }
    assert.deepEqual(found, whole[list].results, list)
    assert.equal(found.length, whole[list].count)
    assert.ok(found.length >= 11)
    const past = await reportOf(server, 'attention', { [parameter]: 9_000_000 }, tenant)
    assert.deepEqual([past[list].results, past[list].page], [[], 9_000_000])
  }
})
