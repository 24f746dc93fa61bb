import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { copyFile, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { packSdk } from '../../../src/http/sdk/files.ts'

const run = promisify(execFile)

const root = new URL('../../../', import.meta.url).pathname
const sdk = join(root, 'sdk/js')

/** Compilers by version: ours, and an older one in wide use. */
export const compilers = {
  'TypeScript 7': join(root, 'node_modules/typescript/bin/tsc'),
  'TypeScript 5': join(sdk, 'node_modules/typescript/bin/tsc'),
}

export type Project = Awaited<ReturnType<typeof emptyProject>>

/** An empty project that contains only the packed SDK, installed without a network. */
export async function emptyProject() {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'kontor-sdk-'))
  const tarball = join(directory, 'kontor-sdk.tgz')
  await writeFile(tarball, packSdk())
  await writeFile(join(directory, 'package.json'), '{"name":"shop","private":true,"type":"module"}')
  await npm(directory, ['install', '--offline', '--no-audit', '--no-fund', tarball])
  return {
    directory,
    installed: join(directory, 'node_modules/@kontor/sdk'),
    /** Runs a program of programs/ in the project. Rejects with its output if it fails. */
    async run(node: string, program: string, environment: Record<string, string>): Promise<string> {
      const file = join(directory, program)
      await copyFile(new URL(`programs/${program}`, import.meta.url), file)
      const { stdout } = await run(node, [file], {
        env: { PATH: process.env.PATH, ...environment },
        cwd: directory,
      })
      return stdout
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

export async function npm(cwd: string, args: string[]): Promise<void> {
  // npm passes its settings in the environment, including those of the test run
  const environment = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))
  await run('npm', args, { cwd, env: Object.fromEntries(environment) })
}

/** By version: the Node that runs the tests, and the one on the PATH, which is often older. */
export async function nodes(): Promise<Map<string, string>> {
  const found = new Map([[process.version, process.execPath]])
  const own = (process.env.PATH ?? '')
    .split(delimiter)
    .filter(folder => !folder.includes('node_modules'))
    .map(folder => join(folder, 'node'))
    .find(isProgram)
  if (own) found.set((await run(own, ['--version'])).stdout.trim(), own)
  return found
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
