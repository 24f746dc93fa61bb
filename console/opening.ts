import { signal } from '@preact/signals'
import type { VNode } from 'preact'
import { readTenant, readTenantWithCookie } from './api/data.ts'
import { errorStatus, Problem } from './api/request.ts'
import { isRateMissing, MissingRate } from './components/missing-rate.ts'
import { EmptyState, ProblemNotice } from './components/notice.ts'
import { Page } from './components/page.ts'
import { setZone } from './format.ts'
import { h, html } from './html.ts'
import { currentRoute } from './navigation.ts'
import type { PageDefinition } from './page-definition.ts'
import { pages, type Section } from './pages.ts'
import { link, type Route, type RouteName } from './router.ts'
import { endSession, isAdmin, tenant } from './session.ts'
import { setTenantFacts, type TenantFacts, tenantFacts } from './view.ts'

/** The page on the screen. The same key means the same page with new data. */
type Shown = { key: string; content: VNode }

export const shown = signal<Shown | null>(null)
/** The menu entry of the page that is being opened. */
export const section = signal<Section | null>(null)
export const isOpening = signal(false)

let leaving = new AbortController()

/** Opens the page of the address. The previous page stays until the new one is complete. */
export function open(): Promise<void> {
  return show((error, title) => {
    if (isRateMissing(error)) return h(Page, { title }, h(MissingRate, { error }))
    const retry = isNotLoaded(error) ? () => location.reload() : open
    return h(Page, { title }, h(ProblemNotice, { error, retry }))
  })
}

/** Reads the data of the current page again. On failure the page stays, and the error goes to the caller. */
function refresh(): Promise<void> {
  return show(error => {
    throw error
  })
}

/** Removes the page and cancels what is loading. */
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
  const [page] = await Promise.all([
    (load as () => Promise<PageDefinition<RouteName>>)().catch(notLoaded),
    readFacts(left),
  ])
  const draw = await page.open({ route, signal: left })
  return draw(refresh)
}

let factsOf: string | null | undefined

let requested: { whose: string; facts: Promise<TenantFacts | null> } | null = null

/** Requests what the first page needs to know about its tenant, and its module, before the list of tenants is known. */
export function prepare(whose: string | null): void {
  const route = currentRoute.peek()
  if (route) pages[route.name].load().catch(() => {})
  // If it fails, it is requested again when the page opens.
  if (whose !== null) requested = { whose, facts: readTenantWithCookie(whose).catch(() => null) }
}

/** Reads the time zone and the currencies of the tenant once; again while it has no currency yet. */
async function readFacts(left: AbortSignal): Promise<void> {
  const whose = tenant.peek()
  const known = tenantFacts.peek()
  if (isAdmin.peek() && whose === null) return
  if (factsOf === whose && known !== null && known.currencies.length > 0) return
  const early = requested?.whose === whose ? requested.facts : null
  requested = null
  const facts = (await early) ?? (await readTenant(left))
  if (left.aborted) return
  factsOf = whose
  setZone(facts.time_zone)
  setTenantFacts(facts)
}

/** The tenant is part of the key: its page is a different page. */
function pageKey(route: Route | null): string {
  return JSON.stringify([tenant.peek(), route?.name, route?.params])
}

function notFoundPage(): VNode {
  const action = html`<a href=${link('overview')}>Go to Overview</a>`
  return h(Page, { title: 'Page not found' }, h(EmptyState, { title: 'No page exists at this address.', action }))
}

/** Most likely the server was updated, and the files of the previous version are gone. */
function notLoaded(): never {
  const detail =
    'This part of the console could not be loaded. The server may have been updated, or it may be unavailable.'
  throw new Problem({ status: 0, title: 'Page not loaded', code: 'not_loaded', detail })
}

function isNotLoaded(error: unknown): boolean {
  return error instanceof Problem && error.code === 'not_loaded'
}

function needsAdminKey(): Problem {
  const detail = 'This page requires an admin key (adm_…) or a user account. Sign out, then sign in with one.'
  return new Problem({ status: 403, title: 'Admin key required', detail })
}
