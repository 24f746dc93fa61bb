import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { App } from '../app.ts'
import { type Asset, asset, sendAsset } from '../assets.ts'
import { problems } from '../problems.ts'
import { type Library, readLibrary } from './library.ts'
import { POLICY, pageOf, resultsOf, STYLE_PATH, WELCOME } from './page.ts'
import { GUIDES_PATH, type Rendered, renderDocument } from './render.ts'
import { search, wordsOf } from './search.ts'

const HTML = 'text/html; charset=utf-8'
const HEADERS = { 'cache-control': 'no-cache', 'content-security-policy': POLICY }
const STYLESHEETS = ['../../../console/css/base.css', './guides.css']

/** docs/ as pages at /docs/guides. Nothing of it is read before somebody asks. */
export function registerGuides(app: App): void {
  let library: Library | null = null
  const rendered = new Map<string, Rendered>()
  const pages = new Map<string, Promise<Asset>>()
  const hasConsole = () => app.hasRoute({ method: 'GET', url: '/console' })
  const opened = () => {
    library ??= readLibrary()
    return library
  }
  const render = (name: string): Rendered => {
    const known = rendered.get(name) ?? renderDocument(opened().documents.get(name)!, opened())
    rendered.set(name, known)
    return known
  }
  const kept = (name: string, make: () => { type: string; text: string }) => {
    const page = pages.get(name) ?? compressed(make())
    pages.set(name, page)
    return page
  }
  const hidden = { schema: { hide: true } }

  app.get(GUIDES_PATH, hidden, async (request, reply) => {
    const { q } = request.query as { q?: string | string[] }
    const query = String(q ?? '').trim()
    const page = { library: opened(), hasConsole: hasConsole() }
    if (query === '') {
      const index = await kept('', () => ({
        type: HTML,
        text: pageOf({ ...page, title: 'Guides', main: WELCOME }),
      }))
      return sendAsset(request, reply, index, HEADERS)
    }
    const all = []
    for (const document of page.library.documents.values()) {
      // The first search renders them all, 3 ms each: others are served in between.
      if (!rendered.has(document.name)) await nextTurn()
      all.push({ document, sections: render(document.name).sections })
    }
    const main = resultsOf(query.slice(0, 200), search(all, wordsOf(query)))
    return reply
      .headers(HEADERS)
      .type(HTML)
      .send(pageOf({ ...page, title: 'Search', main, query }))
  })
  app.get(STYLE_PATH, hidden, async (request, reply) => {
    const style = await kept('style.css', () => ({
      type: 'text/css; charset=utf-8',
      text: STYLESHEETS.map(path => readFileSync(new URL(path, import.meta.url), 'utf8')).join('\n'),
    }))
    return sendAsset(request, reply, style, { 'cache-control': 'no-cache' })
  })
  app.get(`${GUIDES_PATH}/:name`, hidden, async (request, reply) => {
    const { name } = request.params as { name: string }
    const document = opened().documents.get(name)
    if (!document) throw problems.notFound('There is no such guide.')
    const page = await kept(`${name}.html`, () => ({
      type: HTML,
      text: pageOf({
        ...{ title: document.title, main: render(name).html, library: opened(), current: name },
        hasConsole: hasConsole(),
      }),
    }))
    return sendAsset(request, reply, page, HEADERS)
  })
}

async function compressed({ type, text }: { type: string; text: string }): Promise<Asset> {
  const plain = Buffer.from(text)
  return asset(type, plain, { gzip: await promisify(gzip)(plain) })
}
