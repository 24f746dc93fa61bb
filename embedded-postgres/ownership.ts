import { randomUUID } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from './error.ts'
import { isAlive, type ProcessStamp, thisProcess } from './processes.ts'

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
