import { signal } from '@preact/signals'
import type { VNode } from 'preact'
import { errorStatus, Problem } from './api/request.ts'
import { EmptyState, ProblemNotice } from './components/notice.ts'
import { Page } from './components/page.ts'
import { h, html } from './html.ts'
import { currentRoute } from './navigation.ts'
import type { PageDefinition } from './page-definition.ts'
import { pages, type Section } from './pages.ts'
import { link, type Route, type RouteName } from './router.ts'
import { forget, isAdmin, tenant } from './session.ts'

/** What stands on the screen. Two with the same key are the same place, drawn anew. */
type Shown = { key: string; content: VNode }

export const shown = signal<Shown | null>(null)
/** The part of the menu that is gone to, before it is there. */
export const section = signal<Section | null>(null)
export const isOpening = signal(false)
/** Why the session ended. */
export const signOutReason = signal<unknown>(null)

let leaving = new AbortController()

/** Shows what the address asks for. What was shown before stays until the new page is complete. */
export function open(): Promise<void> {
  return show((error, title) => {
    const retry = isNotLoaded(error) ? () => location.reload() : open
    return h(Page, { title }, h(ProblemNotice, { error, retry }))
  })
}

/** The same page with its data read anew. If that fails the page stays as it is, and who asked for it is told. */
function refresh(): Promise<void> {
  return show(error => {
    throw error
  })
}

/** Forgets what was shown, and whatever is under way. */
export function clear(): void {
  leaving.abort()
  shown.value = null
  isOpening.value = false
}

async function show(onError: (error: unknown, title: string) => VNode): Promise<void> {
  leaving.abort()
  leaving = new AbortController()
  const { signal: left } = leaving
  const route = currentRoute.peek()
  const key = pageKey(route)
  section.value = route && pages[route.name].section
  isOpening.value = true
  try {
    const content = route ? await loadContent(route, left) : notFoundPage()
    if (!left.aborted) shown.value = { key, content }
  } catch (error) {
    if (left.aborted) return
    if (errorStatus(error) === 401) endSession(error)
    else shown.value = { key, content: onError(error, route ? pages[route.name].title : '') }
  } finally {
    if (!left.aborted) isOpening.value = false
  }
}

async function loadContent(route: Route, left: AbortSignal): Promise<VNode> {
  const { isAdministration, load } = pages[route.name]
  if (isAdministration && !isAdmin.peek()) throw needsAdminKey()
  const page = await (load as () => Promise<PageDefinition<RouteName>>)().catch(notLoaded)
  const draw = await page.open({ route, signal: left })
  return draw(refresh)
}

/** The key is no longer good. */
export function endSession(reason: unknown): void {
  signOutReason.value = reason
  forget()
}

/** Another tenant's page is another page. */
function pageKey(route: Route | null): string {
  return JSON.stringify([tenant.peek(), route?.name, route?.params])
}

function notFoundPage(): VNode {
  const action = html`<a href=${link('overview')}>Overview</a>`
  return h(
    Page,
    { title: 'Page not found' },
    h(EmptyState, { title: 'No page exists at this address.', action }),
  )
}

/** Most likely the server was updated: the files of the version before are gone. */
function notLoaded(): never {
  const detail =
    'This part of the console could not be loaded. The server may have been updated, or it may be unavailable.'
  throw new Problem({ status: 0, title: 'Page not loaded', code: 'not_loaded', detail })
}

function isNotLoaded(error: unknown): boolean {
  return error instanceof Problem && error.code === 'not_loaded'
}

function needsAdminKey(): Problem {
  const detail = 'This page requires an admin key (adm_…). Sign out, then sign in with one.'
  return new Problem({ status: 403, title: 'Admin key required', detail })
}
