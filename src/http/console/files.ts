import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Asset, asset } from '../assets.ts'
import { withoutTypes } from './without-types.ts'

export type ConsoleFile = { text: string; asset: Asset }

export type ConsoleFiles = {
  /** Changes with any of the files: their addresses contain it, so that a browser may keep them for good. */
  version: string
  files: Map<string, ConsoleFile>
  /** What a library is imported as, and which file that is. */
  libraries: Map<string, string>
}

const FOLDER = new URL('../../../console/', import.meta.url)

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Libraries come from node_modules as they are: each is one file of modules that a browser reads. */
const LIBRARIES: Record<string, string> = {
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  '@preact/signals': '@preact/signals',
  '@preact/signals-core': '@preact/signals-core',
  uplot: 'uplot/dist/uPlot.esm.js',
}
/** The made-up shop that fills a tenant from the console, under the paths that its modules import each other by. */
const DEMO = {
  specifier: 'kontor-demo',
  entry: 'demo/index.ts',
  folder: 'demo',
  beside: ['src/domain/time.ts', 'src/domain/samples.ts', 'src/domain/billing/calendar.ts'],
}
const STYLESHEETS = { 'lib/uplot.css': 'uplot/dist/uPlot.min.css' }

/**
 * Everything that the console consists of, by name: what a request asks for is looked up here and never on the disk.
 * One file a turn of the event loop, so that nobody who is served meanwhile waits for more than one (about 5 ms).
 */
export async function readConsoleFiles(): Promise<ConsoleFiles> {
  const files = new Map<string, ConsoleFile>()
  const add = async (name: string, text: string) => {
    files.set(name, fileOf(name, text))
    await nextTurn()
  }
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
    if (!TYPES[extname(path)]) continue
    const name = path.replaceAll('\\', '/')
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
    await add(name, name.endsWith('.ts') ? withoutTypes(text) : text)
  }
  const libraries = new Map<string, string>()
  for (const [specifier, source] of Object.entries(LIBRARIES)) {
    const name = `lib/${specifier.replaceAll('/', '-').replace('@', '')}.js`
    libraries.set(specifier, name)
    await add(name, textOf(source).replace(/\/\/# sourceMappingURL=\S+\s*$/, ''))
  }
  libraries.set(DEMO.specifier, DEMO.entry)
  const demo = readdirSync(new URL(`../${DEMO.folder}/`, FOLDER)).map(name => `${DEMO.folder}/${name}`)
  for (const name of [...demo, ...DEMO.beside])
    await add(name, withoutTypes(readFileSync(new URL(`../${name}`, FOLDER), 'utf8')))
  for (const [name, source] of Object.entries(STYLESHEETS)) await add(name, textOf(source))
  const tags = [...files].map(([name, file]) => `${name} ${file.asset.etag}`)
  return { version: hash('sha256', tags.sort().join('\n'), 'base64url').slice(0, 12), files, libraries }
}

export function fileOf(name: string, text: string): ConsoleFile {
  const plain = Buffer.from(text)
  return { text, asset: asset(TYPES[extname(name)]!, plain, { gzip: gzipSync(plain) }) }
}

function textOf(source: string): string {
  return readFileSync(new URL(import.meta.resolve(source)), 'utf8')
}
