import type { Currency, RecordWrite } from './catalog.ts'
import { type Random, randomFor } from './random.ts'
import { busyMoment, DAY_MS, isoTime, monthName, numbered, randomMoment, type Year } from './year.ts'
/** A customer. */
export type Person = {
  id: string
  email: string
  firstName: string
  lastName: string
  company: string | null
  country: string
  city: string
  currency: Currency
  /** Visitor ids of their devices; the device of the first visit comes first. */
  visitors: string[]
  /** How they arrived at the first visit. */
  arrival: Arrival
  firstSeenAt: number
  signedUpAt: number
  readsNewsletter: boolean
  /** Never visits the site: orders by telephone. */
  isOffline: boolean
}

const FIRST_NAMES =
  'Anna Ben Clara David Elif Finn Greta Hannah Ivan Jonas Katharina Lena Mateo Nora Oskar Paula Quentin Rosa Samir Tilda Uwe Vera Wout Yara Zoe Aisha Bruno Carla Dario Emma Felix Giulia Henrik Ines Jakub Kim Luca Mia Noah Olivia Pablo Ravi Sofia Tom'.split(
    ' ',
  )
const LAST_NAMES =
  'Adler Bauer Costa Dubois Eriksen Fischer Garcia Hoffmann Ivanova Jansen Keller Lindqvist Moreau Nowak Okafor Petrov Quinn Richter Schmidt Thomsen Ullmann Vogel Weber Young Zimmermann Andersson Brandt Colombo Demir Esposito Ferrari Gruber Haas Iversen Janssen Kowalski Larsen Meyer Nielsen Oliveira'.split(
    ' ',
  )
const COMPANY_KINDS = ['Studio', 'Architects', 'Books', 'Bikes', 'Legal', 'Labs', 'Dental', 'Coworking']

const LOCATIONS: [{ country: string; city: string; currency: Currency }, number][] = [
  [{ country: 'DE', city: 'Hamburg', currency: 'EUR' }, 26],
  [{ country: 'DE', city: 'Berlin', currency: 'EUR' }, 20],
  [{ country: 'AT', city: 'Wien', currency: 'EUR' }, 12],
  [{ country: 'NL', city: 'Utrecht', currency: 'EUR' }, 12],
  [{ country: 'FR', city: 'Lyon', currency: 'EUR' }, 10],
  [{ country: 'IE', city: 'Cork', currency: 'EUR' }, 6],
  [{ country: 'US', city: 'Portland', currency: 'USD' }, 9],
  [{ country: 'US', city: 'Boston', currency: 'USD' }, 5],
]

const PEOPLE_PER_SCALE = 300
/** The share of people who sign up in the first weeks, from the waiting list. */
const OPENING_SHARE = 0.13
const OFFLINE_SHARE = 0.07

export function generatePeople(year: Year): Person[] {
  return Array.from({ length: Math.round(PEOPLE_PER_SCALE * year.scale) }, (_, i) => personAt(i + 1, year))
}

function personAt(number: number, year: Year): Person {
  const random = randomFor(year.label, 'person', number)
  const firstName = random.pick(FIRST_NAMES)
  const lastName = random.pick(LAST_NAMES)
  const signedUpAt = random.chance(OPENING_SHARE)
    ? randomMoment(year.start + random.int(1, 25) * DAY_MS, random)
    : busyMoment(year.start + 2 * DAY_MS, year, random)
  const hesitationMs = random.chance(0.5) ? 0 : random.int(1, 12) * DAY_MS
  const firstSeenAt = Math.max(year.start, signedUpAt - hesitationMs - random.int(2, 30) * 60_000)
  const id = `${year.label}-cus-${numbered(number, 4)}`
  const visitor = `${year.label}-v-${numbered(number, 4)}`
  const mailHost = year.label === 'd1' ? 'example.com' : `${year.label}.example.com`
  return {
    id,
    email: `${firstName}.${lastName}.${number}@${mailHost}`.toLowerCase(),
    firstName,
    lastName,
    company: random.chance(0.15) ? `${lastName} ${random.pick(COMPANY_KINDS)}` : null,
    ...random.weighted(LOCATIONS),
    visitors: random.chance(0.35) ? [visitor, `${visitor}-phone`] : [visitor],
    arrival: newVisitorArrival(firstSeenAt, random),
    firstSeenAt,
    signedUpAt,
    readsNewsletter: random.chance(0.6),
    isOffline: random.chance(OFFLINE_SHARE),
  }
}

export function contactRecord(person: Person): RecordWrite {
  const { id, email, firstName, lastName, company, country, city, signedUpAt, isOffline } = person
  return {
    entityType: 'contact',
    id,
    sourceUpdatedAt: isoTime(signedUpAt),
    idempotencyKey: `${id}-1`,
    data: {
      email,
      // connects the user id of the site with this contact, because events alone do not merge two known people
      ...(!isOffline && { userId: id }),
      firstName,
      lastName,
      ...(company !== null && { company }),
      country,
      city,
      newsletter: person.readsNewsletter,
      created_at: isoTime(signedUpAt),
    },
  }
}

export function fullName({ firstName, lastName }: Person): string {
  return `${firstName} ${lastName}`
}

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
