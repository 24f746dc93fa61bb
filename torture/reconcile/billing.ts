import type { Shop } from '../deployment/shops.ts'
import { type Read, reader } from './api.ts'
import type { Outcome } from './outcomes.ts'
import type { Problem } from './problems.ts'

type Report = Record<string, unknown> & { mrr: number }

/** Checks that the reports equal the sum of the latest acknowledged states. */
export async function checkBilling(url: string, shop: Shop, outcomes: Outcome[]): Promise<Problem[]> {
  const read = reader(url, shop.privateKey)
  const expected = expectedCents(outcomes)
  if (expected === null) return []
  const overview = (await read('/v1/subscriptions/overview?currency=EUR')).body as Report
  const accounts = await sumOfPages(read, '/v1/subscriptions/overview?currency=EUR', 'accounts', 'page')
  const sources = await sumOfPages(read, '/v1/subscriptions/acquisition?currency=EUR', 'sources', 'page')
  const moved = overview.movements as Record<string, number>
  const closing =
    moved.opening_mrr! + moved.new! + moved.expansion! + moved.reactivation! - moved.contraction! - moved.churn!
  const sums = {
    mrr: overview.mrr,
    'sum of accounts': accounts,
    'sum of acquisition sources': sources,
    'closing MRR': moved.closing_mrr!,
    'opening MRR and movements': closing,
  }
  return Object.entries(sums).flatMap(([what, value]) => {
    const cents = Math.round(value * 100)
    if (cents === expected) return []
    return [
      {
        kind: 'wrong' as const,
        words: `${shop.tenant} ${what}: ${cents} cents, expected ${expected}`,
        at: null,
      },
    ]
  })
}

/** Null if a latest state is unclear. */
function expectedCents(outcomes: Outcome[]): number | null {
  const newest = new Map<string, Outcome>()
  for (const outcome of outcomes) {
    const own = outcome.item.subscription
    if (own && own.version > (newest.get(own.id)?.item.subscription?.version ?? 0)) newest.set(own.id, outcome)
  }
  const all = [...newest.values()]
  if (all.some(({ acknowledgedAt }) => acknowledgedAt === null)) return null
  return all.reduce((sum, { item }) => sum + item.subscription!.cents, 0)
}

async function sumOfPages(read: Read, path: string, list: string, parameter: string): Promise<number> {
  let sum = 0
  for (let page = 1; ; page++) {
    const { body } = await read(`${path}&page_size=100&${parameter}=${page}`)
    const { results, pages } = body[list] as { results: { mrr: number }[]; pages: number }
    sum += results.reduce((total, { mrr }) => total + mrr, 0)
    if (page >= pages) return Math.round(sum * 100) / 100
  }
}
