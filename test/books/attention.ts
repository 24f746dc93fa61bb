// What needs attention: payment issues, renewals, scheduled cancellations, upcoming charges.
import type { Accounts } from './accounts.ts'
import { DAY, later, type Unit } from './calendar.ts'
import type { Cash } from './cash.ts'
import type { Invoice, Subscription } from './model.ts'
import { worthOf } from './mrr.ts'

export type IssueType = 'payment_failed' | 'action_required' | 'overdue' | 'uncollectible' | 'subscription_unpaid'

export type PaymentIssue = {
  type: IssueType
  invoice: string | null
  subscription: string | null
  customer: string
  amountDue: number
  amountRemaining: number
  mrrAtRisk: number
}

export type Upcoming = { subscription: string; at: number; isTrialConversion: boolean; hasMetered: boolean }

const LONGER_THAN_A_MONTH = (unit: string, count: number) =>
  unit === 'year' || (unit === 'month' && count > 1) || (unit === 'week' && count > 4) || (unit === 'day' && count > 31)

export function attentionOf({ valuesAt }: Accounts, { invoicesAt }: Cash) {
  /** Running subscriptions: started and not ended. */
  function running(currency: string, at: number) {
    return valuesAt(currency, at).filter(({ subscription: { endedAt } }) => endedAt === null)
  }

  function paymentIssues(currency: string, at: number): PaymentIssue[] {
    const values = new Map(valuesAt(currency, at).map(row => [row.subscription.id, row]))
    const ofInvoices = invoicesAt(currency, at).flatMap((invoice): PaymentIssue[] => {
      const type = issueOf(invoice, at)
      if (!type) return []
      const { id, subscription, customer, amountDue, amountRemaining } = invoice
      const mrrAtRisk = subscription === null ? 0 : (values.get(subscription)?.value.mrr ?? 0)
      return [{ type, invoice: id, subscription, customer, amountDue, amountRemaining, mrrAtRisk }]
    })
    const named = new Set(ofInvoices.map(({ subscription }) => subscription))
    const unpaid = [...values.values()].filter(
      ({ subscription: { status, id } }) => status === 'unpaid' && !named.has(id),
    )
    return [
      ...ofInvoices,
      ...unpaid.map(
        ({ subscription }): PaymentIssue => ({
          type: 'subscription_unpaid',
          invoice: null,
          subscription: subscription.id,
          customer: subscription.customer,
          amountDue: 0,
          amountRemaining: 0,
          mrrAtRisk: 0,
        }),
      ),
    ]
  }

  return {
    paymentIssues,
    renewals(currency: string, at: number, days: number) {
      return running(currency, at).flatMap(({ subscription, value }) => {
        const { status, pause, cancelAt, periodEnd } = subscription
        const { interval, intervalCount } = termOf(subscription)
        const renews =
          (status === 'active' || status === 'past_due') &&
          pause === null &&
          cancelAt === null &&
          value.mrr > 0 &&
          LONGER_THAN_A_MONTH(interval, intervalCount) &&
          periodEnd > at &&
          periodEnd <= at + days * DAY
        const due = renews ? charges(subscription, at, at + days * DAY) : []
        return due.map(renewsAt => ({ subscription: subscription.id, at: renewsAt, mrr: value.mrr }))
      })
    },
    cancellations(currency: string, at: number, days: number) {
      return running(currency, at).flatMap(({ subscription: { id, cancelAt, canceledAt }, value }) =>
        cancelAt !== null && cancelAt > at && cancelAt <= at + days * DAY
          ? [{ subscription: id, at: cancelAt, requestedAt: canceledAt, mrrAtRisk: value.mrr }]
          : [],
      )
    },
    /** Every expected charge. `unsure`: subscriptions for which no rule decides whether a charge is expected. */
    upcoming(currency: string, at: number, days: number): { rows: Upcoming[]; unsure: Set<string> } {
      const rows: Upcoming[] = []
      const unsure = new Set<string>()
      for (const { subscription, value } of running(currency, at)) {
        const { id, status, pause, items } = subscription
        const hasMetered = items.some(({ price }) => price.usage === 'metered')
        const owesNothing = status === 'trialing' ? isFree(subscription) : value.mrr === 0
        if (pause || status === 'unpaid' || status === 'paused' || status === 'incomplete' || owesNothing)
          unsure.add(id)
        else
          for (const chargedAt of charges(subscription, at, at + days * DAY)) {
            const isTrialConversion = status === 'trialing' && chargedAt === subscription.trialEnd
            rows.push({ subscription: id, at: chargedAt, isTrialConversion, hasMetered })
          }
      }
      return { rows, unsure }
    },
  }
}

/** Whether a trial ends with a charge of 0. */
function isFree(subscription: Subscription): boolean {
  return worthOf({ ...subscription, status: 'active' }, null, subscription.trialEnd!).mrr === 0
}

/** The payment issue of an invoice, if any. */
function issueOf(invoice: Invoice, at: number): IssueType | null {
  const { status, amountRemaining, needsAction, failure, dueAt } = invoice
  if (amountRemaining <= 0) return null
  if (status === 'uncollectible') return 'uncollectible'
  if (status !== 'open') return null
  if (needsAction) return 'action_required'
  if (failure) return 'payment_failed'
  return dueAt !== null && dueAt <= at ? 'overdue' : null
}

function termOf({ items }: Subscription): { interval: string; intervalCount: number } {
  const { interval, intervalCount } = items[0]!.price
  return { interval, intervalCount: intervalCount ?? 1 }
}

function charges(subscription: Subscription, after: number, until: number): number[] {
  const { anchor, periodEnd, cancelAt } = subscription
  const { interval, intervalCount } = termOf(subscription)
  const found: number[] = []
  for (let n = 0; ; n++) {
    const at = later(anchor, interval as Unit, n * intervalCount)
    if (at > until || at >= (cancelAt ?? Infinity)) return found
    if (at >= periodEnd && at > after) found.push(at)
  }
}
