// A separate file without dependencies: `npm pack` in sdk/js and the image use it before any package is installed.
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { stripTypes } from '../console/strip-types.ts'

const sdk = new URL('../../../sdk/js/', import.meta.url)

export type PackedFile = { path: string; content: Buffer }

/**
 * dist/ of the package @kontor/sdk: JavaScript without types, and the declarations. The declarations are stored in sdk/js/types
 * (`npm run sdk:types`), because creating them takes the TypeScript compiler, which a server does not have.
 */
export function buildSdk(): PackedFile[] {
  const files: PackedFile[] = []
  for (const name of readdirSync(new URL('src/', sdk)).sort()) {
    const source = readFileSync(new URL(`src/${name}`, sdk), 'utf8')
    const stem = name.slice(0, -'.ts'.length)
    const isTypesOnly = stem === 'openapi'
    const script = isTypesOnly ? 'export {}\n' : stripTypes(source).replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")
    const types = isTypesOnly ? source : readFileSync(new URL(`types/${stem}.d.ts`, sdk), 'utf8')
    files.push({ path: `dist/${stem}.js`, content: Buffer.from(withoutBlankLines(script)) })
    files.push({ path: `dist/${stem}.d.ts`, content: Buffer.from(types.replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'")) })
  }
  return files
}

/** The package as `npm pack` creates it, and the same bytes every time: npm records a hash of it. */
export function packSdk(): Buffer {
  const {
    scripts: _,
    devDependencies: __,
    ...manifest
  } = JSON.parse(readFileSync(new URL('package.json', sdk), 'utf8'))
  const documents = ['README.md', 'LICENSE'].map(path => ({ path, content: readFileSync(new URL(path, sdk)) }))
  const files = [
    { path: 'package.json', content: Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`) },
    ...documents,
    ...buildSdk(),
  ]
  return gzipSync(tar(files.map(({ path, content }) => ({ path: `package/${path}`, content }))), { level: 9 })
}

/** Stripping replaces types with spaces. */
function withoutBlankLines(text: string): string {
  const lines = text.split('\n').map(line => line.trimEnd())
  return lines.join('\n').replace(/\n{3,}/g, '\n\n')
}

const BLOCK = 512
// The time that npm uses.
const MODIFIED_S = 499_162_500

/** An archive in the ustar format. */
function tar(files: PackedFile[]): Buffer {
  const blocks = files.flatMap(({ path, content }) => {
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)
    return [header(path, content.length), content, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function header(path: string, size: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  block.write(path, 0, 100, 'latin1')
  block.write(`${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100, 'latin1')
  block.write(`${octal(size, 11)}\0${octal(MODIFIED_S, 11)}\0`, 124, 'latin1')
  block.write('        0', 148, 'latin1')
  block.write('ustar\x0000', 257, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return block
}
