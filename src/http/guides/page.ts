import { escaped } from '../console/problem-page.ts'
import { GUIDES_PATH, type Library } from './library.ts'
import type { Found } from './search.ts'

export const STYLE_PATH = `${GUIDES_PATH}/style.css`

/** Pages without a script: the search is a form. */
export const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

type Page = {
  title: string
  main: string
  library: Library
  current?: string
  query?: string
  hasConsole: boolean
}

export function pageOf({ title, main, library, current, query = '', hasConsole }: Page): string {
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
<nav aria-label="Elsewhere"><a href="#all">All guides</a><a href="/docs">API reference</a>${console}</nav>
</header>
<div class="columns">
<main>
${main}
</main>
<nav id="all" aria-label="All guides">
${library.groups.map(group => groupOf(group, current)).join('\n')}
</nav>
</div>
</body>
</html>
`
}

function groupOf({ title, documents }: Library['groups'][number], current: string | undefined): string {
  const items = documents.map(document => {
    const mark = document.name === current ? ' aria-current="page"' : ''
    return `<li><a href="${GUIDES_PATH}/${document.name}"${mark}>${escaped(document.title)}</a></li>`
  })
  return `<h2>${escaped(title)}</h2>\n<ul>${items.join('')}</ul>`
}

export const WELCOME = `<h1>Guides</h1>
<p>Kontor's tests run the examples of every guide. Choose a guide from the list, or search.</p>`

export function resultsOf(query: string, found: Found[]): string {
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
