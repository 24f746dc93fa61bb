import type { Problem } from '../problems.ts'

type ProblemPage = {
  problem: Problem
  requestId: string
  stylesheets: string[]
  /** Where to try again. */
  again: string
  console: string
}

const POLICY =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Why somebody could not sign in. Everything in it may come from elsewhere and is shown as text. */
export function problemPage(options: ProblemPage): { html: string; policy: string } {
  const { problem, requestId, stylesheets, again, console } = options
  const links = stylesheets.map(href => `<link rel="stylesheet" href="${escaped(href)}" />`)
  const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <meta name="robots" content="noindex" />
    <title>Not signed in · Kontor</title>
    ${links.join('\n    ')}
  </head>
  <body>
    <main id="main" class="alone">
      <h1 class="brand">Kontor</h1>
      <h2>You are not signed in</h2>
      <p>${escaped(problem.detail)}</p>
      <p><a class="button main" href="${escaped(again)}">Try again</a> <a class="button" href="${escaped(console)}">Use a key</a></p>
      <p class="faint">${escaped(problem.code)} · ${escaped(requestId)}</p>
    </main>
  </body>
</html>
`
  return { html, policy: POLICY }
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => ENTITIES[character]!)
}
