// Accounts and their MRR at any instant: its movements, their times and causes.
import type { Cause, Customer, Discount, Fact, Subscription } from './model.ts'
import { sum } from './money.ts'
import { type ItemValue, type Value, worthOf } from './mrr.ts'

type MovementType = 'new' | 'expansion' | 'contraction' | 'churn' | 'reactivation'

export type Movement = {
  at: number
  customer: string
  currency: string
  type: MovementType
  before: number
  after: number
  /** Everything that was decided at that instant and changed the amount. */
  causes: Set<Cause>
  subscriptions: string[]
}

/** The state of an account from an instant on. */
type Step = { at: number; mrr: number; committed: number; values: Map<string, Value> }

export type Account = {
  customer: string
  currency: string
  /** Of all times, oldest first. */
  subscriptions: string[]
  steps: Step[]
  movements: Movement[]
}

type Flow = Record<MovementType, number> & { opening: number; closing: number; net: number }

export type Policy = { pause: 'churn' | 'keep' }

export type Accounts = ReturnType<typeof openAccounts>

export function openAccounts(facts: Fact[], policy: Policy) {
  const history = historyOf(facts)
  const accounts = accountsOf(history, policy)
  const inCurrency = (currency: string) => accounts.filter(account => account.currency === currency)
  const mrrAt = (account: Account, at: number) => stepAt(account, at)?.mrr ?? 0

  function totalsAt(currency: string, at: number) {
    const steps = inCurrency(currency).flatMap(account => stepAt(account, at) ?? [])
    const values = steps.flatMap(step => [...step.values.values()])
    const mrr = sum(steps.map(step => step.mrr))
    const activeAccounts = steps.filter(step => step.mrr > 0).length
    return {
      mrr,
      arr: 12 * mrr,
      committed: sum(steps.map(step => step.committed)),
      activeAccounts,
      activeSubscriptions: values.filter(value => value.mrr > 0).length,
    }
  }

  /** After the first instant, up to and with the second, oldest first. */
  function movementsIn(currency: string, after: number, until: number): Movement[] {
    return inCurrency(currency)
      .flatMap(account => account.movements.filter(({ at }) => at > after && at <= until))
      .sort((a, b) => a.at - b.at || (a.customer < b.customer ? -1 : 1))
  }

  function flow(currency: string, after: number, until: number): Flow {
    const amounts = { new: 0, expansion: 0, contraction: 0, churn: 0, reactivation: 0 }
    for (const { type, before, after: now } of movementsIn(currency, after, until))
      amounts[type] += Math.abs(now - before)
    const { new: fresh, expansion, reactivation, contraction, churn } = amounts
    return {
      ...amounts,
      opening: totalsAt(currency, after).mrr,
      closing: totalsAt(currency, until).mrr,
      net: fresh + expansion + reactivation - contraction - churn,
    }
  }

  /** Each existing subscription, with the MRR of each of its items. */
  function valuesAt(currency: string, at: number) {
    return inCurrency(currency).flatMap(account =>
      [...(stepAt(account, at)?.values ?? [])].map(([id, value]) => ({
        account,
        subscription: history.subscriptionAt(id, at)!,
        value,
      })),
    )
  }

  /** Excluded items. Test data has no account, but is listed too. */
  function exclusionsAt(currency: string, at: number) {
    const rows: (ItemValue & { subscription: Subscription })[] = []
    for (const id of history.subscriptionIds) {
      const subscription = history.subscriptionAt(id, at)
      if (!subscription || subscription.currency !== currency) continue
      const { items } = worthOf(subscription, history.discountAt(subscription.customer, at), at, policy)
      for (const item of items) if (item.reason) rows.push({ ...item, subscription })
    }
    return rows
  }

  return {
    facts,
    history,
    accounts,
    inCurrency,
    mrrAt,
    totalsAt,
    movementsIn,
    flow,
    valuesAt,
    exclusionsAt,
  }
}

type History = ReturnType<typeof historyOf>

