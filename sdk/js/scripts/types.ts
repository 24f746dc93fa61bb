// npm run sdk:types [-- http://localhost:8080]: generates src/openapi.ts from the OpenAPI document of a running server.
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
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
  const schema = await openapiTypescript(withoutExamples(onlyOurs(document)), {
    emptyObjectsUnknown: true,
    alphabetize: true,
  })
  return HEADER + astToString(schema)
}

function onlyOurs(document: OpenAPI3): OpenAPI3 {
  const paths = Object.entries(document.paths ?? {}).filter(([, operations]) =>
    Object.values(operations).some(({ tags }) => TAGS.includes(tags?.[0])),
  )
  return { ...document, paths: Object.fromEntries(paths) }
}

/** Examples would be two thirds of the file. Operation ids are removed, because the types are keyed by path. */
function withoutExamples<Value>(value: Value): Value {
  const isLeftOut = (key: string, inner: unknown) =>
    /^examples?$/.test(key) || (key === 'operationId' && typeof inner === 'string')
  return JSON.parse(JSON.stringify(value, (key, inner) => (isLeftOut(key, inner) ? undefined : inner)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(typesFile, await generateTypes(process.argv[2] ?? 'http://localhost:8080'))
}
