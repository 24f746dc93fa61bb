const ADMINISTRATION = ['sources', 'keys', 'dead-letters']

/** Addresses: #/section/name?filters. A part that starts with a colon stands for anything. */
const routes = [
  ['overview', 'Overview', () => import('./views/overview.js')],
  ['events', 'Events', () => import('./views/events.js')],
  ['events/lookup', 'What happened to an event', () => import('./views/event.js')],
  ['events/:id', 'Event', () => import('./views/event.js')],
  ['conversions', 'Conversions', () => import('./views/conversions.js')],
  ['records/:type', 'Records', () => import('./views/records.js')],
  ['records/:type/:id', 'Record', () => import('./views/record.js')],
  ['subscriptions', 'Subscriptions', () => import('./views/subscriptions.js')],
  ['subscriptions/attention', 'Subscriptions', () => import('./views/attention.js')],
  ['subscriptions/acquisition', 'Subscriptions', () => import('./views/acquisition.js')],
  ['subscriptions/excluded', 'Subscriptions', () => import('./views/excluded.js')],
  ['subscriptions/account', 'Account', () => import('./views/account.js')],
  ['sources', 'Sources', () => import('./views/sources.js')],
  ['sources/new', 'New source', () => import('./views/new-source.js')],
  ['sources/:id', 'Source', () => import('./views/source.js')],
  ['keys', 'Keys', () => import('./views/keys.js')],
  ['dead-letters', 'Dead letters', () => import('./views/dead-letters.js')],
  ['dead-letters/:id', 'Dead letter', () => import('./views/dead-letter.js')],
].map(([pattern, title, load]) => {
  const [section] = pattern.split('/')
  return {
    name: pattern,
    parts: pattern.split('/'),
    section,
    title,
    load,
    isAdministration: ADMINISTRATION.includes(section),
  }
})

/** Where an address leads: its parts and its filters. */
export function placeOf(hash) {
  const [path, search = ''] = hash.replace(/^#\/?/, '').split('?')
  const parts = path.split('/').filter(Boolean).map(decode)
  return { parts: parts.length > 0 ? parts : ['overview'], query: new URLSearchParams(search) }
}

export function routeOf({ parts }) {
  const fits = route =>
    route.parts.length === parts.length &&
    route.parts.every((part, index) => part.startsWith(':') || part === parts[index])
  return routes.find(fits) ?? routes[0]
}

/** The address of a place: link(['events', id], { since }). */
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  const search = given.length > 0 ? `?${new URLSearchParams(given)}` : ''
  return `#/${parts.map(encodeURIComponent).join('/')}${search}`
}

function decode(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
