import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, EmbeddedError } from './error.ts'
import { isAlive, type ProcessStamp, startOf, thisProcess } from './processes.ts'
// A lock between processes, made of directories `lock-<n>`, each with a file that names its holder. The highest n is the lock;
// it is free when that file was renamed (which works on a full disk, too) or its holder is dead. Taking it means making n + 1, which only one process can do
// (renaming onto a directory that is not empty fails). The highest one is never removed, only overtaken, so there is
// no moment in which a slow process could remove or replace a lock that has meanwhile passed to somebody else.

/** Runs `work` while no other process (nor another call in this one) runs its own under the same directory. */
export async function withLock<T>(directory: string, limitMs: number, work: () => Promise<T>): Promise<T> {
  await mkdir(directory, { recursive: true, mode: 0o755 })
  const mine = await take(directory, Date.now() + limitMs)
  try {
    return await work()
  } finally {
    const lock = lockPath(directory, mine)
    await rename(join(lock, 'holder'), join(lock, 'released'))
  }
}

async function take(directory: string, deadline: number): Promise<number> {
  for (;;) {
    const newest = await newestLock(directory)
    const holder = newest === 0 ? 'free' : await holderOf(directory, newest)
    if (holder === 'overtaken') continue
    if (holder !== 'free' && isAlive(holder)) {
      if (Date.now() > deadline) throw new EmbeddedError(tooLong(holder.pid))
      await sleep(20)
      continue
    }
    const mine = newest + 1
    if (!(await make(directory, mine))) continue
    if ((await newestLock(directory)) === mine) {
      await removeOlder(directory, mine)
      return mine
    }
    // Others went past this number and tidied it away before it was made.
    await rm(lockPath(directory, mine), { recursive: true, force: true })
  }
}

async function make(directory: string, number: number): Promise<boolean> {
  const prepared = join(directory, `prepared-${process.pid}-${Math.random().toString(36).slice(2)}`)
  await mkdir(prepared)
  await writeFile(join(prepared, 'holder'), JSON.stringify(thisProcess()))
  try {
    await rename(prepared, lockPath(directory, number))
    return true
  } catch (error) {
    await rm(prepared, { recursive: true, force: true })
    if (['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(codeOf(error) ?? '')) return false
    throw error
  }
}

async function holderOf(directory: string, number: number): Promise<ProcessStamp | 'free' | 'overtaken'> {
  try {
    return JSON.parse(await readFile(join(lockPath(directory, number), 'holder'), 'utf8')) as ProcessStamp
  } catch (error) {
    if (error instanceof SyntaxError) return 'free' // cut short by a power failure: its holder died with the machine
    if (codeOf(error) === 'ENOENT') return (await newestLock(directory)) === number ? 'free' : 'overtaken'
    throw error
  }
}

async function newestLock(directory: string): Promise<number> {
  const numbers = (await readdir(directory)).map(name => Number(/^lock-(\d+)$/.exec(name)?.[1] ?? 0))
  return Math.max(0, ...numbers)
}

async function removeOlder(directory: string, mine: number): Promise<void> {
  for (const name of await readdir(directory)) {
    const number = Number(/^lock-(\d+)$/.exec(name)?.[1] ?? mine)
    const maker = Number(/^prepared-(\d+)/.exec(name)?.[1] ?? process.pid)
    if (number < mine || startOf(maker) === null)
      await rm(join(directory, name), { recursive: true, force: true }).catch(() => {})
  }
}

const lockPath = (directory: string, number: number) => join(directory, `lock-${number}`)

const tooLong = (pid: number) =>
  `Another process (${pid}) has been starting or stopping PostgreSQL in this data directory for too long. ` +
  `If it hangs, end it (kill ${pid}) and try again.`

// Who uses the cluster of a data directory: at most one server, any number of commands. Read and written under the lock only.

export type Role = 'server' | 'command'
export type User = ProcessStamp & { id: string; role: Role }

/** The users that are still alive; entries of crashed processes fall out. */
export async function liveUsers(directory: string): Promise<User[]> {
  try {
    const users = JSON.parse(await readFile(join(directory, 'users.json'), 'utf8')) as User[]
    return users.filter(isAlive)
  } catch (error) {
    // Cut short by a power failure: whoever stood there died with the machine.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return []
    throw error
  }
}

export async function enter(directory: string, role: Role): Promise<User> {
  const user = { id: randomUUID(), role, ...thisProcess() }
  await write(directory, [...(await liveUsers(directory)), user])
  return user
}

export async function leave(directory: string, user: User): Promise<void> {
  const others = (await liveUsers(directory)).filter(({ id }) => id !== user.id)
  await write(directory, others)
}

async function write(directory: string, users: User[]): Promise<void> {
  const prepared = join(directory, `users-${process.pid}.json`)
  await writeFile(prepared, JSON.stringify(users))
  await rename(prepared, join(directory, 'users.json'))
}
