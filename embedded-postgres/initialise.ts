import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { explain } from './error.ts'
import { makeDirectory, partialName, putInPlace, removeLeftovers, writeWhole } from './files.ts'
import { type Home, homeAt, linkIn } from './home.ts'
import { run } from './program.ts'

type Options = {
  dataDir: string
  target: string
  account: Account | null
  binaries: Binaries
  superuser: string
}

/** Makes a new cluster at `target`. Until the last step it has another name, so a crash leaves nothing that counts. */
export async function initialise({ dataDir, target, account, binaries, superuser }: Options): Promise<Home> {
  await removeLeftovers(dirname(target))
  const prepared = homeAt(partialName(target))
  try {
    // 711: the account must pass through to `data`; the password and the log beside it stay closed to it.
    await makeDirectory(prepared.directory, account ? 0o711 : 0o700, null)
    await makeDirectory(prepared.data, 0o700, account)
    const password = randomBytes(24).toString('base64url')
    await writeWhole(prepared.passwordFile, `${password}\n`)
    await runInitdb(prepared, password, { account, binaries, superuser })
    if (target !== linkIn(dataDir)) await writeWhole(prepared.dataDirectoryFile, dataDir)
    await putInPlace(prepared.directory, target)
  } catch (error) {
    await rm(prepared.directory, { recursive: true, force: true }).catch(() => {})
    throw error
  }
  return homeAt(target)
}

/** initdb syncs everything it wrote before it ends: 30 ms of its 800 ms on a laptop's disk. */
async function runInitdb(
  home: Home,
  password: string,
  { account, binaries, superuser }: Omit<Options, 'target' | 'dataDir'>,
): Promise<void> {
  // It runs as the account and takes the password from a file only, so for a moment there is one that it may read.
  const passwordFile = join(home.directory, 'password-for-initdb')
  await writeWhole(passwordFile, `${password}\n`, { owner: account })
  const { status, output } = await run(account, binaries.initdb, [
    `--pgdata=${home.data}`,
    `--username=${superuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
  ])
  if (status !== 0) throw explain(`PostgreSQL could not initialise a database in ${home.data}.`, output)
  await rm(passwordFile)
}
