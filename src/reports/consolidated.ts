import { MOVEMENT_TYPES, type MovementType } from '../domain/billing/account.ts'
import { convertAmount, createExchange, type Exchange, rateNumber } from '../domain/billing/exchange.ts'
import { computeArr } from '../domain/billing/price.ts'
import { toMajor } from '../domain/money.ts'
import { DAY_MS, type Day, toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { ratesBetween } from '../store/billing/exchange-rates.ts'
import type { Moved, SourceFigures } from '../store/reports/totals.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { daysFrom, type ReportList, type ReportQuestion, sum, toList } from './question.ts'

const WINDOW_DAYS = 30

/** opening + new + expansion + reactivation − contraction − churn + fx = closing */
type ExchangedMovements = Record<MovementType, number> & {
  openingMrr: number
  /** The effect of exchange rates. */
  fx: number
  closingMrr: number
}

type ConsolidatedReport = {
  mrr: number
  arr: number
  activeSubscriptions: number
  windowDays: number
  /** Only of currencies with all required rates. */
  movements: ExchangedMovements
  /** Currencies without a required rate. */
  missingRates: string[]
  /** Currencies whose rate is older than the report. */
  olderRates: string[]
  currencies: ReportList<CurrencyEntry>
}

type CurrencyEntry = {
  currency: string
  /** Major units of its own currency. */
  ownMrr: number
  activeSubscriptions: number
  rate: number | null
  rateDate: Day | null
  /** In the currency of the report; null without a rate. */
  mrr: number | null
} & { [Name in keyof ExchangedMovements]: number | null }

/** MRR of all currencies in one, by the rates of the day. The effect of rates is separate from movements. */
export async function consolidatedReport(db: Db, question: ReportQuestion): Promise<ConsolidatedReport> {
  const { tenantId, currency: target, asOf } = question
  const since = daysFrom(asOf, -WINDOW_DAYS)
  const ledger = await openLedger(db, question)
  const figures = await ledger.figures(asOf, since)
  const named = [...Map.groupBy(figures, source => source.currency)].filter(([code]) => code !== '')
  const window = { first: toDay(since), last: toDay(asOf) }
  const rates = await ratesBetween(db, tenantId, [...named.map(([code]) => code), target], window)
  const exchangeOn = createExchange(rates)
  const entries: CurrencyEntry[] = []
  for (const [currency, own] of named) {
    // every currency has its own movements
    const itsLedger = currency === target ? ledger : await openLedger(db, { ...question, currency })
    const moved = await movedByDay(itsLedger, since, asOf)
    const isEmpty = own.every(({ mrr, cohortMrr }) => mrr === 0 && cohortMrr === 0)
    if (isEmpty && moved.every(({ moved: on }) => on.count === 0)) continue
    const exchange = (day: Day) => exchangeOn(currency, target, day)
    entries.push(currencyEntry({ currency, target, own, moved, exchange, window }))
  }
  return {
    ...sumTotals(entries),
    ...listRates(entries, target, window.last),
    windowDays: WINDOW_DAYS,
    currencies: toList(entries.sort(bySize)),
  }
}

type DayMoves = { day: Day; moved: Moved }

/** Movements in (since, asOf] by UTC day, because rates are daily. */
async function movedByDay(ledger: Ledger, since: Date, asOf: Date): Promise<DayMoves[]> {
  const [begin, end] = [since.getTime() + 1, asOf.getTime() + 1]
  const midnights: number[] = []
  for (let at = (Math.floor(begin / DAY_MS) + 1) * DAY_MS; at < end; at += DAY_MS) midnights.push(at)
  const bounds = [begin, ...midnights, end].map(at => new Date(at))
  const moved = await ledger.movedWithin(bounds)
  return moved.map((own, i) => ({ day: toDay(bounds[i]!), moved: own }))
}

function currencyEntry(of: {
  currency: string
  target: string
  own: SourceFigures[]
  moved: DayMoves[]
  exchange: (day: Day) => Exchange | null
  window: { first: Day; last: Day }
}): CurrencyEntry {
  const { currency, target, own, moved, exchange, window } = of
  const convert = (minor: number, by: Exchange | null) => by && convertAmount(minor, currency, target, by)
  const now = exchange(window.last)
  const ownMrr = sum(own, source => source.mrr)
  const mrr = convert(ownMrr, now)
  const openingMrr = convert(
    sum(own, source => source.cohortMrr),
    exchange(window.first),
  )
  const amounts = MOVEMENT_TYPES.map(type => {
    const days = moved.map(({ day, moved: on }) => (on[type] ? convert(on[type], exchange(day)) : 0))
    return [type, days.includes(null) ? null : sum(days, amount => amount ?? 0)] as const
  })
  const byType = Object.fromEntries(amounts) as Record<MovementType, number | null>
  return {
    currency,
    ownMrr: toMajor(ownMrr, currency),
    activeSubscriptions: sum(own, source => source.activeSubscriptions),
    rate: now && rateNumber(now),
    rateDate: now?.day ?? null,
    mrr,
    ...withFx({ ...byType, openingMrr, closingMrr: mrr }),
  }
}

/** The difference that movements do not explain is the effect of rates. All null: a rate is missing. */
function withFx(parts: Record<MovementType | 'openingMrr' | 'closingMrr', number | null>) {
  const { new: added, expansion, contraction, churn, reactivation, openingMrr, closingMrr } = parts
  const isKnown = Object.values(parts).every(part => part !== null)
  if (!isKnown) return NOTHING_KNOWN
  const real = added! + expansion! + reactivation! - contraction! - churn!
  return { ...parts, fx: closingMrr! - openingMrr! - real }
}

const FIELDS = ['openingMrr', ...MOVEMENT_TYPES, 'fx', 'closingMrr'] as const

function mapFields<Value>(read: (field: keyof ExchangedMovements) => Value) {
  return Object.fromEntries(FIELDS.map(field => [field, read(field)])) as Record<keyof ExchangedMovements, Value>
}

const NOTHING_KNOWN = mapFields(() => null)

function sumTotals(entries: CurrencyEntry[]) {
  const mrr = sum(entries, entry => entry.mrr ?? 0)
  return {
    mrr,
    arr: computeArr(mrr),
    activeSubscriptions: sum(entries, entry => (entry.mrr === null ? 0 : entry.activeSubscriptions)),
    movements: mapFields(field => sum(entries, entry => entry[field] ?? 0)),
  }
}

function listRates(entries: CurrencyEntry[], target: string, day: Day) {
  const named = (isOne: (entry: CurrencyEntry) => boolean) =>
    entries
      .filter(isOne)
      .map(entry => entry.currency)
      .sort()
  return {
    missingRates: named(entry => entry.mrr === null || entry.openingMrr === null),
    olderRates: named(({ currency, rateDate }) => currency !== target && rateDate !== null && rateDate < day),
  }
}

function bySize(a: CurrencyEntry, b: CurrencyEntry): number {
  return (b.mrr ?? -1) - (a.mrr ?? -1) || (a.currency < b.currency ? -1 : 1)
}
