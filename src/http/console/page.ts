import { hash } from 'node:crypto'
import { posix } from 'node:path'
import { type ConsoleFile, type ConsoleFiles, createFile } from './files.ts'
import { escaped } from './problem-page.ts'

export type Page = { file: ConsoleFile; policy: string }

/** What is needed before anything can be shown, and what most look at first. */
const FIRST = ['app.ts', 'pages/overview.ts']

/** The one page of the console: where its modules are, what it may do, and where people sign in, if anywhere. */
export function pageOf(
  { version, files, libraries }: ConsoleFiles,
  signIn: { name: string; href: string } | null = null,
): Page {
  const base = `/console/${version}`
  const imports = Object.fromEntries([...libraries].map(([name, file]) => [name, `${base}/${file}`]))
  const importMap = JSON.stringify({ imports })
  const preload = firstModules(files, libraries).map(
    name => `<link rel="modulepreload" href="${base}/${name}" />`,
  )
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

/** The console handles admin keys: it talks to this server alone, and no text can become markup or script. */
function policyFor(importMap: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'`,
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** Modules import modules that import modules: named here, they all come at once instead of one level after another. */
function firstModules(files: ConsoleFiles['files'], libraries: ConsoleFiles['libraries']): string[] {
  const found = new Set<string>()
  const visit = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    for (const specifier of importsOf(files.get(name)!.text))
      visit(libraries.get(specifier) ?? posix.join(posix.dirname(name), specifier))
  }
  for (const name of FIRST) visit(name)
  return [...found]
}

/** What a module imports when it is loaded, not what it imports later, nor code that it shows. */
export function importsOf(source: string): string[] {
  return [
    ...source.matchAll(
      /(?:^|;)(?:import|export)\b[^'"`;()]*?\bfrom\s*['"]([^'"]+)['"]|(?:^|;)import\s*['"]([^'"]+)['"]/gm,
    ),
  ].map(([, from, bare]) => (from ?? bare)!)
}
