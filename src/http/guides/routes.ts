import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { App } from '../app.ts'
import { type Asset, asset, sendAsset } from '../assets.ts'
import { problems } from '../problems.ts'
import { type Document, GUIDES_PATH, type Library, PICTURES_PATH, readLibrary } from './library.ts'
import { POLICY, pageOf, resultsOf, STYLE_PATH, WELCOME } from './page.ts'
import type { Rendered } from './render.ts'
import { search, wordsOf } from './search.ts'

const HTML = 'text/html; charset=utf-8'
const HEADERS = { 'cache-control': 'no-cache', 'content-security-policy': POLICY }
const STYLESHEETS = ['../../../console/css/base.css', './guides.css']

/** docs/ as pages at /docs/guides. Nothing of it is read before somebody asks. */
export function registerGuides(app: App): void {
  const { opened, render, kept } = openGuides()
  const hasConsole = () => app.hasRoute({ method: 'GET', url: '/console' })
  const hidden = { schema: { hide: true } }

  app.get(GUIDES_PATH, hidden, async (request, reply) => {
    const { q } = request.query as { q?: string | string[] }
    const query = String(q ?? '').trim()
    const page = { library: opened(), hasConsole: hasConsole() }
    if (query === '') {
      const index = await kept('', async () => pageOf({ ...page, title: 'Guides', main: WELCOME }))
      return sendAsset(request, reply, index, HEADERS)
    }
    const all = []
    for (const document of page.library.documents.values())
      all.push({ document, sections: (await render(document)).sections })
    const main = resultsOf(query.slice(0, 200), search(all, wordsOf(query)))
    return reply
      .headers(HEADERS)
      .type(HTML)
      .send(pageOf({ ...page, title: 'Search', main, query }))
  })
  app.get(STYLE_PATH, hidden, async (request, reply) => {
    const style = await kept('style.css', async () =>
      STYLESHEETS.map(path => readFileSync(new URL(path, import.meta.url), 'utf8')).join('\n'),
    )
    return sendAsset(request, reply, style, { 'cache-control': 'no-cache' })
  })
  app.get(`${PICTURES_PATH}/:name`, hidden, async (request, reply) => {
    const { name } = request.params as { name: string }
    const picture = [...opened().pictures.values()].find(known => known.name === name)
    if (!picture) throw problems.notFound('No such image.')
    const file = asset(picture.type, await readFile(picture.file), {})
    return sendAsset(request, reply, file, HEADERS)
  })
  app.get(`${GUIDES_PATH}/:name`, hidden, async (request, reply) => {
    const { name } = request.params as { name: string }
    const library = opened()
    const document = library.documents.get(name)
    if (!document) throw problems.notFound('No such guide.')
    const page = await kept(`${name}.html`, async () => {
      const { html } = await render(document)
      return pageOf({ title: document.title, main: html, library, current: name, hasConsole: hasConsole() })
    })
    return sendAsset(request, reply, page, HEADERS)
  })
}

/** What was read, rendered and compressed once. */
function openGuides() {
  let library: Library | null = null
  const rendered = new Map<string, Rendered>()
  const pages = new Map<string, Asset>()
  const opened = () => {
    library ??= readLibrary()
    return library
  }
  return {
    opened,
    async render(document: Document): Promise<Rendered> {
      const known = rendered.get(document.name)
      if (known) return known
      // A document a turn, 3 ms: the first search renders them all, and others are served in between.
      await nextTurn()
      const { renderDocument } = await import('./render.ts')
      const made = renderDocument(document, opened())
      rendered.set(document.name, made)
      return made
    },
    async kept(name: string, make: () => Promise<string>): Promise<Asset> {
      const page = pages.get(name) ?? (await compressed(name, await make()))
      pages.set(name, page)
      return page
    },
  }
}

async function compressed(name: string, text: string): Promise<Asset> {
  const plain = Buffer.from(text)
  const type = name.endsWith('.css') ? 'text/css; charset=utf-8' : HTML
  return asset(type, plain, { gzip: await promisify(gzip)(plain) })
}
