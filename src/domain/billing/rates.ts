/** How fast MRR comes and goes: rates over a window, stated as they are computed. */

/** Returned in every report, beside the rest of the policy. */
export const RATE_FORMULAS = {
  customer_churn_rate: 'accounts with MRR > 0 at opening and 0 at closing ÷ accounts with MRR > 0 at opening',
  gross_mrr_churn_rate: '(contraction + churn) ÷ opening MRR',
  net_mrr_churn_rate: '(contraction + churn − expansion − reactivation) ÷ opening MRR',
  gross_revenue_retention: '1 − gross_mrr_churn_rate',
  net_revenue_retention: '1 − net_mrr_churn_rate',
  quick_ratio: '(new + expansion + reactivation) ÷ (contraction + churn)',
  ltv: 'ARPA ÷ customer_churn_rate',
  base_of_zero: null,
} as const

/** Null where what it is divided by is 0. */
export type Rates = {
  customerChurnRate: number | null
  grossMrrChurnRate: number | null
  netMrrChurnRate: number | null
  grossRevenueRetention: number | null
  netRevenueRetention: number | null
  quickRatio: number | null
  /** Minor units. */
  ltv: number | null
}

export function ratesOf(window: {
  moved: Record<'new' | 'expansion' | 'contraction' | 'churn' | 'reactivation', number>
  openingMrr: number
  openingAccounts: number
  /** Of those, the ones without MRR at closing. */
  lostAccounts: number
  arpa: number
}): Rates {
  const { moved, openingMrr, openingAccounts, lostAccounts, arpa } = window
  const lost = moved.contraction + moved.churn
  const won = moved.expansion + moved.reactivation
  const over = (part: number, whole: number) => (whole > 0 ? part / whole : null)
  return {
    customerChurnRate: over(lostAccounts, openingAccounts),
    grossMrrChurnRate: over(lost, openingMrr),
    netMrrChurnRate: over(lost - won, openingMrr),
    grossRevenueRetention: over(openingMrr - lost, openingMrr),
    netRevenueRetention: over(openingMrr - lost + won, openingMrr),
    quickRatio: over(moved.new + won, lost),
    ltv: lostAccounts > 0 ? Math.round((arpa * openingAccounts) / lostAccounts) : null,
  }
}
