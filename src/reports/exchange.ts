/** Reports in the tenant's reporting currency: the ledgers of all currencies, converted by daily rates. Days are in UTC. */

import type { CohortMonth, MovementType } from '../domain/billing/account.ts'
import { convertAmount, createExchange, type Exchange } from '../domain/billing/exchange.ts'
import { DAY_MS, type Day, toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { ratesAsClosed, ratesBetween } from '../store/billing/exchange-rates.ts'
import type { MovementEntry, MovementOrder } from '../store/reports/movements.ts'
import {
  type AccountTotals,
  firstMonth,
  type Moved,
  type Retained,
  type SourceFigures,
} from '../store/reports/totals.ts'
import { type Ledger, openLedger, type SeriesLedger } from './ledger.ts'
import { QuestionError, type ReportList, type ReportQuestion, sum, toList } from './question.ts'

/** The day whose rate applies right before a time. */
const dayBefore = (at: Date): Day => toDay(at.getTime() - 1)

export type CurrencyLedger = { currency: string; question: ReportQuestion; ledger: Ledger }

/** Converts minor units of a currency to the reporting currency. Throws if a rate is missing. */
export type Convert = (minor: number, currency: string, day: Day) => number

/** `olderRates`: currencies whose rate is from an earlier day. `figures`: at `asOf`, in all currencies, not converted. */
export type Currencies = {
  ledgers: CurrencyLedger[]
  convert: Convert
  olderRates: string[]
  figures: SourceFigures[]
}

/** The tenant's currencies up to `asOf`, each with its ledger, and the rates of all days. */
export async function openCurrencies(db: Db, question: ReportQuestion): Promise<Currencies> {
  const { tenantId, currency: target, asOf, closing } = question
  const own = { ...question, isReporting: false }
  const first = await openLedger(db, own)
  const figures = await first.figures(asOf, asOf)
  // in a fixed order: lists of several currencies have pages
  const others = new Set(figures.map(source => source.currency).filter(code => code !== '' && code !== target))
  const currencies = [target, ...[...others].sort()]
  const ledgers: CurrencyLedger[] = []
  for (const currency of currencies) {
    const ledger = currency === target ? first : await openLedger(db, { ...own, currency })
    ledgers.push({ currency, question: { ...own, currency }, ledger })
  }
  const last = toDay(asOf)
  const days = { first: BEGINNING, last }
  const rates = createExchange(
    closing
      ? await ratesAsClosed(db, tenantId, closing, currencies, days)
      : await ratesBetween(db, tenantId, currencies, days),
  )
  const older = currencies.filter(code => {
    const day = code === target ? null : (rates(code, target, last)?.day ?? null)
    return day !== null && day < last
  })
  return { ledgers, convert: converter(target, rates), olderRates: older.sort(), figures }
}

const BEGINNING: Day = '0001-01-01'

/** Converts by the rates of these days, and the last ones before. */
export async function openExchange(
  db: Db,
  tenantId: number,
  { currencies, target, first, last }: { currencies: string[]; target: string; first: Day; last: Day },
): Promise<Convert> {
  const rates = await ratesBetween(db, tenantId, [...currencies, target], { first, last })
  return converter(target, createExchange(rates))
}

function converter(target: string, rates: ReturnType<typeof createExchange>): Convert {
  const known = new Map<string, Exchange | null>()
  return (minor, currency, day) => {
    if (minor === 0 || currency === target) return minor
    const key = `${currency} ${day}`
    const rate = known.get(key) ?? rates(currency, target, day)
    known.set(key, rate)
    if (rate) return convertAmount(minor, currency, target, rate)
    const message = `cannot be converted: there is no exchange rate between ${currency} and ${target} for ${day} or an earlier day. Import rates with \`kontor rates import\``
    throw new QuestionError('/currency', message)
  }
}

/** Converts the parts of a sum one after the other, so that they add up to the converted sum. */
export function partConverter(convert: (minor: number) => number): (part: number) => number {
  let [whole, given] = [0, 0]
  return part => {
    whole += part
    const own = convert(whole) - given
    given += own
    return own
  }
}

/** The same for all parts, the largest first: the result does not depend on their order. */
export function convertParts(parts: number[], convert: (minor: number) => number): number[] {
  const converted = partConverter(convert)
  const amounts = parts.map(() => 0)
  for (const i of [...parts.keys()].sort((a, b) => parts[b]! - parts[a]!)) amounts[i] = converted(parts[i]!)
  return amounts
}

/** More movements than this are not sorted by their converted size. */
const MAX_SORTED = 100_000

export async function exchangedLedger(
  db: Db,
  question: ReportQuestion,
  currencies?: Currencies,
): Promise<SeriesLedger> {
  const { currency: target, tenantId } = question
  const { ledgers, convert } = currencies ?? (await openCurrencies(db, question))
  const begin = await firstMonth(db, tenantId)

  async function exchangedTotals(bounds: Date[], dayOf: (i: number) => Day): Promise<AccountTotals[]> {
    const totals = bounds.map(() => ({ mrr: 0, activeAccounts: 0, activeSubscriptions: 0 }))
    for (const { currency, ledger } of ledgers) {
      for (const [i, own] of (await ledger.totalsBefore(bounds)).entries()) {
        totals[i]!.mrr += convert(own.mrr, currency, dayOf(i))
        totals[i]!.activeAccounts += own.activeAccounts
        totals[i]!.activeSubscriptions += own.activeSubscriptions
      }
    }
    return totals
  }

  return {
    async figures(at, then) {
      const figures = await ledgers[0]!.ledger.figures(at, then)
      const unknown = figures.filter(source => source.currency === '')
      return [...mergeSources(ledgers.flatMap(({ currency }) => exchangeFigures(figures, currency))), ...unknown]

      function exchangeFigures(all: SourceFigures[], currency: string): SourceFigures[] {
        const own = all.filter(source => source.currency === currency).sort((a, b) => a.acquisitionId - b.acquisitionId)
        const by = (field: 'mrr' | 'committedMrr' | 'cohortMrr', day: Day) =>
          convertParts(
            own.map(source => source[field]),
            minor => convert(minor, currency, day),
          )
        const [now, opening] = [toDay(at), toDay(then)]
        const [mrr, committed] = [by('mrr', now), by('committedMrr', now)]
        const cohort = by('cohortMrr', opening)
        return own.map((source, i) => ({
          ...{ ...source, currency: target, mrr: mrr[i]!, committedMrr: committed[i]!, cohortMrr: cohort[i]! },
          retentionBaseMrr: convert(source.cohortMrr, currency, now),
        }))
      }
    },
    totalsBefore: bounds => exchangedTotals(bounds, i => dayBefore(bounds[i]!)),
    async openings(spans) {
      const bounds = spans.map(({ from }) => from)
      return (await exchangedTotals(bounds, i => dayBefore(spans[i]!.to))).map(({ mrr }) => mrr)
    },
    async movedWithin(bounds) {
      const grid = dailyGrid(bounds, begin)
      const sums = bounds.slice(1).map((): Moved => ({ count: 0, newAccounts: 0, fx: 0 }))
      for (const { currency, ledger } of ledgers) {
        const totals = await ledger.totalsBefore(grid)
        const moved = await ledger.movedWithin(grid)
        let bucket = 0
        for (const [i, own] of moved.entries()) {
          while (grid[i]! >= bounds[bucket + 1]!) bucket += 1
          addMoved(sums[bucket]!, own, {
            opening: totals[i]!.mrr,
            closing: totals[i + 1]!.mrr,
            before: minor => convert(minor, currency, dayBefore(grid[i]!)),
            now: minor => convert(minor, currency, dayBefore(grid[i + 1]!)),
          })
        }
      }
      return sums
    },
    async retainedWithin(spans) {
      const all: Retained[][] = spans.map(() => [])
      for (const { currency, ledger } of ledgers) {
        for (const [i, own] of (await ledger.retainedWithin(spans)).entries()) {
          const closing = (minor: number) => convert(minor, currency, dayBefore(spans[i]!.to))
          // source by source, like their MRR at the start: what is lost completely leaves 0
          all[i]!.push(
            ...own.map(source => ({ ...source, change: closing(source.change), lostMrr: closing(source.lostMrr) })),
          )
        }
      }
      return all
    },
    async cohortMonths(since, base) {
      const rows = new Map<string, CohortMonth>()
      for (const { currency, ledger } of ledgers) {
        for (const own of await ledger.cohortMonths(since, base)) {
          // the end of a month is the start of the next one
          const day = own.at < question.asOf.getTime() ? dayBefore(new Date(own.at)) : toDay(own.at)
          const closing = (minor: number) => convert(minor, currency, day)
          const key = `${own.cohort} ${String(own.month).padStart(4, '0')}`
          const row = rows.get(key)
          rows.set(key, {
            ...own,
            accounts: own.accounts + (row?.accounts ?? 0),
            startingAccounts: own.startingAccounts + (row?.startingAccounts ?? 0),
            startingMrr: closing(own.startingMrr) + (row?.startingMrr ?? 0),
            mrr: closing(own.mrr) + (row?.mrr ?? 0),
            cappedMrr: closing(own.cappedMrr) + (row?.cappedMrr ?? 0),
          })
        }
      }
      return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    },
    movements: exchangedMovements(ledgers, convert),
  }
}

/** The bounds, and every midnight between them since the first movement: rates change at midnight. */
function dailyGrid(bounds: Date[], begin: Date): Date[] {
  const [first, last] = [bounds[0]!.getTime(), bounds.at(-1)!.getTime()]
  const times = new Set(bounds.map(bound => bound.getTime()))
  for (let at = Math.ceil(Math.max(first, begin.getTime()) / DAY_MS) * DAY_MS; at < last; at += DAY_MS) times.add(at)
  return [...times].sort((a, b) => a - b).map(at => new Date(at))
}

const SIGNS: Record<MovementType, 1 | -1> = { new: 1, expansion: 1, reactivation: 1, contraction: -1, churn: -1 }

/** Converts movements as parts of the total, so that the converted opening plus the movements is the converted closing. */
export function convertMoved(
  opening: number,
  moved: Partial<Record<MovementType, number>>,
  convert: (minor: number) => number,
): Record<MovementType, number> {
  const part = partConverter(convert)
  part(opening)
  const amounts = Object.entries(SIGNS).map(([type, sign]) => {
    const amount = moved[type as MovementType] ?? 0
    return [type, amount === 0 ? 0 : sign * part(sign * amount)]
  })
  return Object.fromEntries(amounts)
}

/**
 * Adds the movements within one day. `before` converts by the rate right before it, `now` by its own: the difference of the
 * opening is `fx`. Without a change of rates it is 0.
 */
function addMoved(
  sums: Moved,
  moved: Moved,
  day: { opening: number; closing: number; before(minor: number): number; now(minor: number): number },
): void {
  sums.count += moved.count
  sums.newAccounts += moved.newAccounts
  let explained = 0
  for (const [name, amount] of Object.entries(convertMoved(day.opening, moved, day.now))) {
    const type = name as MovementType
    if (amount !== 0) sums[type] = (sums[type] ?? 0) + amount
    explained += SIGNS[type] * amount
  }
  sums.fx = (sums.fx ?? 0) + day.now(day.closing) - day.before(day.opening) - explained
}

/** One row per source, whatever the currency. */
function mergeSources(figures: SourceFigures[]): SourceFigures[] {
  return [...Map.groupBy(figures, source => source.acquisitionId).values()].map(own => {
    const [first] = own
    const merged: Record<string, unknown> = { ...first }
    for (const name of Object.keys(first!) as (keyof SourceFigures)[]) {
      if (name !== 'currency' && name !== 'acquisitionId') merged[name] = sum(own, source => source[name] as number)
    }
    return merged as SourceFigures
  })
}

/** Every movement by the rate of its day, in the order of time or of the converted size. */
function exchangedMovements(ledgers: CurrencyLedger[], convert: Convert): SeriesLedger['movements'] {
  type Window = Parameters<SeriesLedger['movements']>[0]
  // a CSV is read in portions
  const known = new Map<string, Promise<ReportList<MovementEntry>>>()

  async function open(window: Window, order: MovementOrder): Promise<ReportList<MovementEntry>> {
    const bounds = [window.since, window.until].map(at => new Date(at.getTime() + 1))
    const lists: ReportList<Placed<MovementEntry>>[] = []
    for (const { currency, ledger } of ledgers) {
      const [{ count }] = (await ledger.movedWithin(bounds)) as [Moved]
      const placed = (entry: MovementEntry) => {
        const [before, after] = [entry.before, entry.after].map(of => convert(of, currency, toDay(entry.occurredAt)))
        const size = order === 'time' ? -entry.occurredAt.getTime() : Math.abs(after! - before!)
        return { size, row: { ...entry, before: before!, after: after! } }
      }
      const rows: ReportList<Placed<MovementEntry>>['rows'] = async slice =>
        (await ledger.movements(window, { slice, count, order })).map(placed)
      lists.push({ count, rows })
    }
    const merged = mergeLists(lists)
    // the order by size depends on the rates, so all are read
    return order === 'time' ? merged : toList(await merged.rows({ offset: 0, limit: merged.count }))
  }

  return async (window, { slice, count, order }) => {
    if (order === 'size' && count > MAX_SORTED)
      throw new QuestionError('/since', `must be later: more than ${MAX_SORTED} movements cannot be sorted by size`)
    const key = `${window.since.getTime()} ${window.until.getTime()} ${order}`
    const list = known.get(key) ?? open(window, order)
    known.set(key, list)
    return (await list).rows(slice)
  }
}

/** A row that has its place among the rows of other lists. */
export type Placed<Row> = { size: number; row: Row }

/** Merges lists, the largest rows first. Each list has this order already; its rows are read once, from the first on. */
export function mergeLists<Row>(lists: ReportList<Placed<Row>>[]): ReportList<Row> {
  const read: Placed<Row>[][] = lists.map(() => [])
  return {
    count: sum(lists, list => list.count),
    async rows({ offset, limit }) {
      const end = offset + limit
      for (const [i, list] of lists.entries()) {
        const known = read[i]!
        const missing = Math.min(end, list.count) - known.length
        if (missing > 0) read[i] = known.concat(await list.rows({ offset: known.length, limit: missing }))
      }
      const first = read.flatMap(known => known.slice(0, end)).sort((a, b) => b.size - a.size)
      return first.slice(offset, end).map(({ row }) => row)
    },
  }
}
