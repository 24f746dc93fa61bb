import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { declarationsFolder, generateDeclarations, generateTypes, typesFile } from '../../../sdk/js/scripts/types.ts'
import { sharedServer } from '../../server.ts'
import { compilers, emptyProject, type Project } from './project.ts'

let project: Project
before(async () => {
  project = await emptyProject()
  for (const file of ['good.ts', 'bad.ts'])
    await copyFile(new URL(`types/${file}`, import.meta.url), join(project.directory, file))
})
after(() => project.remove())

const STRICT = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', '--exactOptionalPropertyTypes']
/** Without DOM and Node types: the package needs neither. Its own types are checked too. */
const BARE = [...STRICT, '--lib', 'es2022']

function compile(compiler: string, ...args: string[]): Promise<string> {
  return new Promise(resolve =>
    execFile(process.execPath, [compiler, ...args, '--pretty', 'false'], { cwd: project.directory }, (_, stdout) =>
      resolve(stdout),
    ),
  )
}

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

for (const [version, compiler] of Object.entries(compilers)) {
  test(`correct use compiles with ${version}, and each line of incorrect use does not`, async () => {
    const lines = (await readFile(join(project.directory, 'bad.ts'), 'utf8')).split('\n')
    const wrong = lines.flatMap((line, index) => (line.includes('// wrong') ? [index + 1] : []))
    const output = await compile(compiler, ...BARE, 'good.ts', 'bad.ts')
    const found = [...output.matchAll(/^bad\.ts\((\d+),/gm)].map(([, line]) => Number(line))
    assert.deepEqual([...new Set(found)], wrong, output)
    // Every other error begins with another file name, or with none.
    assert.doesNotMatch(output, /^(?!bad\.ts\(|\s|$)/m)
    assert.doesNotMatch(output, /node_modules/)
  })
}

test('every example of the README and of the guide compiles', async () => {
  const files = ['sdk/js/README.md', 'docs/guides/sdk.md'].map(async file => {
    const text = await readFile(new URL(`../../../${file}`, import.meta.url), 'utf8')
    const examples = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code!)
    assert.ok(examples.length > 3)
    return Promise.all(examples.map((code, index) => writeExample(`${file.replace(/\W/g, '-')}-${index}.ts`, code)))
  })
  const names = (await Promise.all(files)).flat()
  assert.equal(await compile(compilers['TypeScript 7'], ...STRICT, '--lib', 'es2022,dom', ...names), '')
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

test('the stored declarations are those of the sources', async () => {
  for (const [name, text] of await generateDeclarations())
    assert.equal(await readFile(declarationsFolder + name, 'utf8'), text, `${name} is outdated: run npm run sdk:types`)
})
