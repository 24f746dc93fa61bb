import { type ReadonlySignal, signal } from '@preact/signals'
import { parseRoute, type Route } from './router.ts'

const current = signal(parseRoute(location.hash))

/** The route of the address; a new object for every navigation. */
export const currentRoute: ReadonlySignal<Route | null> = current

const invited = signal(parseInvitation(location.hash))

/** The token of an invitation link. It is in the fragment, which browsers do not send to servers. */
export const invitationToken: ReadonlySignal<string | null> = invited

function parseInvitation(hash: string): string | null {
  return /^#\/invitation\/([\w-]+)$/.exec(hash)?.[1] ?? null
}

addEventListener('hashchange', () => {
  invited.value = parseInvitation(location.hash)
  current.value = parseRoute(location.hash)
})

/** Navigates to an address of the router. Navigating to the current address loads the page again. */
export function go(href: string): void {
  if (location.hash === href) current.value = parseRoute(href)
  else location.hash = href
}
