/**
 * Recognized revenue: the amounts of invoices without tax, spread evenly over the days of their service periods. Days are
 * numbers of days since 1970, in the time zone of the policy. Amounts are in minor units.
 */

import { isDeepStrictEqual } from 'node:util'
import { divideHalfUp } from '../money.ts'
import { DAY_MS } from '../time.ts'
import { dayIn } from '../time-zone.ts'
import { type InvoiceState, invoicedAt } from './cash.ts'
import type { CreditNote, Instant, ServicePeriod } from './types.ts'

/** The revenue of an amount for [startsOn, endsOn), while the invoice is known in this form. */
export type RevenueLine = {
  /** The number of the line. */
  place: number
  from: Instant
  to: Instant | null
  currency: string
  /** Null: of the invoice itself. */
  creditNoteId: string | null
  invoicedOn: number
  startsOn: number
  endsOn: number
  amount: number
}

type Line = Pick<RevenueLine, 'startsOn' | 'endsOn' | 'amount'>

/** The number of the day in the time zone. */
function dayNumber(zone: string, at: Instant | Date): number {
  return Date.parse(dayIn(zone, at)) / DAY_MS
}

/** Recognized before `day`. Rounded half up for the sum of all days, so that the whole period adds up to the amount. */
function recognizedBefore({ startsOn, endsOn, amount }: Line, day: number): number {
  const days = Math.min(Math.max(day - startsOn, 0), endsOn - startsOn)
  return Number(divideHalfUp(BigInt(amount) * BigInt(days), BigInt(endsOn - startsOn)))
}

/** Splits an amount in proportion to weights of 0 or more. The parts add up to it. All weights 0: all parts 0. */
function splitAmount(amount: number, weights: number[]): number[] {
  const whole = weights.reduce((sum, weight) => sum + BigInt(weight), 0n)
  if (whole === 0n) return weights.map(() => 0)
  let [weight, given] = [0n, 0n]
  return weights.map(own => {
    weight += BigInt(own)
    const upTo = divideHalfUp(BigInt(amount) * weight, whole)
    const part = upTo - given
    given = upTo
    return Number(part)
  })
}

/** An invoice as far as revenue depends on it. */
type Invoiced = { currency: string; on: number; lines: Line[] }

/**
 * `states`: of one invoice, in order. Draft, void and uncollectible invoices are not revenue. A credit note first cancels
 * what is not yet recognized on its day, then reduces the revenue of that day.
 */
export function revenueLines(states: InvoiceState[], credits: CreditNote[], zone: string): RevenueLine[] {
  const day = (at: Instant) => dayNumber(zone, at)
  const spans: { from: Instant; to: Instant | null; invoiced: Invoiced | null }[] = []
  for (const [i, state] of states.entries()) {
    const invoiced = readInvoiced(state, knownServices(states, i), day)
    const last = spans.at(-1)
    if (last && isDeepStrictEqual(last.invoiced, invoiced)) last.to = state.to
    else spans.push({ from: state.from, to: state.to, invoiced })
  }
  return spans.flatMap(({ from, to, invoiced }) => {
    if (invoiced === null) return []
    const { currency, on, lines } = invoiced
    const rows = lines.map(line => ({
      ...line,
      from,
      to,
      currency,
      creditNoteId: null as string | null,
      invoicedOn: on,
    }))
    const own = credits.filter(note => note.counts && note.currency === currency && note.amount && !isAfter(note, to))
    for (const note of own.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))) {
      const noted = Math.max(on, day(note.createdAt))
      const credited = creditLines(note.amount!, noted, rows)
      const known = { from: Math.max(from, note.createdAt), to, currency, creditNoteId: note.id, invoicedOn: noted }
      rows.push(...credited.map(line => ({ ...line, ...known })))
    }
    return rows.map((row, place) => ({ ...row, place }))
  })
}

function isAfter({ createdAt }: CreditNote, to: Instant | null): boolean {
  return to !== null && createdAt >= to
}

/** Some events of an invoice omit its lines: the last known ones remain valid. */
function knownServices(states: InvoiceState[], i: number): ServicePeriod[] {
  const known = states.slice(0, i + 1).findLast(state => state.services) ?? states.find(state => state.services)
  return known?.services ?? []
}

function readInvoiced(state: InvoiceState, services: ServicePeriod[], day: (at: Instant) => number): Invoiced | null {
  const at = state.status === 'uncollectible' ? null : invoicedAt(state)
  if (at === null || state.currency === null) return null
  const on = day(at)
  const net = state.total - (state.tax ?? 0)
  // what the lines do not explain, such as a discount on the whole invoice, belongs to all of them
  const rest = net - services.reduce((sum, { amount }) => sum + amount, 0)
  const shares = splitAmount(
    rest,
    services.map(({ amount }) => Math.abs(amount)),
  )
  const lines = new Map<string, Line>()
  const add = (amount: number, startsOn: number, endsOn: number) => {
    const key = `${startsOn} ${endsOn}`
    lines.set(key, { startsOn, endsOn, amount: amount + (lines.get(key)?.amount ?? 0) })
  }
  for (const [i, { amount, from, to }] of services.entries()) {
    const startsOn = from === null ? on : day(from)
    // an end of 23:59:59 includes that day
    const endsOn = to === null ? startsOn + 1 : Math.max(startsOn + 1, day(to + 1000))
    add(amount + shares[i]!, startsOn, endsOn)
  }
  if (shares.every(share => share === 0)) add(rest, on, on + 1)
  return { currency: state.currency, on, lines: [...lines.values()].filter(line => line.amount !== 0) }
}

/** The lines that reduce `rows`, the earlier lines of the invoice, by a credit note of this day. */
function creditLines(amount: number, on: number, rows: (Line & { creditNoteId: string | null })[]): Line[] {
  const open = new Map<string, { startsOn: number; endsOn: number; amount: number }>()
  for (const row of rows) {
    if (row.endsOn <= on) continue
    const startsOn = Math.max(row.startsOn, on)
    const key = `${startsOn} ${row.endsOn}`
    const left = row.amount - recognizedBefore(row, on) + (open.get(key)?.amount ?? 0)
    open.set(key, { startsOn, endsOn: row.endsOn, amount: left })
  }
  const periods = [...open.values()].filter(period => period.amount > 0)
  const whole = periods.reduce((sum, period) => sum + period.amount, 0)
  const canceled = Math.min(amount, whole)
  const parts = splitAmount(
    canceled,
    periods.map(period => period.amount),
  )
  const lines = periods.map(({ startsOn, endsOn }, i) => ({ startsOn, endsOn, amount: -parts[i]! }))
  const rest = { startsOn: on, endsOn: on + 1, amount: canceled - amount }
  return [...lines, rest].filter(line => line.amount !== 0)
}
