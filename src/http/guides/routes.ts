import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { App } from '../app.ts'
import { type Asset, asset, sendAsset } from '../assets.ts'
import { escaped } from '../console/page.ts'
import { problems } from '../problems.ts'
import { type Document, GUIDES_PATH, type Library, PICTURES_PATH, readLibrary } from './library.ts'
import type { Rendered, Section } from './render.ts'

const STYLE_PATH = `${GUIDES_PATH}/style.css`

/** The pages have no script; the search is a form. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const HTML = 'text/html; charset=utf-8'
const HEADERS = { 'cache-control': 'no-cache', 'content-security-policy': POLICY }
const STYLESHEETS = ['../../../console/css/base.css', './guides.css']

/** Serves docs/ as pages at /docs/guides. The first request reads the files. */
export function registerGuides(app: App): void {
  const { opened, render, kept } = openGuides()
  const hasConsole = () => app.hasRoute({ method: 'GET', url: '/console' })
  const hidden = { schema: { hide: true } }

  app.get(GUIDES_PATH, hidden, async (request, reply) => {
    const { q } = request.query as { q?: string | string[] }
    const query = String(q ?? '').trim()
    const page = { library: opened(), hasConsole: hasConsole() }
    if (query === '') {
      const index = await kept('', async () => buildPage({ ...page, title: 'Guides', main: WELCOME }))
      return sendAsset(request, reply, index, HEADERS)
    }
    const all = []
    for (const document of page.library.documents.values())
      all.push({ document, sections: (await render(document)).sections })
    const main = formatResults(query.slice(0, 200), search(all, parseWords(query)))
    return reply
      .headers(HEADERS)
      .type(HTML)
      .send(buildPage({ ...page, title: 'Search', main, query }))
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
      return buildPage({
        title: document.title,
        main: html,
        library,
        current: name,
        hasConsole: hasConsole(),
      })
    })
    return sendAsset(request, reply, page, HEADERS)
  })
}

/** Caches the files that were read, rendered and compressed. */
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
      // One document per turn of the event loop (3 ms): the first search renders all, and other requests run in between.
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

type Found = { document: Document; section: Section; score: number; excerpt: string }

const MAX_WORDS = 8
const MAX_RESULTS = 20
const EXCERPT_CHARACTERS = 180

function parseWords(query: string): string[] {
  const words =
    query
      .slice(0, 200)
      .toLowerCase()
      .match(/[\p{L}\p{N}_]+/gu) ?? []
  return [...new Set(words)].slice(0, MAX_WORDS)
}

/** Sections that contain every word, best match first: a word in a heading counts more than in the text. */
function search(documents: Iterable<{ document: Document; sections: Section[] }>, words: string[]): Found[] {
  const found: Found[] = []
  if (words.length === 0) return found
  for (const { document, sections } of documents)
    for (const section of sections) {
      const score = computeScore(document, section, words)
      if (score > 0) found.push({ document, section, score, excerpt: buildExcerpt(section.text, words) })
    }
  return found.sort((a, b) => b.score - a.score).slice(0, MAX_RESULTS)
}

function computeScore(document: Document, section: Section, words: string[]): number {
  const [title, heading, text] = [document.title, section.heading, section.text].map(part => part.toLowerCase())
  let score = 0
  for (const word of words) {
    const times = text!.split(word).length - 1
    const isInHeading = heading!.includes(word)
    if (times === 0 && !isInHeading) return 0
    score += Math.min(times, 5) + (isInHeading ? 10 : 0) + (title!.includes(word) ? 3 : 0)
  }
  return score
}

/** HTML of the text around the first word, with all words marked. */
function buildExcerpt(text: string, words: string[]): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const first = Math.max(0, ...[line.toLowerCase().indexOf(words[0]!)])
  const start = Math.max(0, first - 60)
  const cut = line.slice(start, start + EXCERPT_CHARACTERS)
  return `${start > 0 ? '… ' : ''}${markWords(cut, words)}${start + EXCERPT_CHARACTERS < line.length ? ' …' : ''}`
}

/** HTML. `words` are in lower case. */
function markWords(text: string, words: string[]): string {
  const lower = text.toLowerCase()
  const parts: string[] = []
  let writtenTo = 0
  for (let i = 0; i < text.length; i++) {
    const word = words.find(word => lower.startsWith(word, i))
    if (word === undefined) continue
    parts.push(escaped(text.slice(writtenTo, i)), `<mark>${escaped(text.slice(i, i + word.length))}</mark>`)
    writtenTo = i + word.length
    i = writtenTo - 1
  }
  return parts.join('') + escaped(text.slice(writtenTo))
}

type Page = {
  title: string
  main: string
  library: Library
  current?: string
  query?: string
  hasConsole: boolean
}

function buildPage({ title, main, library, current, query = '', hasConsole }: Page): string {
  const console = hasConsole ? '<a href="/console">Console</a>' : ''
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>${escaped(title)} · Kontor</title>
<link rel="icon" href="data:," />
<link rel="stylesheet" href="${STYLE_PATH}" />
</head>
<body class="guides">
<header>
<a class="home" href="${GUIDES_PATH}">Kontor guides</a>
<form role="search" action="${GUIDES_PATH}">
<input type="search" name="q" aria-label="Search the guides" placeholder="Search" value="${escaped(query)}" maxlength="200" />
<button>Search</button>
</form>
<nav aria-label="Main"><a href="#all">All guides</a><a href="/docs">API reference</a>${console}</nav>
</header>
<div class="columns">
<main>
${main}
</main>
<nav id="all" aria-label="All guides">
${library.groups.map(group => formatGroup(group, current)).join('\n')}
</nav>
</div>
</body>
</html>
`
}

function formatGroup({ title, documents }: Library['groups'][number], current: string | undefined): string {
  const items = documents.map(document => {
    const mark = document.name === current ? ' aria-current="page"' : ''
    return `<li><a href="${GUIDES_PATH}/${document.name}"${mark}>${escaped(document.title)}</a></li>`
  })
  return `<h2>${escaped(title)}</h2>\n<ul>${items.join('')}</ul>`
}

const WELCOME = `<h1>Guides</h1>
<p>Kontor's tests run the examples of every guide. Choose a guide from the list, or search.</p>`

function formatResults(query: string, found: Found[]): string {
  const items = found.map(({ document, section, excerpt }) => {
    const href = `${GUIDES_PATH}/${document.name}#${section.id}`
    const place = section.heading === document.title ? '' : ` › ${escaped(section.heading)}`
    return `<li><a href="${href}">${escaped(document.title)}${place}</a><p>${excerpt}</p></li>`
  })
  const count =
    found.length === 0
      ? 'No section contains all of these words.'
      : `${found.length} ${found.length === 1 ? 'result' : 'results'}`
  return `<h1>Search: ${escaped(query)}</h1>\n<p>${count}</p>\n<ol class="results">${items.join('')}</ol>`
}
