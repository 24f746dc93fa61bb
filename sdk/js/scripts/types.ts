// npm run sdk:types [-- http://localhost:8080]: generates src/openapi.ts from the OpenAPI document of a running server, and the
// declarations in types/.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTypescript, { astToString, type OpenAPI3 } from 'openapi-typescript'

export const typesFile = fileURLToPath(new URL('../src/openapi.ts', import.meta.url))

// The routes that the client calls.
const TAGS = ['Records', 'Events', 'Subscriptions']

const HEADER = `// Generated from /openapi.json by \`npm run sdk:types\`. Do not edit. test/sdk/js/types.test.ts fails if it is outdated.

`

export async function generateTypes(url: string): Promise<string> {
  const answer = await fetch(new URL('/openapi.json', url))
  if (!answer.ok) throw new Error(`${answer.url} answers ${answer.status}`)
  const document = (await answer.json()) as OpenAPI3
  return HEADER + (await typesOf(onlyOurs(document)))
}

export async function typesOf(document: OpenAPI3): Promise<string> {
  const options = { emptyObjectsUnknown: true, alphabetize: true }
  return astToString(await openapiTypescript(withoutExamples(document), options))
}

function onlyOurs(document: OpenAPI3): OpenAPI3 {
  const paths = Object.entries(document.paths ?? {}).filter(([, operations]) =>
    Object.values(operations).some(({ tags }) => TAGS.includes(tags?.[0])),
  )
  const ours = Object.fromEntries(paths)
  return { ...document, paths: ours, components: usedComponents(ours, document.components ?? {}) }
}

/** The components that the paths refer to, directly or through other components. */
function usedComponents(paths: object, components: object): NonNullable<OpenAPI3['components']> {
  const used: Record<string, Record<string, unknown>> = {}
  const collect = (value: object) => {
    for (const [, kind, name] of JSON.stringify(value).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      if (used[kind!]?.[name!] !== undefined) continue
      const component = (components as typeof used)[kind!]![name!] as object
      used[kind!] = { ...used[kind!], [name!]: component }
      collect(component)
    }
  }
  collect(paths)
  return used
}

/** Examples would be two thirds of the file. Operation ids are removed, because the types are keyed by path. */
function withoutExamples<Value>(value: Value): Value {
  const isLeftOut = (key: string, inner: unknown) =>
    /^examples?$/.test(key) || (key === 'operationId' && typeof inner === 'string')
  return JSON.parse(JSON.stringify(value, (key, inner) => (isLeftOut(key, inner) ? undefined : inner)))
}

/** The declarations of the other files, by name. */
export async function generateDeclarations(): Promise<Map<string, string>> {
  const sdk = fileURLToPath(new URL('..', import.meta.url))
  const directory = await mkdtemp(join(tmpdir(), 'kontor-types-'))
  try {
    const compiler = join(sdk, 'node_modules/typescript/bin/tsc')
    await promisify(execFile)(process.execPath, [compiler, '-p', sdk, '--emitDeclarationOnly', '--outDir', directory])
    const names = (await readdir(directory)).filter(name => name !== 'openapi.d.ts').sort()
    return new Map(
      await Promise.all(names.map(async name => [name, await readFile(join(directory, name), 'utf8')] as const)),
    )
  } finally {
    await rm(directory, { recursive: true })
  }
}

export const declarationsFolder = fileURLToPath(new URL('../types/', import.meta.url))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(typesFile, await generateTypes(process.argv[2] ?? 'http://localhost:8080'))
  await rm(declarationsFolder, { recursive: true, force: true })
  await mkdir(declarationsFolder)
  for (const [name, text] of await generateDeclarations()) await writeFile(declarationsFolder + name, text)
}
