import { type Dimension, dimensionValue, filterSegment } from '../domain/billing/dimensions.ts'
import type { Db } from '../postgres/database.ts'
import { countingSegments } from '../store/reports/accounts.ts'
import { reportTraits } from '../store/reports/traits.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

export type BreakdownReport = { by: Dimension; mrr: number; parts: ReportList<BreakdownEntry> }

/** What of MRR has one plan, interval, source or country, and how many accounts and subscriptions have some of it. */
type BreakdownEntry = { name: string; mrr: number; accounts: number; subscriptions: number }

type Part = { mrr: number; accounts: Set<string>; subscriptions: number }

/** MRR item by item: the rows add up to it. The largest first. */
export async function breakdownReport(
  db: Db,
  question: ReportQuestion,
  by: Dimension,
): Promise<BreakdownReport> {
  const parts = new Map<string, Part>()
  let mrr = 0
  const withCountry = by === 'country' || question.filter.country !== undefined
  for await (const segments of countingSegments(db, question)) {
    const accounts = [...new Set(segments.map(segment => segment.account))]
    const traits = await reportTraits(db, question.tenantId, accounts, withCountry)
    for (const whole of segments) {
      const ofAccount = traits.get(whole.account)!
      const segment = filterSegment(whole, question.filter, ofAccount)
      if (segment === null) continue
      const own = new Map<string, number>()
      for (const item of segment.items) {
        if (item.mrr === 0) continue
        const name = dimensionValue(by, item, segment, ofAccount)
        own.set(name, (own.get(name) ?? 0) + item.mrr)
      }
      for (const [name, amount] of own) {
        const part = parts.get(name) ?? { mrr: 0, accounts: new Set<string>(), subscriptions: 0 }
        parts.set(name, part)
        part.mrr += amount
        part.accounts.add(segment.account)
        part.subscriptions += 1
        mrr += amount
      }
    }
  }
  const entries = [...parts].map(([name, part]) => ({ name, ...part, accounts: part.accounts.size }))
  return { by, mrr, parts: listOf(entries.sort((a, b) => b.mrr - a.mrr || (a.name < b.name ? -1 : 1))) }
}
