import { type MovementType, netWithinDays } from '../domain/billing/movements.ts'
import { dayIn } from '../domain/time-zone.ts'
import type { MovementEntry } from '../store/reports/movements.ts'
import type { MovementSums } from '../store/reports/totals.ts'
import type { Ledger } from './ledger.ts'
import { inOrder } from './movement-order.ts'
import { sum } from './question.ts'

type Window = { since: Date; until: Date }

/** Another ledger with the movements of each day netted; everything else is as it is there. */
export function nettedLedger(ledger: Ledger, zone: string): Ledger {
  const dayOf = daysOf(zone)
  const known = new Map<string, Promise<MovementEntry[]>>()

  /** A report asks for one window several times. */
  function within(window: Window): Promise<MovementEntry[]> {
    const key = `${window.since.getTime()} ${window.until.getTime()}`
    const netted = known.get(key) ?? read(window)
    known.set(key, netted)
    return netted
  }

  async function read(window: Window): Promise<MovementEntry[]> {
    const { sums } = await ledger.moved(window.since, window.until)
    const count = sum(sums, moved => moved.count)
    const all = { slice: { offset: 0, limit: count }, count, order: 'time' } as const
    return netWithinDays(await ledger.movements(window, all), dayOf)
  }

  return {
    ...ledger,
    async moved(since, until) {
      return { ...(await ledger.moved(since, until)), sums: sumsOf(await within({ since, until })) }
    },
    // buckets are made of whole days
    async movedWithin(bounds) {
      const before = (at: Date) => new Date(at.getTime() - 1)
      const movements = await within({ since: before(bounds[0]!), until: before(bounds.at(-1)!) })
      return bounds.slice(1).map((end, i) => {
        const own = movements.filter(({ occurredAt }) => occurredAt >= bounds[i]! && occurredAt < end)
        return Object.fromEntries(sumsOf(own).map(({ type, amount }) => [type, amount]))
      })
    },
    async movements(window, { slice: { offset, limit }, order }) {
      return inOrder(await within(window), order).slice(offset, offset + limit)
    },
    async movementsOf(account) {
      return netWithinDays(await ledger.movementsOf(account), dayOf)
    },
  }
}

function sumsOf(movements: MovementEntry[]): MovementSums {
  return [...Map.groupBy(movements, ({ type }) => type)].map(
    ([type, own]: [MovementType, MovementEntry[]]) => ({
      type,
      amount: sum(own, ({ before, after }) => Math.abs(after - before)),
      count: own.length,
    }),
  )
}

const QUARTER_MS = 900_000

/** Days begin on a quarter of an hour: asking the calendar takes 30 µs, and a year has many movements. */
function daysOf(zone: string): (at: Date) => string {
  const days = new Map<number, string>()
  return at => {
    const quarter = Math.floor(at.getTime() / QUARTER_MS)
    const day = days.get(quarter) ?? dayIn(zone, quarter * QUARTER_MS)
    days.set(quarter, day)
    return day
  }
}
