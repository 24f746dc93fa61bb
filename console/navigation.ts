import { type ReadonlySignal, signal } from '@preact/signals'
import { type Route, routeOf } from './router.ts'

const current = signal(routeOf(location.hash))

/** The route that the address asks for; a new object each time that it is asked for. */
export const currentRoute: ReadonlySignal<Route | null> = current

addEventListener('hashchange', () => {
  current.value = routeOf(location.hash)
})

/** Goes to an address made by the router; to the one that is shown too, which loads it anew. */
export function go(href: string): void {
  if (location.hash === href) current.value = routeOf(href)
  else location.hash = href
}
