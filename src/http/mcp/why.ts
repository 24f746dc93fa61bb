import { DAY_MS } from '../../domain/time.ts'
import { momentIn } from '../../domain/time-zone.ts'

/** Arguments of a tool as they came: names of query parameters, and what it has of its own. */
export type Arguments = Record<string, unknown>

/** Which movements are behind an answer: parameters of GET /v1/subscriptions/movements. */
export type BehindTheNumber = (args: Arguments, body: Body) => Record<string, string>
type Body = Record<string, unknown>

// The overview tells of 30 days.
const OVERVIEW_MS = 30 * DAY_MS

export const behindOverview: BehindTheNumber = (_args, body) => {
  const until = String(body.as_of)
  return { since: new Date(Date.parse(until) - OVERVIEW_MS).toISOString(), until }
}

/** What moved in the buckets: from the first moment of the first one, which movements are after, to the last of the last. */
export const behindHistory: BehindTheNumber = (_args, body) => {
  const { results, interval, policy, as_of } = body as unknown as History
  const [first, last] = [results[0], results.at(-1)]
  if (!first || !last) return { since: as_of, until: as_of }
  const before = (day: string) => new Date(momentIn(policy.time_zone, day)!.getTime() - 1).toISOString()
  return { since: before(first.date), until: before(nextDay(last.date, interval)) }
}

type History = { results: { date: string }[]; interval: string; policy: { time_zone: string }; as_of: string }

/** The day on which the bucket after this one begins. */
function nextDay(date: string, interval: string): string {
  const next = new Date(`${date}T00:00:00Z`)
  if (interval === 'month') next.setUTCMonth(next.getUTCMonth() + 1)
  else next.setUTCDate(next.getUTCDate() + (interval === 'week' ? 7 : 1))
  return next.toISOString().slice(0, 10)
}

export const behindMovements: BehindTheNumber = (_args, body) => ({
  since: String(body.since),
  until: String(body.until),
})

type Movement = {
  customer: string
  customer_name: string | null
  movement_type: string
  mrr_delta: number
  cause: string
  occurred_at: string
}
type MovementPage = { results: Movement[]; pages: number; count: number; totals: unknown }

/** What an account did to MRR. */
type AccountBehind = {
  customer: string
  customer_name: string | null
  mrr_delta: number
  movements: Pick<Movement, 'movement_type' | 'mrr_delta' | 'cause' | 'occurred_at'>[]
}

export type Why = {
  since: string
  until: string
  totals: unknown
  accounts: AccountBehind[]
  /** False: there are more movements than were read. */
  complete: boolean
}

const MAX_PAGES = 10
const MAX_ACCOUNTS = 100

/** Sums movements up by account, those that moved most first. Null: they cannot be read. */
export async function accountsBehind(
  window: { since: string; until: string },
  read: (page: number) => Promise<MovementPage | null>,
): Promise<Why | null> {
  const accounts = new Map<string, AccountBehind>()
  let last: MovementPage | null = null
  for (let page = 1; page <= Math.min(last?.pages ?? 1, MAX_PAGES); page++) {
    last = await read(page)
    if (last === null) return null
    for (const { customer, customer_name, ...movement } of last.results) {
      const account = accounts.get(customer) ?? { customer, customer_name, mrr_delta: 0, movements: [] }
      accounts.set(customer, account)
      const { movement_type, mrr_delta, cause, occurred_at } = movement
      account.mrr_delta = Math.round((account.mrr_delta + mrr_delta) * 1e6) / 1e6
      account.movements.push({ movement_type, mrr_delta, cause, occurred_at })
    }
  }
  const sorted = [...accounts.values()].sort((a, b) => Math.abs(b.mrr_delta) - Math.abs(a.mrr_delta))
  const complete = (last?.pages ?? 0) <= MAX_PAGES && sorted.length <= MAX_ACCOUNTS
  return { ...window, totals: last?.totals ?? null, accounts: sorted.slice(0, MAX_ACCOUNTS), complete }
}
