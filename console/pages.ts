import type { PageDefinition } from './page-definition.ts'
import type { RouteName } from './router.ts'

export type Section =
  | 'overview'
  | 'events'
  | 'conversions'
  | 'records'
  | 'subscriptions'
  | 'customers'
  | 'acquisition'
  | 'privacy'
  | 'connect'
  | 'sources'
  | 'destinations'
  | 'keys'
  | 'users'
  | 'settings'
  | 'tenants'
  | 'issues'
  | 'alerts'
  | 'dead-letters'
  | 'audit'

/** What the bar offers on a page. */
export type BarControl = 'period' | 'compare' | 'currency'
const REPORT: readonly BarControl[] = ['period', 'compare', 'currency']

type Entry<Name extends RouteName> = {
  /** The controls of the bar that the page obeys. */
  bar?: readonly BarControl[]
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
    bar: REPORT,
    section: 'overview',
    title: 'Overview',
    load: async () => (await import('./pages/overview.ts')).overviewPage,
  },
  events: {
    bar: ['period'],
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
    bar: REPORT,
    section: 'conversions',
    title: 'Conversions',
    load: async () => (await import('./pages/conversions.ts')).conversionsPage,
  },
  conversion: {
    section: 'conversions',
    title: 'Conversion',
    load: async () => (await import('./pages/conversions.ts')).conversionPage,
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
    bar: REPORT,
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/overview.ts')).subscriptionsPage,
  },
  movements: {
    bar: REPORT,
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/movements.ts')).movementsPage,
  },
  months: {
    bar: ['currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/months.ts')).monthsPage,
  },
  forecast: {
    bar: ['currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/forecast.ts')).forecastPage,
  },
  revenue: {
    bar: ['currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/revenue.ts')).revenuePage,
  },
  attention: {
    bar: ['currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/attention.ts')).attentionPage,
  },
  acquisition: {
    bar: ['period', 'currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/acquisition.ts')).acquisitionPage,
  },
  cohorts: {
    bar: ['period', 'currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/cohorts.ts')).cohortsPage,
  },
  excluded: {
    bar: ['period', 'currency'],
    section: 'subscriptions',
    title: 'Subscriptions',
    load: async () => (await import('./pages/subscriptions/excluded.ts')).excludedPage,
  },
  account: {
    bar: ['period', 'currency'],
    section: 'subscriptions',
    title: 'Account',
    load: async () => (await import('./pages/subscriptions/account.ts')).accountPage,
  },
  customers: {
    bar: ['currency'],
    section: 'customers',
    title: 'Customers',
    load: async () => (await import('./pages/customers.ts')).customersPage,
  },
  channels: {
    bar: REPORT,
    section: 'acquisition',
    title: 'Acquisition',
    load: async () => (await import('./pages/acquisition/channels.ts')).channelsPage,
  },
  payers: {
    section: 'acquisition',
    title: 'Acquisition',
    load: async () => (await import('./pages/acquisition/payers.ts')).payersPage,
  },
  funnel: {
    bar: ['period'],
    section: 'acquisition',
    title: 'Acquisition',
    load: async () => (await import('./pages/acquisition/funnel.ts')).funnelPage,
  },
  person: {
    section: 'customers',
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
  settings: {
    section: 'settings',
    title: 'Settings',
    isAdministration: true,
    load: async () => (await import('./pages/settings.ts')).settingsPage,
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
