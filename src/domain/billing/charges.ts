/** When a subscription will be charged, and how much. */

import { divideHalfUp } from '../money.ts'
import { addIntervals, anchorOf, termsBetween } from './calendar.ts'
import { discountChanges, isInterval, type Line, type LinesAt } from './pricing.ts'
import type { Instant, Interval, Item, SubscriptionStatus, SubscriptionVersion } from './types.ts'

/**
 * Charges that recur together: on `anchorAt` + n × `intervalCount` × `interval` for whole n, counted from the anchor
 * each time (so the 31st comes back after February), from `firstAt` on and before `endsAt`.
 */
export type ChargeCycle = {
  interval: Interval
  intervalCount: number
  anchorAt: Instant
  firstAt: Instant
  endsAt: Instant | null
  /** The charge on `firstAt` ends a trial. */
  trialConversion: boolean
  includesMetered: boolean
  /** What a charge before `until` comes to, without tax and usage; in order, the last one open-ended; null: unknown. */
  amounts: { until: Instant | null; amount: number | null }[]
}

export type Charge = {
  billsAt: Instant
  amount: number | null
  trialConversion: boolean
  includesMetered: boolean
}

/** Items that are charged together, by their place. */
type Group = { first: Instant; places: number[] }

/** Charges that `version` leads to when it holds, with `status`, from `at` on. */
export function chargeCycles(
  version: SubscriptionVersion,
  status: SubscriptionStatus,
  at: Instant,
  endsAt: Instant | null,
  linesAt: LinesAt,
): ChargeCycle[] {
  if (version.currency === null || !(status === 'active' || status === 'past_due' || status === 'trialing'))
    return []
  const groups = new Map<string, Group>()
  for (const [place, item] of version.items.entries()) {
    const first = firstCharge(version, item, status, at)
    if (first === null || (endsAt !== null && first >= endsAt)) continue
    const key = `${item.interval} ${item.intervalCount} ${first}`
    const group = groups.get(key)
    if (group) group.places.push(place)
    else groups.set(key, { first, places: [place] })
  }
  const ends = discountChanges(version).filter(end => endsAt === null || end < endsAt)
  return [...groups.values()]
    .map(group => ({
      ...cycleOf(version, status, group),
      endsAt,
      amounts: amountsOf(group, ends, linesAt),
    }))
    .filter(isWorthAnInvoice)
}

function firstCharge(
  version: SubscriptionVersion,
  item: Item,
  status: SubscriptionStatus,
  at: Instant,
): Instant | null {
  if (!isInterval(item.interval) || item.intervalCount === null || item.usageType === 'one_time') return null
  const periodEnd = item.currentPeriodEnd ?? version.currentPeriodEnd
  if (status === 'trialing') return version.trialEnd ?? periodEnd
  if (version.startedAt !== null && version.startedAt > at) return version.startedAt
  if (periodEnd !== null) return periodEnd
  return version.startedAt && addIntervals(version.startedAt, item.interval, item.intervalCount)
}

function cycleOf(
  version: SubscriptionVersion,
  status: SubscriptionStatus,
  { first, places }: Group,
): Omit<ChargeCycle, 'endsAt' | 'amounts'> {
  const item = version.items[places[0]!]!
  const interval = item.interval as Interval
  const intervalCount = item.intervalCount!
  const trialConversion = status === 'trialing'
  const hints = [
    version.billingAnchor,
    item.currentPeriodStart,
    version.currentPeriodStart,
    version.startedAt,
  ]
  return {
    interval,
    intervalCount,
    anchorAt: trialConversion ? first : anchorOf(first, interval, intervalCount, hints),
    firstAt: first,
    trialConversion,
    includesMetered: places.some(place => version.items[place]!.usageType === 'metered'),
  }
}

function amountsOf({ first, places }: Group, ends: Instant[], linesAt: LinesAt): ChargeCycle['amounts'] {
  const changes = ends.filter(end => end > first)
  return [first, ...changes].map((from, i) => {
    const lines = linesAt(from)
    return { until: changes[i] ?? null, amount: chargedAmount(places.map(place => lines[place]!)) }
  })
}

/** The sum of what is known; null when an amount is due and none is known. */
function chargedAmount(lines: Line[]): number | null {
  const licensed = lines.filter(line => line.fault !== 'metered_usage')
  const known = licensed.filter(line => line.net !== null)
  if (known.length === 0 && licensed.length > 0) return null
  return known.reduce((sum, line) => sum + Number(divideHalfUp(line.net!.n, line.net!.d)), 0)
}

function isWorthAnInvoice(cycle: ChargeCycle): boolean {
  return cycle.includesMetered || cycle.amounts.some(({ amount }) => amount !== 0)
}

/** Charges expected after `after` and up to `until`, in order; cycles that meet on an instant are one charge. */
export function chargesBetween(cycles: ChargeCycle[], after: Instant, until: Instant): Charge[] {
  const charges = new Map<Instant, Charge>()
  for (const cycle of cycles) {
    for (const charge of chargesOf(cycle, after, until)) {
      const met = charges.get(charge.billsAt)
      charges.set(charge.billsAt, met ? together(met, charge) : charge)
    }
  }
  return [...charges.values()].sort((a, b) => a.billsAt - b.billsAt)
}

function* chargesOf(cycle: ChargeCycle, after: Instant, until: Instant): Generator<Charge> {
  const last = cycle.endsAt === null ? until : Math.min(until, cycle.endsAt - 1)
  const from = Math.max(after + 1, cycle.firstAt)
  for (let n = termsBetween(cycle.anchorAt, from, cycle.interval, cycle.intervalCount); ; n++) {
    const billsAt = addIntervals(cycle.anchorAt, cycle.interval, n * cycle.intervalCount)
    if (billsAt > last) return
    if (billsAt < from) continue
    const amount = cycle.amounts.find(entry => entry.until === null || billsAt < entry.until)?.amount ?? null
    if (amount === 0 && !cycle.includesMetered) continue
    yield {
      billsAt,
      amount,
      trialConversion: cycle.trialConversion && billsAt === cycle.firstAt,
      includesMetered: cycle.includesMetered,
    }
  }
}

function together(a: Charge, b: Charge): Charge {
  return {
    billsAt: a.billsAt,
    amount: a.amount === null || b.amount === null ? (a.amount ?? b.amount) : a.amount + b.amount,
    trialConversion: a.trialConversion || b.trialConversion,
    includesMetered: a.includesMetered || b.includesMetered,
  }
}

/** The next expected charge, if there is one within a term. */
export function nextCharge(cycles: ChargeCycle[], after: Instant): Charge | null {
  const firsts = cycles.flatMap(cycle => {
    const from = Math.max(after, cycle.firstAt)
    const until = addIntervals(from, cycle.interval, cycle.intervalCount)
    return chargesBetween([cycle], after, until).slice(0, 1)
  })
  if (firsts.length === 0) return null
  const billsAt = Math.min(...firsts.map(charge => charge.billsAt))
  return firsts.filter(charge => charge.billsAt === billsAt).reduce(together)
}
