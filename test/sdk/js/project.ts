import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'

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
  const tarball = await packed(directory)
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

/** The packed sources. Packed only once, because compiling takes five seconds and three test files need it. */
async function packed(directory: string): Promise<string> {
  const hash = createHash('sha256')
  for (const path of globSync('**/*', { cwd: sdk, exclude: isBuilt }).sort())
    if (statSync(join(sdk, path)).isFile()) hash.update(path).update(readFileSync(join(sdk, path)))
  const kept = join(root, 'node_modules/.cache', `kontor-sdk-${hash.digest('hex').slice(0, 16)}.tgz`)
  if (existsSync(kept)) return kept
  await mkdir(dirname(kept), { recursive: true })
  const own = `${kept}.${process.pid}`
  await copyFile(await pack(directory), own)
  await rename(own, kept)
  return kept
}

const isBuilt = (path: string) => ['node_modules', 'dist'].includes(basename(path))

/** Like `npm pack` in sdk/js, on a copy, because concurrent test files would share dist/. */
async function pack(directory: string): Promise<string> {
  const copy = join(directory, 'sdk')
  await cp(sdk, copy, { recursive: true, filter: path => !isBuilt(path) })
  const bin = [join(sdk, 'node_modules/.bin'), join(root, 'node_modules/.bin')].join(delimiter)
  await npm(copy, ['pack', '--pack-destination', directory], bin)
  await rm(copy, { recursive: true })
  return join(directory, 'kontor-sdk-0.1.0.tgz')
}

async function npm(cwd: string, args: string[], bin = ''): Promise<void> {
  // npm passes its settings in the environment, including those of the test run
  const environment = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))
  const PATH = [bin, process.env.PATH].filter(Boolean).join(delimiter)
  await run('npm', args, { cwd, env: { ...Object.fromEntries(environment), PATH } })
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
