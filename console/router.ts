/**
 * Routes and their addresses: #/section/name?filters. Pure, so that every page can build links without
 * knowing the app. A part that starts with a colon is a parameter.
 */
const PATTERNS = {
  overview: 'overview',
  events: 'events',
  eventLookup: 'events/lookup',
  event: 'events/:id',
  conversions: 'conversions',
  conversion: 'conversions/:id',
  records: 'records/:type',
  record: 'records/:type/:id',
  subscriptions: 'subscriptions',
  movements: 'subscriptions/movements',
  months: 'subscriptions/months',
  forecast: 'subscriptions/forecast',
  revenue: 'subscriptions/revenue',
  attention: 'subscriptions/attention',
  acquisition: 'subscriptions/acquisition',
  cohorts: 'subscriptions/cohorts',
  excluded: 'subscriptions/excluded',
  account: 'subscriptions/account',
  customers: 'customers',
  person: 'customers/:id',
  channels: 'acquisition',
  payers: 'acquisition/payers',
  funnel: 'acquisition/funnel',
  privacy: 'privacy',
  connect: 'connect/:sender',
  sources: 'sources',
  newSource: 'sources/new',
  source: 'sources/:id',
  destinations: 'destinations',
  newDestination: 'destinations/new',
  destination: 'destinations/:id',
  keys: 'keys',
  users: 'users',
  settings: 'settings',
  tenants: 'tenants',
  issues: 'issues',
  alerts: 'alerts',
  deadLetters: 'dead-letters',
  deadLetter: 'dead-letters/:id',
  audit: 'audit',
} as const

type Patterns = typeof PATTERNS
export type RouteName = keyof Patterns

type Placeholder<Pattern extends string> = Pattern extends `${infer Head}/${infer Tail}`
  ? Placeholder<Head> | Placeholder<Tail>
  : Pattern extends `:${infer Name}`
    ? Name
    : never

/** The parameters of a route: { id } of `event`. */
type Params<Name extends RouteName> = Record<Placeholder<Patterns[Name]>, string>

export type Route<Name extends RouteName = RouteName> = {
  name: Name
  params: Params<Name>
  query: URLSearchParams
}

/** The routes without parameters. */
export type PlainRouteName = {
  [Name in RouteName]: keyof Params<Name> extends never ? Name : never
}[RouteName]

type LinkArguments<Name extends RouteName> = Name extends PlainRouteName
  ? [query?: Query]
  : [params: Params<Name>, query?: Query]

/** The address of a route: link('events', { since }), link('event', { id }). */
export function link<Name extends RouteName>(name: Name, ...given: LinkArguments<Name>): string {
  const pattern = PATTERNS[name]
  const [params, query] = pattern.includes(':') ? given : [{}, given[0]]
  const path = pattern
    .split('/')
    .map(part => (part.startsWith(':') ? encodeURIComponent((params as Record<string, string>)[part.slice(1)]!) : part))
  return `#/${path.join('/')}${toSearch((query ?? {}) as Query)}`
}

/** The same route with some filters changed. */
export function linkWith({ name, params, query }: Route, changes: Query): string {
  const filters = { ...Object.fromEntries(query), ...changes }
  const given = PATTERNS[name].includes(':') ? [params, filters] : [filters]
  return (link as (name: RouteName, ...given: unknown[]) => string)(name, ...given)
}

/** For a page of one object, the page of its list. */
const LISTS: Partial<Record<RouteName, RouteName>> = {
  event: 'events',
  eventLookup: 'events',
  conversion: 'conversions',
  record: 'records',
  account: 'subscriptions',
  person: 'customers',
  source: 'sources',
  destination: 'destinations',
  deadLetter: 'deadLetters',
}

/** The address to open after a change of tenant: the list of the object, or the same page, without filters. */
export function linkForAnyTenant({ name, params }: Route): string {
  const target = LISTS[name] ?? name
  const given = PATTERNS[target].includes(':') ? [params] : []
  return (link as (name: RouteName, ...given: unknown[]) => string)(target, ...given)
}

/** Addresses without the part that selects a tab. */
const SHORT: ReadonlyMap<string, string[]> = new Map([
  ['', ['overview']],
  ['records', ['records', 'products']],
  ['connect', ['connect', 'curl']],
])

/** Parses an address; null if no route matches. */
export function parseRoute(hash: string): Route | null {
  const [path = '', queryText = ''] = hash.replace(/^#\/?/, '').split('?')
  const given = path.split('/').filter(Boolean).map(decoded)
  const parts = SHORT.get(given.join('/')) ?? given
  const name = (Object.keys(PATTERNS) as RouteName[]).find(candidate => matches(candidate, parts))
  if (name === undefined) return null
  const named = PATTERNS[name].split('/').flatMap((part, index) => {
    return part.startsWith(':') ? [[part.slice(1), parts[index]!]] : []
  })
  return { name, params: Object.fromEntries(named), query: new URLSearchParams(queryText) }
}

function matches(name: RouteName, parts: string[]): boolean {
  const pattern = PATTERNS[name].split('/')
  return (
    pattern.length === parts.length && pattern.every((part, index) => part.startsWith(':') || part === parts[index])
  )
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The query of an address or a request. */
export type Query = Record<string, string | number | null | undefined>

/** ?a=1&b=2, or an empty string; empty values are skipped. */
export function toSearch(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)] as [string, string]],
  )
  return given.length > 0 ? `?${new URLSearchParams(given)}` : ''
}