/** The state at any instant. */
function historyOf(facts: Fact[]) {
  const subscriptions = new Map<string, { at: number; state: Subscription; causes: Cause[] }[]>()
  const customers = new Map<string, { at: number; state: Customer }[]>()
  const discountChanges = new Map<string, { at: number; cause: Cause }[]>()
  for (const fact of facts) {
    if (fact.kind === 'subscription')
      push(subscriptions, fact.after.id, { at: fact.at, state: fact.after, causes: [fact.cause] })
    if (fact.kind === 'customer') push(customers, fact.after.id, { at: fact.at, state: fact.after })
    if (fact.kind === 'discount' && fact.discount.subscription === null) {
      const ranOut = fact.what === 'deleted' && fact.discount.end === fact.at
      const cause = ranOut ? 'discount_end' : 'discount'
      push(discountChanges, fact.discount.customer, { at: fact.at, cause })
    }
  }
  return {
    subscriptionIds: [...subscriptions.keys()],
    versionsOf: (id: string) => subscriptions.get(id) ?? [],
    customerAt: (id: string, at: number): Customer | null => lastAt(customers.get(id) ?? [], at)?.state ?? null,
    subscriptionAt: (id: string, at: number): Subscription | null =>
      lastAt(subscriptions.get(id) ?? [], at)?.state ?? null,
    discountAt: (customer: string, at: number): Discount | null =>
      lastAt(customers.get(customer) ?? [], at)?.state.discount ?? null,
    discountChangesOf: (customer: string) => discountChanges.get(customer) ?? [],
  }
}

function accountsOf(history: History, policy: Policy): Account[] {
  const byAccount = new Map<string, string[]>()
  for (const id of history.subscriptionIds) {
    const { customer, currency, livemode } = history.versionsOf(id)[0]!.state
    if (livemode) push(byAccount, `${currency} ${customer}`, id)
  }
  return [...byAccount].map(([key, ids]) => {
    const [currency, customer] = key.split(' ') as [string, string]
    const steps = stepsOf(history, customer, ids, policy)
    const account = { customer, currency, subscriptions: ids, steps }
    return { ...account, movements: movementsOf(history, account) }
  })
}

function stepsOf(history: History, customer: string, ids: string[], policy: Policy): Step[] {
  const instants = new Set([
    ...ids.flatMap(id => history.versionsOf(id).map(({ at }) => at)),
    ...history.discountChangesOf(customer).map(({ at }) => at),
  ])
  return [...instants]
    .sort((a, b) => a - b)
    .map(at => {
      const values = new Map<string, Value>()
      for (const id of ids) {
        const state = history.subscriptionAt(id, at)
        if (state) values.set(id, worthOf(state, history.discountAt(customer, at), at, policy))
      }
      const all = [...values.values()]
      return {
        at,
        values,
        mrr: sum(all.map(account => account.mrr)),
        committed: sum(all.map(account => account.committed)),
      }
    })
}

function movementsOf(history: History, { customer, currency, steps }: Omit<Account, 'movements'>): Movement[] {
  const movements: Movement[] = []
  let wasPaying = false
  /** Subscriptions that had MRR before. */
  const paid = new Set<string>()
  let previous: Step = { at: 0, mrr: 0, committed: 0, values: new Map() }
  for (const step of steps) {
    const [before, after] = [previous.mrr, step.mrr]
    if (before !== after) {
      const changed = [...step.values]
        .filter(([id, { mrr }]) => mrr !== (previous.values.get(id)?.mrr ?? 0))
        .map(([id]) => id)
      const type = typeOf(before, after, wasPaying)
      const causes = causesOf(history, customer, changed, step.at)
      if (changed.some(id => !paid.has(id) && step.values.get(id)!.mrr > 0)) {
        causes.delete('other')
        causes.add(before === 0 ? 'new_subscription' : 'additional_subscription')
      }
      movements.push({ at: step.at, customer, currency, type, before, after, causes, subscriptions: changed })
    }
    wasPaying ||= after > 0
    for (const [id, { mrr }] of step.values) if (mrr > 0) paid.add(id)
    previous = step
  }
  return movements
}

function typeOf(before: number, after: number, wasPaying: boolean): MovementType {
  if (before === 0) return wasPaying ? 'reactivation' : 'new'
  if (after === 0) return 'churn'
  return after > before ? 'expansion' : 'contraction'
}

function causesOf(history: History, customer: string, ids: string[], at: number): Set<Cause> {
  const own = ids.flatMap(id => history.versionsOf(id).filter(version => version.at === at))
  const shared = history.discountChangesOf(customer).filter(change => change.at === at)
  const causes = [...own.flatMap(version => version.causes), ...shared.map(({ cause }) => cause)]
  const specific = causes.filter(cause => cause !== 'other')
  return new Set(specific.length > 0 ? specific : ['other'])
}

function stepAt(account: Account, at: number): Step | null {
  return lastAt(account.steps, at)
}

/** The last entry that is not after the instant; entries stand in their order. */
export function lastAt<Entry extends { at: number }>(entries: Entry[], at: number): Entry | null {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.at <= at) low = middle + 1
    else high = middle
  }
  return entries[low - 1] ?? null
}

export function push<Key, Entry>(map: Map<Key, Entry[]>, key: Key, entry: Entry): void {
  const entries = map.get(key)
  if (entries) entries.push(entry)
  else map.set(key, [entry])
}
