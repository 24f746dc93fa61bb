import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import { type ConsoleFile, type ConsoleFiles, readConsoleFiles } from '../../src/http/console/files.ts'
import { buildPage, listImports } from '../../src/http/console/page.ts'

/** By module, its static and dynamic imports. */
function importGraph({ files, libraries }: ConsoleFiles): Map<string, string[]> {
  const graph = new Map<string, string[]>()
  for (const [name, { text }] of files) {
    if (!name.endsWith('.ts')) continue
    const later = [...text.matchAll(/\bimport\('([^']+)'\)/g)].map(match => match[1]!)
    graph.set(
      name,
      [...listImports(text), ...later].map(
        specifier => libraries.get(specifier) ?? posix.join(posix.dirname(name), specifier),
      ),
    )
  }
  return graph
}

test('every imported module is served', async () => {
  const served = await readConsoleFiles()
  const graph = importGraph(served)
  assert.ok(graph.size > 40)
  for (const [name, imported] of graph)
    for (const target of imported) assert.ok(served.files.has(target), `${name} imports ${target}`)
})

test('there is no import cycle', async () => {
  const graph = importGraph(await readConsoleFiles())
  const state = new Map<string, 'open' | 'done'>()
  const visit = (name: string, path: string[]) => {
    assert.notEqual(state.get(name), 'open', `a circle: ${[...path, name].join(' → ')}`)
    if (state.has(name)) return
    state.set(name, 'open')
    for (const target of graph.get(name) ?? []) visit(target, [...path, name])
    state.set(name, 'done')
  }
  for (const name of graph.keys()) visit(name, [])
})

test('every module is used', async () => {
  const graph = importGraph(await readConsoleFiles())
  const used = new Set([...graph.values()].flat())
  const entries = ['app.ts', 'api/types.ts']
  const unused = [...graph.keys()].filter(name => !used.has(name) && !entries.includes(name))
  assert.deepEqual(unused, [])
})

const gzipped = ({ asset }: ConsoleFile) => asset.bodies.find(({ coding }) => coding === 'gzip')!.body.length

test('the first page is at most 250 KB on the wire', async () => {
  const served = await readConsoleFiles()
  const { file } = buildPage(served)
  const names = [...file.text.matchAll(/(?:src|href)="\/console\/[^/]+\/([^"]+)"/g)].map(match => match[1]!)
  const bytes = [...new Set(names)].reduce((sum, name) => sum + gzipped(served.files.get(name)!), gzipped(file))
  assert.ok(names.includes('lib/preact.js'))
  assert.ok(bytes <= 250_000, `${bytes} bytes`)
})

test('no page needs more than 150 KB of compressed JavaScript', async () => {
  const served = await readConsoleFiles()
  const graph = staticGraph(served)
  const closure = (name: string, found = new Set<string>()): Set<string> => {
    if (found.has(name)) return found
    found.add(name)
    for (const target of graph.get(name) ?? []) closure(target, found)
    return found
  }
  const pages = [...graph.keys()].filter(name => name.startsWith('pages/'))
  assert.ok(pages.length > 30)
  for (const page of pages) {
    const names = [...closure(page, closure('app.ts')), 'lib/uplot.js']
    const bytes = names.reduce((sum, name) => sum + gzipped(served.files.get(name)!), 0)
    assert.ok(bytes <= 150_000, `${page}: ${bytes} bytes`)
  }
})

/** Without the modules that are loaded later. */
function staticGraph({ files, libraries }: ConsoleFiles): Map<string, string[]> {
  const scripts = [...files].filter(([name]) => /\.[jt]s$/.test(name))
  return new Map(
    scripts.map(([name, { text }]) => {
      const imported = listImports(text).map(
        specifier => libraries.get(specifier) ?? posix.join(posix.dirname(name), specifier),
      )
      return [name, imported.filter(target => files.has(target))]
    }),
  )
}
