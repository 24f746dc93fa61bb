// An older compiler in wide use. It is slower than ours.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { declarationsFolder, generateDeclarations } from '../../../sdk/js/scripts/types.ts'
import { assertUse } from './compile.ts'
import { emptyProject } from './project.ts'

test('correct use compiles with TypeScript 5, and each line of incorrect use does not', async t => {
  const project = await emptyProject()
  t.after(() => project.remove())
  await assertUse(project, 'TypeScript 5')
})

test('the stored declarations are those of the sources', async () => {
  for (const [name, text] of await generateDeclarations())
    assert.equal(await readFile(declarationsFolder + name, 'utf8'), text, `${name} is outdated: run npm run sdk:types`)
})
