import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { compilers, type Project } from './project.ts'

export const STRICT = [
  ...['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', '--exactOptionalPropertyTypes'],
]
/** Without DOM and Node types: the package needs neither. Its own types are checked too. */
const BARE = [...STRICT, '--lib', 'es2022']

/** Returns what the compiler prints. */
export function compile({ directory }: Project, version: keyof typeof compilers, ...args: string[]): Promise<string> {
  const words = [compilers[version], ...args, '--pretty', 'false']
  return new Promise(resolve => execFile(process.execPath, words, { cwd: directory }, (_, stdout) => resolve(stdout)))
}

/** Correct use compiles, and each line of incorrect use does not. */
export async function assertUse(project: Project, version: keyof typeof compilers): Promise<void> {
  for (const file of ['good.ts', 'bad.ts'])
    await copyFile(new URL(`types/${file}`, import.meta.url), join(project.directory, file))
  const lines = (await readFile(join(project.directory, 'bad.ts'), 'utf8')).split('\n')
  const wrong = lines.flatMap((line, index) => (line.includes('// wrong') ? [index + 1] : []))
  const output = await compile(project, version, ...BARE, 'good.ts', 'bad.ts')
  const found = [...output.matchAll(/^bad\.ts\((\d+),/gm)].map(([, line]) => Number(line))
  assert.deepEqual([...new Set(found)], wrong, output)
  // Every other error begins with another file name, or with none.
  assert.doesNotMatch(output, /^(?!bad\.ts\(|\s|$)/m)
  assert.doesNotMatch(output, /node_modules/)
}
