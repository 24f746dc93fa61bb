import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { editorCommand } from '../../config/editor.ts'
import { isObject } from '../../domain/json/json.ts'
import { UsageError } from '../errors.ts'

/** Opens the body in the user's editor and returns the edited body. */
export async function edited(body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-'))
  const file = join(directory, 'sample.json')
  try {
    await writeFile(file, `${JSON.stringify(body, null, 2)}\n`)
    const editor = editorCommand()
    // Through a shell, because $EDITOR may contain options.
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'editor', file], { stdio: 'inherit' })
    const [code] = await once(child, 'close')
    if (code !== 0) throw new UsageError(`${editor} exited with code ${code}. Nothing was sent.`)
    return objectIn(await readFile(file, 'utf8'))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // reported below
  }
  throw new UsageError('The edited text is not a JSON object. Nothing was sent.')
}
