import { withSuperseded } from '../../../src/domain/billing/invoices.ts'
import type { Refund } from '../../../src/domain/billing/types.ts'

/** Money that went back. */
export function countedRefunds(refunds: Refund[]): Refund[] {
  return withSuperseded(refunds)
    .filter(({ refund, superseded }) => refund.counts && !superseded)
    .map(({ refund }) => refund)
}
