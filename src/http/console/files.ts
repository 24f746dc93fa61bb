import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Asset, asset } from '../assets.ts'
import { stripTypes } from './strip-types.ts'

export type ConsoleFile = { text: string; asset: Asset }

export type ConsoleFiles = {
  /** Changes with any file. The addresses contain it, so browsers may cache the files forever. */
  version: string
  files: Map<string, ConsoleFile>
  /** The file of each library, by the specifier that imports it. */
  libraries: Map<string, string>
}

const FOLDER = new URL('../../../console/', import.meta.url)

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Libraries are served from node_modules unchanged. Each is one ES module file. */
const LIBRARIES: Record<string, string> = {
  preact: 'preact',
  'preact/hooks': 'preact/hooks',
  htm: 'htm',
  '@preact/signals': '@preact/signals',
  '@preact/signals-core': '@preact/signals-core',
  uplot: 'uplot/dist/uPlot.esm.js',
}
/** The generator of the demo tenant, under the paths by which its modules import each other. */
const DEMO = {
  specifier: 'kontor-demo',
  entry: 'demo/index.ts',
  folder: 'demo',
  beside: ['src/domain/time.ts', 'src/domain/samples.ts', 'src/domain/billing/calendar.ts'],
}
/** Rules that the console shares with the server. */
const SHARED = { 'kontor-time-zone': 'src/domain/time-zone.ts' }
const TYPEFACE = '@fontsource-variable/inter'
const STYLESHEETS = { 'lib/uplot.css': 'uplot/dist/uPlot.min.css', 'lib/inter.css': `${TYPEFACE}/index.css` }

/**
 * Reads all files of the console, by name. Requests are answered from this map, never from the disk.
 * The event loop runs between two files, so that other requests wait for one file at most (about 5 ms).
 */
export async function readConsoleFiles(): Promise<ConsoleFiles> {
  const files = new Map<string, ConsoleFile>()
  const add = async (name: string, text: string) => {
    files.set(name, createFile(name, text))
    await yieldToEventLoop()
  }
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
    if (!TYPES[extname(path)]) continue
    const name = path.replaceAll('\\', '/')
    const text = readFileSync(new URL(name, FOLDER), 'utf8')
    await add(name, name.endsWith('.ts') ? stripTypes(text) : text)
  }
  const libraries = new Map<string, string>()
  for (const [specifier, source] of Object.entries(LIBRARIES)) {
    const name = `lib/${specifier.replaceAll('/', '-').replace('@', '')}.js`
    libraries.set(specifier, name)
    await add(name, readLibrary(source).replace(/\/\/# sourceMappingURL=\S+\s*$/, ''))
  }
  libraries.set(DEMO.specifier, DEMO.entry)
  for (const [specifier, file] of Object.entries(SHARED)) libraries.set(specifier, file)
  const demo = readdirSync(new URL(`../${DEMO.folder}/`, FOLDER)).map(name => `${DEMO.folder}/${name}`)
  for (const name of [...demo, ...DEMO.beside, ...Object.values(SHARED)])
    await add(name, stripTypes(readFileSync(new URL(`../${name}`, FOLDER), 'utf8')))
  for (const [name, source] of Object.entries(STYLESHEETS)) await add(name, readLibrary(source))
  // The stylesheet of the typeface names them; a browser loads those of the alphabets on the page.
  for (const [, path] of files.get('lib/inter.css')!.text.matchAll(/url\(\.\/(files\/[\w-]+\.woff2)\)/g)) {
    const body = readFileSync(new URL(import.meta.resolve(`${TYPEFACE}/${path}`)))
    files.set(`lib/${path}`, { text: '', asset: asset(TYPES['.woff2']!, body, {}) })
  }
  const tags = [...files].map(([name, file]) => `${name} ${file.asset.etag}`)
  return { version: hash('sha256', tags.sort().join('\n'), 'base64url').slice(0, 12), files, libraries }
}

export function createFile(name: string, text: string): ConsoleFile {
  const plain = Buffer.from(text)
  return { text, asset: asset(TYPES[extname(name)]!, plain, { gzip: gzipSync(plain) }) }
}

function readLibrary(source: string): string {
  return readFileSync(new URL(import.meta.resolve(source)), 'utf8')
}
