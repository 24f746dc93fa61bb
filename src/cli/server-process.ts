import { chown, readdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { type Account, findAccount, inaccessiblePart, isRoot } from '../../embedded-postgres/account.ts'
import { withExplanation } from '../../embedded-postgres/error.ts'
import { createDirectories } from '../../embedded-postgres/files.ts'
import type { Output } from './output.ts'
import { onStop } from './stop.ts'

/** The exit code of a server that had to abort work when it stopped. */
export const STUCK_EXIT_CODE = 3

/**
 * Closes the server: requests have `drainMs` to complete, and everything else as long again. Returns false if something hangs, for
 * example a statement in an unresponsive PostgreSQL. Aborting it is safe, because acknowledged data is already durable.
 */
export async function closeInTime(close: () => Promise<void>, drainMs: number, out: Output): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, 2 * drainMs, false as const)
  const isClosed = await Promise.race([close().then(() => true), late])
  clearTimeout(timer)
  if (!isClosed) sayAborted(drainMs, out)
  return isClosed
}

/** Ends the process when the time to stop is over, whatever hangs: also a start, or a PostgreSQL that does not stop. */
export function exitInTime(stopped: Promise<void>, drainMs: number, out: Output): void {
  void stopped.then(() => {
    setTimeout(() => {
      sayAborted(drainMs, out)
      process.exit(STUCK_EXIT_CODE)
    }, 2 * drainMs).unref()
  })
}

function sayAborted(drainMs: number, out: Output): void {
  out.say(
    `Shutdown took longer than ${(2 * drainMs) / 1_000} s (twice KONTOR_DRAIN_TIMEOUT). Remaining work is aborted. ` +
      'Acknowledged data is safe. Kontor processes it after the restart.',
  )
}

/** Resolves with the first request to stop. A second signal exits immediately. */
export function waitForStopSignal(out: Output): Promise<void> {
  return new Promise(resolve => {
    onStop(
      why => {
        out.say(`\nStopping (${why}): completing requests in flight. A second signal stops immediately.`)
        resolve()
      },
      () => out.say('Stopped immediately. Acknowledged data is safe. Kontor processes it after the restart.'),
    )
  })
}

/**
 * Request bodies become garbage as soon as they are stored, but V8 lets a heap of 60 MB grow to 250 MB before it collects.
 * Collecting when the heap has grown by 75% instead of doubled takes 3% more instructions per event, and saves about 20 MB under full
 * load. 65% takes another 2% and saves nothing more.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=75')
}

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
// Only root can bind lower ports.
const FIRST_OPEN_PORT = 1024

/**
 * For the embedded PostgreSQL, called before it starts: the process that starts PostgreSQL must also stop it, so both run as the
 * same user from the start. Returns a message, or null if that is impossible; `giveUpRoot` then returns the reason.
 */
export async function dropRootEarly({
  user,
  dataDir,
  ports,
}: {
  user: string
  dataDir: string
  ports: number[]
}): Promise<string | null> {
  if (!isRoot() || ports.some(port => port > 0 && port < FIRST_OPEN_PORT)) return null
  const account = await findAccount(user)
  if (account === null || (await inaccessiblePart(PACKAGE, account, 0o5))) return null
  await withExplanation(`The data directory ${dataDir} cannot be created.`, () => createDirectories(dirname(dataDir)))
  if (await inaccessiblePart(dirname(dataDir), account, 0o1)) return null
  await withExplanation(`The data directory ${dataDir} cannot be created.`, () => createDirectories(dataDir, 0o700))
  const { uid } = await stat(dataDir)
  // Existing files keep their owner: only an empty directory is handed over.
  if (uid !== account.uid && (await readdir(dataDir)).length > 0) return null
  await chown(dataDir, account.uid, account.gid)
  switchUser(account)
  return `Started as root. Kontor and PostgreSQL now run as ${user}.`
}

/**
 * Called when the ports are bound, because nothing after that needs root. Returns a message, or null if this process is not root.
 */
export async function dropRoot({ user, isEmbedded }: { user: string; isEmbedded: boolean }): Promise<string | null> {
  if (!isRoot()) return null
  const account = await findAccount(user)
  if (account === null)
    return `Running as root, because there is no user "${user}". Set KONTOR_USER to an existing user.`
  // Some modules are loaded later, when they are first needed.
  const blocked = await inaccessiblePart(PACKAGE, account, 0o5)
  if (blocked)
    return `Running as root, because the user "${user}" cannot read the program. Check the permissions of ${blocked}.`
  if (isEmbedded)
    return (
      `Running as root, because the embedded PostgreSQL runs as another user. Kontor switches to "${user}" if that user owns the ` +
      `data directory (or the directory is new and accessible to it) and the ports are above ${FIRST_OPEN_PORT - 1}.`
    )
  switchUser(account)
  return `Started as root. Kontor now runs as ${user}.`
}

function switchUser({ uid, gid }: Account): void {
  process.setgroups!([gid])
  process.setgid!(gid)
  process.setuid!(uid)
}
