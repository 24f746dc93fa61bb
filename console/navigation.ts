import { type ReadonlySignal, signal } from '@preact/signals'
import { parseRoute, type Route } from './router.ts'

const current = signal(parseRoute(location.hash))

/** The route that the address asks for; a new object each time that it is asked for. */
export const currentRoute: ReadonlySignal<Route | null> = current

addEventListener('hashchange', () => {
  current.value = parseRoute(location.hash)
})

/** Goes to an address made by the router; to the one that is shown too, which loads it anew. */
export function go(href: string): void {
  if (location.hash === href) current.value = parseRoute(href)
  else location.hash = href
}
