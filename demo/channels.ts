import type { Random } from './random.ts'
import { monthName } from './year.ts'

/** How a visitor arrived, from the page's URL and the referrer. */
export type Arrival = {
  channel: string
  utm: { source: string; medium: string; campaign: string } | null
  referrer: string | null
}

type Channel = (at: number, random: Random) => Omit<Arrival, 'channel'>

const CHANNELS = {
  newsletter: at => ({
    utm: { source: 'newsletter', medium: 'email', campaign: `${monthName(at)}-roast` },
    referrer: null,
  }),
  search_ads: (_at, random) => ({
    utm: {
      source: 'google',
      medium: 'cpc',
      campaign: random.pick(['brand', 'coffee-subscription', 'office-coffee']),
    },
    referrer: 'https://www.google.com/',
  }),
  search: () => ({ utm: null, referrer: 'https://www.google.com/' }),
  instagram: (at, random) => ({
    utm: {
      source: 'instagram',
      medium: 'social',
      campaign: random.pick(['reels', 'stories', `${monthName(at)}-drop`]),
    },
    referrer: 'https://l.instagram.com/',
  }),
  podcast: (_at, random) => ({
    utm: {
      source: 'second-cup-podcast',
      medium: 'podcast',
      campaign: random.pick(['episode-41', 'episode-47', 'episode-52']),
    },
    referrer: null,
  }),
  friend: () => ({ utm: { source: 'friends', medium: 'referral', campaign: 'give-10' }, referrer: null }),
  blog: () => ({ utm: null, referrer: 'https://www.brewjournal.example/best-coffee-subscriptions' }),
  direct: () => ({ utm: null, referrer: null }),
} satisfies Record<string, Channel>

type ChannelName = keyof typeof CHANNELS

/** Channels of new visitors. */
const NEW_VISITORS: [ChannelName, number][] = [
  ['search', 30],
  ['search_ads', 18],
  ['instagram', 20],
  ['podcast', 7],
  ['blog', 8],
  ['friend', 3],
  ['newsletter', 2],
  ['direct', 12],
]

/** Channels of customers. */
const CUSTOMERS: [ChannelName, number][] = [
  ['newsletter', 40],
  ['direct', 35],
  ['search', 15],
  ['instagram', 10],
]

export function newVisitorArrival(at: number, random: Random): Arrival {
  return arrival(random.weighted(NEW_VISITORS), at, random)
}

export function customerArrival(at: number, random: Random): Arrival {
  return arrival(random.weighted(CUSTOMERS), at, random)
}

function arrival(channel: ChannelName, at: number, random: Random): Arrival {
  return { channel, ...CHANNELS[channel](at, random) }
}

/** The URL of the landing page with campaign parameters. */
export function landingUrl(path: string, { utm }: Arrival): string {
  const url = `https://shop.example${path}`
  if (utm === null) return url
  return `${url}?utm_source=${utm.source}&utm_medium=${utm.medium}&utm_campaign=${utm.campaign}`
}
