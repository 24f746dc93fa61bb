import type { Currency, RecordWrite } from './catalog.ts'
import { type Arrival, newVisitorArrival } from './channels.ts'
import { randomFor } from './random.ts'
import { busyMoment, DAY_MS, isoTime, numbered, randomMoment, type Year } from './year.ts'

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
