import { conversions } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import { currency, rememberCurrency } from '../../session.ts'

/** What every report is read with; `as_of` is empty for now. */
export type Scope = { currency: string; as_of: string }

/** The currency is the one in the address, the last one, or that of the newest sale. */
export async function scopeOf(query: URLSearchParams, signal: AbortSignal): Promise<Scope> {
  const code = query.get('currency') ?? currency.peek() ?? (await usualCurrency(signal))
  return { currency: code.toUpperCase(), as_of: query.get('as_of') ?? '' }
}

async function usualCurrency(signal: AbortSignal): Promise<string> {
  const sales = await nullOn(403, conversions.list({ limit: 20 }, signal))
  return sales?.results.find(sale => sale.currency)?.currency ?? 'EUR'
}

/** A report; null where there is nothing to report on. A currency that it was read in is remembered. */
export async function reportIn<Report>(scope: Scope, answer: Promise<Report>): Promise<Report | null> {
  const report = await nullOn(404, answer)
  rememberCurrency(scope.currency)
  return report
}
