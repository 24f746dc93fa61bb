import { type ChannelRule, channelOf, OTHER_CHANNEL } from '../domain/customers/channels.ts'
import { toMajor } from '../domain/money.ts'
import type { Db } from '../postgres/database.ts'
import { customersByChannel, visitorsByOrigin } from '../store/customers/channels.ts'

export type Channel = {
  /** Null: nothing says where these people came from. */
  channel: string | null
  visitors: number
  identified: number
  trials: number
  customers: number
  /** By currency, in major units. */
  revenue: Record<string, number>
  mrr: Record<string, number>
}

/** People who came in the window, by channel: the channel with the most visitors first, and people without one last. */
export async function channelReport(
  db: Db,
  tenantId: number,
  window: { since: Date; until: Date },
  rules: readonly ChannelRule[],
): Promise<Channel[]> {
  const channels = new Map<string | null, Channel>()
  const at = (channel: string | null): Channel => {
    const known = channels.get(channel)
    if (known) return known
    const added = { channel, visitors: 0, identified: 0, trials: 0, customers: 0, revenue: {}, mrr: {} }
    channels.set(channel, added)
    return added
  }
  for (const { channel, people, visitors, trials, customers, amounts } of await customersByChannel(
    db,
    tenantId,
    window,
  )) {
    const row = at(channel)
    Object.assign(row, { visitors, identified: people, trials, customers })
    const sums: Record<string, { revenue: string; mrr: number }> = JSON.parse(amounts ?? '{}')
    for (const [currency, { revenue, mrr }] of Object.entries(sums)) {
      if (Number(revenue) !== 0) row.revenue[currency] = Number(revenue)
      if (mrr !== 0) row.mrr[currency] = toMajor(mrr, currency)
    }
  }
  const byCampaign = rules.some(({ campaign }) => campaign !== undefined)
  const origins = await visitorsByOrigin(db, tenantId, window, byCampaign)
  for (const { visitors, identified, ...origin } of origins) {
    const row = at(origin.source === '' ? OTHER_CHANNEL : channelOf(origin, rules))
    row.visitors += visitors
    row.identified += identified
  }
  const rank = ({ channel, visitors }: Channel) => (channel === null ? -1 : visitors)
  return [...channels.values()].sort((a, b) => rank(b) - rank(a) || String(a.channel).localeCompare(String(b.channel)))
}
