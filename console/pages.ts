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
  | 'users'
  | 'tenants'
  | 'issues'
  | 'alerts'
  | 'dead-letters'
  | 'audit'

type Entry<Name extends RouteName> = {
  /** The menu entry to mark. */
  section: Section
  /** Used until the page sets its own title. */
  title: string
  isAdministration?: true
  /** Modules are loaded when first opened. */
  load(): Promise<PageDefinition<Name>>
}

/** The page of every route. */
export const pages: { [Name in RouteName]: Entry<Name> } = {
  overview: {
    section: 'overview',
    title: 'Overview',
    load: async () => (await import('./pages/overview.ts')).overviewPage,
  },
  events: {
    section: 'events',
    title: 'Events',
    load: async () => (await import('./pages/events.ts')).eventsPage,
  },
  eventLookup: {
    section: 'events',
    title: 'Event lookup',
    load: async () => (await import('./pages/event.ts')).eventLookupPage,
  },
  event: {
    section: 'events',
    title: 'Event',
    load: async () => (await import('./pages/event.ts')).eventPage,
  },
  conversions: {
    section: 'conversions',
    title: 'Conversions',
    load: async () => (await import('./pages/conversions.ts')).conversionsPage,
  },
  records: {
    section: 'records',
    title: 'Records',
    load: async () => (await import('./pages/records.ts')).recordsPage,
  },
  record: {
    section: 'records',
    title: 'Record',
    load: async () => (await import('./pages/records.ts')).recordPage,
  },
  subscriptions: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/overview.ts')).subscriptionsPage,
  },
  movements: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/movements.ts')).movementsPage,
  },
  attention: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/attention.ts')).attentionPage,
  },
  acquisition: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/acquisition.ts')).acquisitionPage,
  },
  cohorts: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/cohorts.ts')).cohortsPage,
  },
  excluded: {
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/excluded.ts')).excludedPage,
  },
  account: {
    section: 'subscriptions',
    title: 'Account',
    load: async () => (await import('./pages/subscriptions/account.ts')).accountPage,
  },
  people: {
    section: 'people',
    title: 'People',
    isAdministration: true,
    load: async () => (await import('./pages/people.ts')).peoplePage,
  },
  person: {
    section: 'people',
    title: 'Person',
    isAdministration: true,
    load: async () => (await import('./pages/person.ts')).personPage,
  },
  privacy: {
    section: 'privacy',
    title: 'Privacy',
    isAdministration: true,
    load: async () => (await import('./pages/privacy.ts')).privacyPage,
  },
  connect: {
    section: 'connect',
    title: 'Connect',
    isAdministration: true,
    load: async () => (await import('./pages/connect.ts')).connectPage,
  },
  sources: {
    section: 'sources',
    title: 'Sources',
    isAdministration: true,
    load: async () => (await import('./pages/sources.ts')).sourcesPage,
  },
  newSource: {
    section: 'sources',
    title: 'New source',
    isAdministration: true,
    load: async () => (await import('./pages/sources.ts')).newSourcePage,
  },
  source: {
    section: 'sources',
    title: 'Source',
    isAdministration: true,
    load: async () => (await import('./pages/source.ts')).sourcePage,
  },
  destinations: {
    section: 'destinations',
    title: 'Destinations',
    isAdministration: true,
    load: async () => (await import('./pages/destinations.ts')).destinationsPage,
  },
  newDestination: {
    section: 'destinations',
    title: 'New destination',
    isAdministration: true,
    load: async () => (await import('./pages/destinations.ts')).newDestinationPage,
  },
  destination: {
    section: 'destinations',
    title: 'Destination',
    isAdministration: true,
    load: async () => (await import('./pages/destination.ts')).destinationPage,
  },
  keys: {
    section: 'keys',
    title: 'Keys',
    isAdministration: true,
    load: async () => (await import('./pages/keys.ts')).keysPage,
  },
  tenants: {
    section: 'tenants',
    title: 'Tenants',
    isAdministration: true,
    load: async () => (await import('./pages/tenants.ts')).tenantsPage,
  },
  issues: {
    section: 'issues',
    title: 'Issues',
    isAdministration: true,
    load: async () => (await import('./pages/issues.ts')).issuesPage,
  },
  alerts: {
    section: 'alerts',
    title: 'Alerts',
    isAdministration: true,
    load: async () => (await import('./pages/alerts.ts')).alertsPage,
  },
  deadLetters: {
    section: 'dead-letters',
    title: 'Dead letters',
    isAdministration: true,
    load: async () => (await import('./pages/dead-letters.ts')).deadLettersPage,
  },
  deadLetter: {
    section: 'dead-letters',
    title: 'Dead letter',
    isAdministration: true,
    load: async () => (await import('./pages/dead-letters.ts')).deadLetterPage,
  },
  users: {
    section: 'users',
    title: 'Users',
    isAdministration: true,
    load: async () => (await import('./pages/users.ts')).usersPage,
  },
  audit: {
    section: 'audit',
    title: 'Audit log',
    isAdministration: true,
    load: async () => (await import('./pages/audit.ts')).auditPage,
  },
}
