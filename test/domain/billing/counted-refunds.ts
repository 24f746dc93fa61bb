import { markSuperseded } from '../../../src/domain/billing/cash.ts'
import type { Refund } from '../../../src/domain/billing/types.ts'

/** The refunded amount. */
export function countedRefunds(refunds: Refund[]): Refund[] {
  return markSuperseded(refunds)
    .filter(({ refund, superseded }) => refund.counts && !superseded)
    .map(({ refund }) => refund)
}
