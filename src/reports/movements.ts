import type { Cause } from '../domain/billing/causes.ts'
import { type MovementType, mainChange } from '../domain/billing/movements.ts'
import type { Db } from '../postgres/database.ts'
import { accountNames } from '../store/reports/accounts.ts'
import type { MovementOrder } from '../store/reports/movements.ts'
import type { MovementSums } from '../store/reports/totals.ts'
import { openLedger } from './open-ledger.ts'
import { type ReportList, type ReportQuestion, sum } from './question.ts'

/** After `since` and up to `until`. */
export type Window = { since: Date; until: Date }

export type MovementReport = Window & { totals: MovementTotals; movements: ReportList<MovementEntry> }

/** opening + new + expansion + reactivation − contraction − churn = closing */
export type MovementTotals = Record<MovementType, number> & {
  openingMrr: number
  net: number
  closingMrr: number
}

export type MovementEntry = {
  occurredAt: Date
  customer: string
  customerName: string | null
  movementType: MovementType
  mrrBefore: number
  mrrAfter: number
  mrrDelta: number
  subscriptionIds: string[]
  cause: Cause
  eventId: string | null
}

/** Every movement of the window. */
export async function movementReport(
  db: Db,
  question: ReportQuestion,
  window: Window,
  order: MovementOrder = 'time',
): Promise<MovementReport> {
  const { tenantId, currency } = question
  const ledger = await openLedger(db, question)
  const { sums } = await ledger.moved(window.since, window.until)
  const count = sum(sums, moved => moved.count)
  const figures = await ledger.figures(window.until, window.since)
  const own = figures.filter(source => source.currency === currency)
  const opening = sum(own, source => source.cohortMrr)
  const closing = sum(own, source => source.mrr)
  return {
    ...window,
    totals: movementTotals(sums, opening, closing),
    movements: {
      count,
      async rows(slice) {
        const entries = await ledger.movements(window, { slice, count, order })
        const names = await accountNames(db, tenantId, [...new Set(entries.map(entry => entry.account))])
        return entries.map(({ account, occurredAt, type, before, after, changes }) => ({
          occurredAt,
          customer: account,
          customerName: names.get(account) ?? null,
          movementType: type,
          mrrBefore: before,
          mrrAfter: after,
          mrrDelta: after - before,
          subscriptionIds: changes.map(change => change.subscriptionId),
          cause: mainChange(changes)?.cause ?? 'other',
          eventId: mainChange(changes)?.eventId ?? null,
        }))
      },
    },
  }
}

export function movementTotals(sums: MovementSums, opening: number, closing: number): MovementTotals {
  const amountOf = (type: MovementType) => sums.find(moved => moved.type === type)?.amount ?? 0
  return {
    openingMrr: opening,
    new: amountOf('new'),
    expansion: amountOf('expansion'),
    contraction: amountOf('contraction'),
    churn: amountOf('churn'),
    reactivation: amountOf('reactivation'),
    net: closing - opening,
    closingMrr: closing,
  }
}
