import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedError, errorCode } from './error.ts'
import { createDirectories } from './files.ts'
import { isAlive, type ProcessStamp, readStartTime, thisProcess } from './processes.ts'
// A lock between processes, based on directories `lock-<n>`, each with a file `holder` that identifies a process. The directory
// with the highest n is the lock. It is free if `holder` was renamed (which works on a full disk, too) or the process is dead. A
// process acquires it by creating n + 1, which only one can do: renaming onto a non-empty directory fails. The highest directory
// is never removed, only superseded. A slow process can therefore never remove or replace a lock that another one has acquired.

/** Runs `work` while no other process, and no other call in this process, holds the lock of this directory. */
export async function withLock<T>(directory: string, limitMs: number, work: () => Promise<T>): Promise<T> {
  await createDirectories(directory, 0o755)
  const mine = await acquire(directory, Date.now() + limitMs)
  try {
    return await work()
  } finally {
    const lock = lockPath(directory, mine)
    await rename(join(lock, 'holder'), join(lock, 'released'))
  }
}

async function acquire(directory: string, deadline: number): Promise<number> {
  for (;;) {
    const newest = await newestLock(directory)
    const holder = newest === 0 ? 'free' : await readHolder(directory, newest)
    if (holder === 'superseded') continue
    if (holder !== 'free' && isAlive(holder)) {
      if (Date.now() > deadline) throw new EmbeddedError(describeTimeout(holder.pid))
      await sleep(20)
      continue
    }
    const mine = newest + 1
    if (!(await createLock(directory, mine))) continue
    if ((await newestLock(directory)) === mine) {
      await removeOlder(directory, mine)
      return mine
    }
    // Other processes created higher numbers and removed the older ones before this one existed.
    await rm(lockPath(directory, mine), { recursive: true, force: true })
  }
}

async function createLock(directory: string, number: number): Promise<boolean> {
  const prepared = join(directory, `prepared-${process.pid}-${Math.random().toString(36).slice(2)}`)
  await mkdir(prepared)
  await writeFile(join(prepared, 'holder'), JSON.stringify(thisProcess()))
  try {
    await rename(prepared, lockPath(directory, number))
    return true
  } catch (error) {
    await rm(prepared, { recursive: true, force: true })
    if (['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(errorCode(error) ?? '')) return false
    throw error
  }
}

async function readHolder(directory: string, number: number): Promise<ProcessStamp | 'free' | 'superseded'> {
  try {
    return JSON.parse(await readFile(join(lockPath(directory, number), 'holder'), 'utf8')) as ProcessStamp
  } catch (error) {
    if (error instanceof SyntaxError) return 'free' // truncated by a power failure, which ended its holder too
    if (errorCode(error) === 'ENOENT') return (await newestLock(directory)) === number ? 'free' : 'superseded'
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
    const creator = Number(/^prepared-(\d+)/.exec(name)?.[1] ?? process.pid)
    if (number < mine || readStartTime(creator) === null)
      await rm(join(directory, name), { recursive: true, force: true }).catch(() => {})
  }
}

const lockPath = (directory: string, number: number) => join(directory, `lock-${number}`)

const describeTimeout = (pid: number) =>
  `Another process (${pid}) has been starting or stopping PostgreSQL in this data directory for too long. ` +
  `If it hangs, stop it (kill ${pid}) and retry.`

// Who uses the cluster of a data directory: at most one server, any number of commands. Read and written under the lock only.

export type Role = 'server' | 'command'
export type User = ProcessStamp & { id: string; role: Role }

/** The users whose processes are alive. */
export async function liveUsers(directory: string): Promise<User[]> {
  try {
    const users = JSON.parse(await readFile(join(directory, 'users.json'), 'utf8')) as User[]
    return users.filter(isAlive)
  } catch (error) {
    // Truncated by a power failure, which ended all listed processes too.
    if (errorCode(error) === 'ENOENT' || error instanceof SyntaxError) return []
    throw error
  }
}

export async function addUser(directory: string, role: Role): Promise<User> {
  const user = { id: randomUUID(), role, ...thisProcess() }
  await writeUsers(directory, [...(await liveUsers(directory)), user])
  return user
}

export async function removeUser(directory: string, user: User): Promise<void> {
  const others = (await liveUsers(directory)).filter(({ id }) => id !== user.id)
  await writeUsers(directory, others)
}

async function writeUsers(directory: string, users: User[]): Promise<void> {
  const prepared = join(directory, `users-${process.pid}.json`)
  await writeFile(prepared, JSON.stringify(users))
  await rename(prepared, join(directory, 'users.json'))
}
