// History, rates, breakdowns, cohorts, trials and dunning, computed from the same books.
import { type Account, type Accounts, push } from './accounts.ts'
import { DAY, later, startOf } from './calendar.ts'
import type { Cash } from './cash.ts'
import type { Acquisition, Subscription } from './model.ts'
import { sum } from './money.ts'
import type { ItemValue } from './mrr.ts'

export type Bucket = 'day' | 'week' | 'month'
export type By = 'plan' | 'interval' | 'source' | 'country'

const UNATTRIBUTED: Acquisition = { source: 'unattributed', medium: '', campaign: '' }

export function seriesOf(accounts: Accounts, { invoiceVersions }: Cash) {
  const { facts, history, inCurrency, mrrAt, totalsAt, flow, movementsIn, valuesAt } = accounts

  /** Buckets are [start, end); a row is as of the bucket's last second, or of `now` where that comes first. */
  function historyRows(currency: string, from: number, to: number, bucket: Bucket, now = Infinity) {
    const rows = []
    for (let start = startOf(bucket, from); start < to && start <= now; ) {
      const end = later(start, bucket, 1)
      const last = Math.min(end - 1, now)
      const { opening, closing, ...amounts } = flow(currency, start - 1, last)
      const own = {
        newAccounts: movementsIn(currency, start - 1, last).filter(({ type }) => type === 'new').length,
        churnedAccounts: retained(currency, start - 1, last).lost,
        rates: rates(currency, last, start - 1),
      }
      const retention = (months: number) => retentionOf(currency, later(last + 1, 'month', -months) - 1, last)
      rows.push({ start, ...totalsAt(currency, last), opening, ...amounts, ...own, retention })
      start = end
    }
    return rows
  }

  /** Of the accounts with MRR at the opening, whatever happened in between. */
  function retained(currency: string, opens: number, at: number) {
    const had = inCurrency(currency).filter(account => mrrAt(account, opens) > 0)
    return {
      had: had.length,
      lost: had.filter(account => mrrAt(account, at) === 0).length,
      opening: sum(had.map(account => mrrAt(account, opens))),
      gross: sum(had.map(account => Math.min(mrrAt(account, opens), mrrAt(account, at)))),
      net: sum(had.map(account => mrrAt(account, at))),
    }
  }

  function retentionOf(currency: string, opens: number, at: number) {
    const { opening, gross, net } = retained(currency, opens, at)
    return { gross_revenue_retention: ratio(gross, opening), net_revenue_retention: ratio(net, opening) }
  }

  function rates(currency: string, at: number, opens = at - 30 * DAY) {
    const { opening, new: fresh, expansion, reactivation, contraction, churn } = flow(currency, opens, at)
    const { had, lost: left } = retained(currency, opens, at)
    const { mrr, activeAccounts } = totalsAt(currency, at)
    const arpa = activeAccounts > 0 ? Math.floor(mrr / activeAccounts + 0.5) : 0
    const lost = contraction + churn
    const won = expansion + reactivation
    const customerChurn = ratio(left, had)
    return {
      customer_churn_rate: customerChurn,
      gross_mrr_churn_rate: ratio(lost, opening),
      net_mrr_churn_rate: ratio(lost - won, opening),
      ...retentionOf(currency, opens, at),
      quick_ratio: ratio(fresh + won, lost),
      /** In minor units, of the average as it is shown. */
      ltv: left > 0 ? Math.round((arpa * had) / left) : null,
    }
  }

  function breakdown(currency: string, at: number, by: By) {
    const parts = new Map<string, { mrr: number; accounts: Set<Account>; subscriptions: Set<string> }>()
    for (const { account, subscription, value } of valuesAt(currency, at))
      for (const item of value.items) {
        if (item.mrr === 0) continue
        const key = keyOf(by, account, subscription, item)
        const part = parts.get(key) ?? { mrr: 0, accounts: new Set(), subscriptions: new Set() }
        part.mrr += item.mrr
        part.accounts.add(account)
        part.subscriptions.add(subscription.id)
        parts.set(key, part)
      }
    return [...parts].map(([key, part]) => ({
      key,
      mrr: part.mrr,
      accounts: part.accounts.size,
      subscriptions: part.subscriptions.size,
    }))
  }

  function keyOf(by: By, account: Account, { country }: Subscription, { item: { price } }: ItemValue): string {
    if (by === 'plan') return price.name
    if (by === 'interval') return `${price.intervalCount} ${price.interval}`
    if (by === 'country') return country ?? 'unknown'
    return acquisitionOf(account).source
  }

  /** The source in the account's first subscription. */
  function acquisitionOf({ subscriptions }: Account): Acquisition {
    return history.versionsOf(subscriptions[0]!)[0]!.state.acquisition ?? UNATTRIBUTED
  }

  function acquisition(currency: string, at: number, horizon: number) {
    const groups = new Map<string, Account[]>()
    for (const account of inCurrency(currency)) {
      if (account.steps[0]!.at > at) continue
      const { source, medium, campaign } = acquisitionOf(account)
      push(groups, JSON.stringify([source, medium, campaign]), account)
    }
    return [...groups].map(([key, members]) => {
      const [source, medium, campaign] = JSON.parse(key) as [string, string, string]
      const paying = members.filter(account => mrrAt(account, at) > 0)
      const cohort = members.filter(account => mrrAt(account, at - horizon * DAY) > 0)
      return {
        source,
        medium,
        campaign,
        accounts: paying.length,
        mrr: sum(paying.map(account => mrrAt(account, at))),
        cohortAccounts: cohort.length,
        cohortStartingMrr: sum(cohort.map(account => mrrAt(account, at - horizon * DAY))),
        retainedMrr: cohort.length === 0 ? null : sum(cohort.map(account => mrrAt(account, at))),
      }
    })
  }

  /** Accounts by the month of their first payment, and their state at the end of each later month. */
  function retention(currency: string, asOf: number, base: 'first_instant' | 'end_of_month' = 'first_instant') {
    const cohorts = new Map<number, { account: Account; starting: number }[]>()
    for (const account of inCurrency(currency)) {
      const first = account.movements[0]
      if (!first || first.at > asOf) continue
      const month = startOf('month', first.at)
      const monthEnd = Math.min(later(month, 'month', 1) - 1, asOf)
      const starting = base === 'first_instant' ? first.after : mrrAt(account, monthEnd)
      push(cohorts, month, { account, starting })
    }
    return [...cohorts]
      .sort(([a], [b]) => a - b)
      .flatMap(([cohort, members]) => {
        const rows = []
        for (let month = 0; later(cohort, 'month', month) <= asOf; month++) {
          const at = Math.min(later(cohort, 'month', month + 1) - 1, asOf)
          const now = members.map(({ account }) => mrrAt(account, at))
          rows.push({
            cohort,
            month,
            at,
            startingAccounts: members.length,
            startingMrr: sum(members.map(({ starting }) => starting)),
            accounts: now.filter(mrr => mrr > 0).length,
            mrr: sum(now),
            grossMrr: sum(members.map(({ starting }, i) => Math.min(starting, now[i]!))),
          })
        }
        return rows
      })
  }

  /** Trials that started, converted or expired in a window. */
  function trials(currency: string, after: number, until: number) {
    const counts = { started: 0, converted: 0, expired: 0 }
    for (const fact of facts) {
      if (fact.kind !== 'subscription' || fact.at <= after || fact.at > until) continue
      const { before, after: now } = fact
      if (now.currency !== currency || !now.livemode) continue
      if (before === null && now.status === 'trialing') counts.started++
      if (before?.status === 'trialing' && now.status === 'active') counts.converted++
      if (before?.status === 'trialing' && (now.status === 'canceled' || now.status === 'paused')) counts.expired++
    }
    return counts
  }

  /** Invoices whose collection first failed, recovered or was given up in a window. */
  function dunning(currency: string, after: number, until: number) {
    const counts = { failed: 0, recovered: 0, lost: 0 }
    const isIn = (at: number | undefined) => at !== undefined && at > after && at <= until
    for (const versions of invoiceVersions.values()) {
      const { currency: own, subscription } = versions[0]!.state
      const failedAt = versions.find(({ what }) => what === 'payment_failed')?.at
      if (own !== currency || subscription === null || failedAt === undefined) continue
      const paidAt = versions.find(({ what }) => what === 'paid')?.at
      const lostAt = versions.find(({ what }) => what === 'marked_uncollectible' || what === 'voided')?.at
      if (isIn(failedAt)) counts.failed++
      if (isIn(paidAt)) counts.recovered++
      else if (isIn(lostAt)) counts.lost++
    }
    return counts
  }

  return { historyRows, rates, breakdown, acquisitionOf, acquisition, retention, trials, dunning }
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}
