import { chmod, chown, lstat, mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, inaccessiblePart } from './account.ts'
import { codeOf } from './error.ts'
import { makeDirectory } from './files.ts'
import type { Home } from './home.ts'
import { asDirectoryList, type Settings } from './settings.ts'

const longestPathBytes = 103 // macOS has 104 bytes for it, with the final zero; Linux has 108

/** Where PostgreSQL shall listen: a Unix socket where there are such, else a free port of the loopback interface. */
export async function listening(home: Home, account: Account | null): Promise<Settings> {
  if (process.platform === 'win32') {
    return { listen_addresses: '127.0.0.1', port: String(await freePort()) }
  }
  const directory = await socketDirectory(home, account)
  return {
    listen_addresses: '',
    port: '5432',
    unix_socket_directories: asDirectoryList(directory),
    unix_socket_permissions: '0700',
  }
}

export const socketPath = (directory: string, port: number) => join(directory, `.s.PGSQL.${port}`)

async function socketDirectory(home: Home, account: Account | null): Promise<string> {
  const inside = join(home.directory, 'socket')
  const fits = Buffer.byteLength(socketPath(inside, 5432)) <= longestPathBytes
  return fits && (await makePrivate(inside, account)) ? inside : temporaryDirectory(home, account)
}

async function temporaryDirectory(home: Home, account: Account | null): Promise<string> {
  const own = tmpdir()
  const fits = Buffer.byteLength(own) <= 50 && (await inaccessiblePart(own, account, 0o1)) === null
  const base = fits ? own : '/tmp'
  // The same name for the same cluster each time, so that crashes do not litter.
  const usual = join(base, home.name)
  if (await makePrivate(usual, account)) return usual
  const other = await mkdtemp(`${usual}-`)
  await chmod(other, 0o700)
  if (account) await chown(other, account.uid, account.gid)
  return other
}

/** Makes the directory, or sees that the one there is a real directory that belongs to us or the account. */
async function makePrivate(path: string, account: Account | null): Promise<boolean> {
  try {
    await makeDirectory(path, 0o700, account)
    return true
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
  const found = await lstat(path)
  if (!found.isDirectory() || ![account?.uid, process.getuid?.()].includes(found.uid)) return false
  await chmod(path, 0o700)
  if (account) await chown(path, account.uid, account.gid)
  return true
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
