import { chmod, chown, lstat, mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, inaccessiblePart } from './account.ts'
import { errorCode } from './error.ts'
import { createDirectory } from './files.ts'
import type { Home } from './home.ts'
import { asDirectoryList, type Settings } from './settings.ts'

const longestPathBytes = 103 // the limit is 104 bytes on macOS, with the final zero, and 108 on Linux

/** PostgreSQL listens on a Unix socket, or on Windows on a free port of the loopback interface. */
export async function listenSettings(home: Home, account: Account | null): Promise<Settings> {
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
  return fits && (await ensurePrivateDirectory(inside, account)) ? inside : temporaryDirectory(home, account)
}

async function temporaryDirectory(home: Home, account: Account | null): Promise<string> {
  const own = tmpdir()
  const fits = Buffer.byteLength(own) <= 50 && (await inaccessiblePart(own, account, 0o1)) === null
  const base = fits ? own : '/tmp'
  // The name is the same at every start of a cluster, so that crashes do not leave several directories.
  const usual = join(base, home.name)
  if (await ensurePrivateDirectory(usual, account)) return usual
  const other = await mkdtemp(`${usual}-`)
  await chmod(other, 0o700)
  if (account) await chown(other, account.uid, account.gid)
  return other
}

/** Creates the directory. Returns false if the path exists and is not a directory of this user or the account. */
async function ensurePrivateDirectory(path: string, account: Account | null): Promise<boolean> {
  try {
    await createDirectory(path, 0o700, account)
    return true
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
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
