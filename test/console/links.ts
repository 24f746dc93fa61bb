import type { Page } from 'playwright-core'
import { parseRoute } from '../../console/router.ts'
import { goTo } from './tab.ts'

/** Every link has them, so they do not make a page different. */
const VIEW = ['tenant', 'period', 'compare', 'currency']

/** Pages of one object. They differ with the object, lists hardly do. */
const OF_AN_OBJECT = ['event', 'record', 'person', 'account', 'source', 'destination', 'deadLetter', 'conversion']

const LINKS = `[...document.querySelectorAll('a[href^="#/"]')].map(link => link.getAttribute('href'))`

export type Visit = {
  address: string
  /** The first page that is built like this one. */
  isFirstPage: boolean
  /** The first page that is built like this one and has the same filters. */
  isFirst: boolean
}

type Crawl = {
  /** Pages to visit in any case. */
  starts?: string[]
  /** How many pages of one kind of object to visit; of lists with the same filters, one. */
  objects: number
  visit(visit: Visit): Promise<void>
}

/** Follows all links, starting at the overview. Returns the visited addresses. */
export async function crawl(page: Page, { starts = [], objects, visit }: Crawl): Promise<string[]> {
  const waiting = ['#/overview', ...starts]
  const seen = new Set<string>()
  const kinds = new Map<string, number>()
  const pages = new Set<string>()
  for (let address = waiting.shift(); address !== undefined; address = waiting.shift()) {
    const route = parseRoute(address)
    const { type = '' } = (route?.params ?? {}) as { type?: string }
    const name = route ? `${route.name} ${type}` : address
    const filters = [...(route?.query.keys() ?? [])].filter(key => !VIEW.includes(key)).sort()
    const kind = `${name} ${filters}`
    const before = kinds.get(kind) ?? 0
    const limit = route && OF_AN_OBJECT.includes(route.name) ? objects : 1
    if (seen.has(address) || (before >= limit && !starts.includes(address))) continue
    seen.add(address)
    kinds.set(kind, before + 1)
    const isFirstPage = !pages.has(name)
    pages.add(name)
    await goTo(page, address)
    await visit({ address, isFirstPage, isFirst: before === 0 })
    waiting.push(...((await page.evaluate(LINKS)) as string[]))
  }
  return [...seen]
}
