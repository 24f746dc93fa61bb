/** An account's subscriptions of one currency, as one row. */

import { nextCharge } from './charges.ts'
import { digestOf } from './content.ts'
import type { Segment } from './timeline.ts'
import type { Acquisition, Instant, SubscriptionStatus } from './types.ts'

type AccountSummary = {
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  mrr: number
  committedMrr: number
  subscriptions: number
  activeSubscriptions: number
  status: SubscriptionStatus
  planNames: string[]
  /** What its subscriptions say themselves, the oldest first; null: look at the events of its profile. */
  acquisition: Acquisition | null
  customerSince: Instant
  nextBillingAt: Instant | null
}

/** The best that any of its subscriptions has is the account's. */
const STATUS_PRIORITY: SubscriptionStatus[] = [
  'active',
  'past_due',
  'trialing',
  'paused',
  'unpaid',
  'incomplete',
  'incomplete_expired',
  'unknown',
  'canceled',
]

/** `segments`: of each subscription the one that holds at `asOf`; at least one. */
export function summarizeAccount(segments: Segment[], asOf: Instant): AccountSummary {
  const oldestFirst = [...segments].sort(
    (a, b) => a.startedAt - b.startedAt || (a.subscriptionId < b.subscriptionId ? -1 : 1),
  )
  const newest = oldestFirst.at(-1)!
  const running = oldestFirst.filter(segment => segment.status !== 'canceled')
  const statuses = new Set(segments.map(segment => segment.status))
  return {
    account: newest.account,
    customer: newest.customer,
    customerName: oldestFirst.findLast(segment => segment.customerName)?.customerName ?? null,
    customerEmail: oldestFirst.findLast(segment => segment.customerEmail)?.customerEmail ?? null,
    mrr: segments.reduce((sum, segment) => sum + segment.mrr, 0),
    committedMrr: segments.reduce((sum, segment) => sum + segment.committedMrr, 0),
    subscriptions: segments.length,
    activeSubscriptions: segments.filter(segment => segment.mrr > 0).length,
    status: STATUS_PRIORITY.find(status => statuses.has(status))!,
    planNames: planNames(running.length > 0 ? running : oldestFirst),
    acquisition: oldestFirst.find(segment => segment.acquisition)?.acquisition ?? null,
    customerSince: oldestFirst[0]!.startedAt,
    nextBillingAt: earliest(segments.map(segment => nextCharge(segment.cycles, asOf)?.billsAt)),
  }
}

function planNames(segments: Segment[]): string[] {
  const names = segments.flatMap(segment => segment.items.map(planName)).filter(name => name !== null)
  return [...new Set(names)]
}

export function planName(item: Segment['items'][number]): string | null {
  return item.name ?? item.priceId ?? item.productId
}

function earliest(instants: (Instant | undefined)[]): Instant | null {
  const known = instants.filter(at => at !== undefined)
  return known.length > 0 ? Math.min(...known) : null
}

/** What an account goes by that was known by the e-mail of somebody who has been erased. */
export function erasedName(tenantId: number, account: string): string {
  return `erased-${digestOf(`${tenantId} ${account}`).slice(0, 16)}`
}
