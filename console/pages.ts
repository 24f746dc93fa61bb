import type { PageDefinition } from './page-definition.ts'
import type { RouteName } from './router.ts'

export type Section =
  | 'overview'
  | 'events'
  | 'conversions'
  | 'records'
  | 'subscriptions'
  | 'people'
  | 'privacy'
  | 'connect'
  | 'sources'
  | 'destinations'
  | 'keys'
  | 'tenants'
  | 'issues'
  | 'alerts'
  | 'dead-letters'
  | 'audit'

type Entry<Name extends RouteName> = {
  /** What is marked in the menu. */
  section: Section
  /** For as long as nothing better is known. */
  title: string
  isAdministration?: true
  /** Modules come when first opened. */
  load(): Promise<{ page: PageDefinition<Name> }>
}

/** The page of every route. */
export const pages: { [Name in RouteName]: Entry<Name> } = {
  overview: {
    section: 'overview',
    title: 'Overview',
    load: () => import('./pages/overview/overview.ts'),
  },
  events: {
    section: 'events',
    title: 'Events',
    load: () => import('./pages/events/events.ts'),
  },
  eventLookup: {
    section: 'events',
    title: 'Event lookup',
    load: () => import('./pages/events/lookup.ts'),
  },
  event: {
    section: 'events',
    title: 'Event',
    load: () => import('./pages/events/event.ts'),
  },
  conversions: {
    section: 'conversions',
    title: 'Conversions',
    load: () => import('./pages/conversions/conversions.ts'),
  },
  records: {
    section: 'records',
    title: 'Records',
    load: () => import('./pages/records/records.ts'),
  },
  record: {
    section: 'records',
    title: 'Record',
    load: () => import('./pages/records/record.ts'),
  },
  subscriptions: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/overview.ts'),
  },
  movements: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/movements.ts'),
  },
  attention: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/attention.ts'),
  },
  acquisition: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/acquisition.ts'),
  },
  cohorts: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/cohorts.ts'),
  },
  excluded: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: () => import('./pages/subscriptions/excluded.ts'),
  },
  account: {
    section: 'subscriptions',
    title: 'Account',
    load: () => import('./pages/subscriptions/account.ts'),
  },
  people: {
    section: 'people',
    title: 'People',
    isAdministration: true,
    load: () => import('./pages/people/people.ts'),
  },
  person: {
    section: 'people',
    title: 'Person',
    isAdministration: true,
    load: () => import('./pages/people/person.ts'),
  },
  privacy: {
    section: 'privacy',
    title: 'Privacy',
    isAdministration: true,
    load: () => import('./pages/privacy/privacy.ts'),
  },
  connect: {
    section: 'connect',
    title: 'Connect',
    isAdministration: true,
    load: () => import('./pages/connect/connect.ts'),
  },
  sources: {
    section: 'sources',
    title: 'Sources',
    isAdministration: true,
    load: () => import('./pages/sources/sources.ts'),
  },
  newSource: {
    section: 'sources',
    title: 'New source',
    isAdministration: true,
    load: () => import('./pages/sources/new-source.ts'),
  },
  source: {
    section: 'sources',
    title: 'Source',
    isAdministration: true,
    load: () => import('./pages/sources/source.ts'),
  },
  destinations: {
    section: 'destinations',
    title: 'Destinations',
    isAdministration: true,
    load: () => import('./pages/destinations/destinations.ts'),
  },
  newDestination: {
    section: 'destinations',
    title: 'New destination',
    isAdministration: true,
    load: () => import('./pages/destinations/new-destination.ts'),
  },
  destination: {
    section: 'destinations',
    title: 'Destination',
    isAdministration: true,
    load: () => import('./pages/destinations/destination.ts'),
  },
  keys: {
    section: 'keys',
    title: 'Keys',
    isAdministration: true,
    load: () => import('./pages/keys/keys.ts'),
  },
  tenants: {
    section: 'tenants',
    title: 'Tenants',
    isAdministration: true,
    load: () => import('./pages/tenants/tenants.ts'),
  },
  issues: {
    section: 'issues',
    title: 'Issues',
    isAdministration: true,
    load: () => import('./pages/issues/issues.ts'),
  },
  alerts: {
    section: 'alerts',
    title: 'Alerts',
    isAdministration: true,
    load: () => import('./pages/alerts/alerts.ts'),
  },
  deadLetters: {
    section: 'dead-letters',
    title: 'Dead letters',
    isAdministration: true,
    load: () => import('./pages/dead-letters/dead-letters.ts'),
  },
  deadLetter: {
    section: 'dead-letters',
    title: 'Dead letter',
    isAdministration: true,
    load: () => import('./pages/dead-letters/dead-letter.ts'),
  },
  audit: {
    section: 'audit',
    title: 'Audit log',
    isAdministration: true,
    load: () => import('./pages/audit/audit.ts'),
  },
}
