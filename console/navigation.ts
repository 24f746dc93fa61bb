import { batch, type ReadonlySignal, signal } from '@preact/signals'
import { parseRoute, type Route } from './router.ts'
import { chooseTenant } from './session.ts'
import { addressedTenant, takeView, type ViewChange, withView } from './view.ts'

const current = signal(readAddress())

/** The route of the address; a new object for every navigation. */
export const currentRoute: ReadonlySignal<Route | null> = current

const invited = signal(parseInvitation(location.hash))

/** The token of an invitation link. It is in the fragment, which browsers do not send to servers. */
export const invitationToken: ReadonlySignal<string | null> = invited

function parseInvitation(hash: string): string | null {
  return /^#\/invitation\/([\w-]+)$/.exec(hash)?.[1] ?? null
}

function readAddress(): Route | null {
  const route = parseRoute(location.hash)
  if (!route) return null
  takeView(route.query)
  if (addressedTenant.peek() !== null) chooseTenant(addressedTenant.peek())
  return route
}

addEventListener('hashchange', () =>
  batch(() => {
    invited.value = parseInvitation(location.hash)
    current.value = readAddress()
  }),
)

/** Navigates to an address of the router. Navigating to the current address loads the page again. */
export function go(href: string, changes: ViewChange = {}): void {
  const target = withView(href, changes)
  if (location.hash === target) current.value = readAddress()
  else location.hash = target
}

/** The same page with another period, comparison or currency. The page number belongs to the old list. */
export function changeView(changes: ViewChange): void {
  go(hrefWithView(changes))
}

export function hrefWithView(changes: ViewChange): string {
  const [path = '', search = ''] = location.hash.split('?')
  const query = new URLSearchParams(search)
  for (const name of [...query.keys()]) if (name === 'page' || name.endsWith('_page')) query.delete(name)
  return withView(`${path || '#/overview'}${query.size > 0 ? `?${query}` : ''}`, changes)
}

/** Writes the tenant into the address, so that the address can be shared. */
export function completeAddress(): void {
  const hash = location.hash.length > 2 ? location.hash : '#/overview'
  if (current.peek() && invited.peek() === null) history.replaceState(history.state, '', withView(hash))
}
