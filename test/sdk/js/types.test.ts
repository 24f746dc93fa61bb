import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { generateTypes, typesFile } from '../../../sdk/js/scripts/types.ts'
import { sharedServer } from '../../server.ts'
import { assertUse, compile, STRICT } from './compile.ts'
import { emptyProject, type Project } from './project.ts'

let project: Project
before(async () => {
  project = await emptyProject()
})
after(() => project.remove())

test('the types are those of the OpenAPI document', async t => {
  const server = await sharedServer()
  t.after(() => server.close())
  const [made, kept] = [await generateTypes(server.url), await readFile(typesFile, 'utf8')]
  assert.ok(shape(made) === shape(kept), 'the API has changed: npm start, then npm run sdk:types')
})

/** Ignores comments, because a changed description does not change a type. */
function shape(types: string): string {
  return types.replace(/^ *\/\*\*.*?\*\/\n/gms, '')
}

test('correct use compiles with TypeScript 7, and each line of incorrect use does not', () =>
  assertUse(project, 'TypeScript 7'))

test('every example of the README and of the guide compiles', async () => {
  const files = ['sdk/js/README.md', 'docs/guides/sdk.md'].map(async file => {
    const text = await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8')
    const examples = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!)
    assert.ok(examples.length > 3)
    return Promise.all(examples.map((code, index) => writeExample(`${file.replace(/\W/g, '-')}-${index}.ts`, code)))
  })
  const names = (await Promise.all(files)).flat()
  assert.equal(await compile(project, 'TypeScript 7', ...STRICT, '--lib', 'es2022,dom', ...names), '')
})

/** Declares what an example assumes. */
async function writeExample(name: string, code: string): Promise<string> {
  const isUsed = /\bkontor\./.test(code) && !/\bconst kontor\b/.test(code)
  const prelude = [
    'declare const process: { env: Record<string, string | undefined> }',
    ...(isUsed ? ["import { Kontor as Client } from '@kontor/sdk'", 'declare const kontor: Client'] : []),
  ]
  await writeFile(join(project.directory, name), `${prelude.join('\n')}\n${code}\nexport {}\n`)
  return name
}
