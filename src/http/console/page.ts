import { hash } from 'node:crypto'
import { posix } from 'node:path'
import type { Problem } from '../problems.ts'
import { type ConsoleFile, type ConsoleFiles, createFile } from './files.ts'

type Page = { file: ConsoleFile; policy: string }

/** The modules that the first view needs: the app, and the page that most people open first. */
const FIRST = ['app.ts', 'pages/overview.ts']

/** The page of the console, with the URLs of its modules, its content security policy and, if configured, the sign-in link. */
export function buildPage(
  { version, files, libraries }: ConsoleFiles,
  signIn: { name: string; href: string } | null = null,
): Page {
  const base = `/console/${version}`
  const imports = Object.fromEntries([...libraries].map(([name, file]) => [name, `${base}/${file}`]))
  const importMap = JSON.stringify({ imports })
  const preload = firstModules(files, libraries).map(name => `<link rel="modulepreload" href="${base}/${name}" />`)
  const text = files
    .get('index.html')!
    .text.replaceAll('{{base}}', base)
    .replace('{}</script>', `${importMap}</script>`)
    .replace('<!-- modules -->', preload.join('\n    '))
    .replace('<!-- sign-in -->', () => (signIn ? signInTag(signIn) : ''))
  return { file: createFile('index.html', text), policy: policyFor(importMap) }
}

function signInTag({ name, href }: { name: string; href: string }): string {
  return `<link rel="kontor-sign-in" href="${escaped(href)}" title="${escaped(name)}" />`
}

/** The console handles admin keys: it connects only to this server, and no string can become markup or script. */
function policyFor(importMap: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'`,
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** All modules that the first view imports, directly or not. Listed in the page, they load in parallel instead of level by level. */
function firstModules(files: ConsoleFiles['files'], libraries: ConsoleFiles['libraries']): string[] {
  const found = new Set<string>()
  const visit = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    for (const specifier of listImports(files.get(name)!.text))
      visit(libraries.get(specifier) ?? posix.join(posix.dirname(name), specifier))
  }
  for (const name of FIRST) visit(name)
  return [...found]
}

/** The static imports of a module; not its dynamic imports, nor imports in code that it displays. */
export function listImports(source: string): string[] {
  return [
    ...source.matchAll(
      /(?:^|;)(?:import|export)\b[^'"`;()]*?\bfrom\s*['"]([^'"]+)['"]|(?:^|;)import\s*['"]([^'"]+)['"]/gm,
    ),
  ].map(([, from, bare]) => (from ?? bare)!)
}

type ProblemPage = {
  problem: Problem
  requestId: string
  stylesheets: string[]
  /** The URL that starts a new sign-in. */
  again: string
  console: string
}

const POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Shows why a sign-in failed. The reason may come from the provider and is escaped. */
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
