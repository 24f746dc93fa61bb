import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findAccount, inaccessiblePart } from '../../embedded-postgres/account.ts'
import type { Output } from '../../src/cli/output.ts'
import { runCommand } from '../../src/cli/program.ts'
import { eventually } from '../eventually.ts'

const main = fileURLToPath(new URL('../../src/main.mjs', import.meta.url))

export type Answer = { code: number; out: string; err: string; json: () => never }

/** Runs a command line in this process. */
export async function kontor(...words: string[]): Promise<Answer> {
  let out = ''
  let err = ''
  const print = (text: string) => {
    out += text
  }
  const say = (text: string) => {
    err += `${text}\n`
  }
  const output: Output = {
    json: value => print(`${JSON.stringify(value)}\n`),
    print,
    say,
    sayNow: async text => say(text),
    exitCode: 0,
  }
  const code = await runCommand(words, output)
  const json = () => {
    if (out === '') throw new Error(`The command printed no result: ${err}`)
    return JSON.parse(out) as never
  }
  return { code, out, err, json }
}

/** Sets the database for the commands of this process. */
export function useDatabase(url: string, env: Record<string, string> = {}): void {
  const given: Record<string, string> = { DATABASE_URL: url, ...env }
  Object.assign(process.env, given)
  after(() => {
    for (const name of Object.keys(given)) delete process.env[name]
  })
}

export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'kontor command '))
  t.after(async () => {
    // As root, the cluster may be stored elsewhere, with a link in the data directory.
    for (const name of await readdir(path).catch(() => [])) {
      const cluster = await readlink(join(path, name, 'postgres')).catch(() => null)
      if (cluster) await rm(cluster, { recursive: true, force: true })
    }
    await rm(path, { recursive: true, force: true })
  })
  return path
}

export type Running = {
  child: ChildProcess
  out: () => string
  err: () => string
  ended: Promise<number | null>
}

/** Starts a command as a separate process, which is killed when the test ends. */
export function startKontor(t: TestContext, words: string[], env: Record<string, string>, input?: string): Running {
  return startProgram(t, process.execPath, [main, ...words], env, { input })
}

/** Like npm: in a shell, which is the process that receives signals. */
export function startKontorInShell(t: TestContext, words: string[], env: Record<string, string>): Running {
  const quoted = [process.execPath, main, ...words].map(word => `'${word}'`).join(' ')
  return startProgram(t, 'sh', ['-c', `${quoted}; exit $?`], env)
}

export function startProgram(
  t: TestContext,
  program: string,
  words: string[],
  env: Record<string, string>,
  { input, cwd }: { input?: string | undefined; cwd?: string } = {},
): Running {
  const child = spawn(program, words, {
    env: { ...process.env, ...env },
    ...(cwd !== undefined && { cwd }),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(input)
  const streams = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', text => {
    streams.out += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    streams.err += text
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { child, out: () => streams.out, err: () => streams.err, ended }
}

/** Resolves when stderr matches. Rejects with the output if the process exits first. */
export async function hears({ err, ended }: Running, pattern: RegExp): Promise<RegExpExecArray> {
  let isOver = false
  ended.then(() => {
    isOver = true
  })
  return eventually(
    `stderr to say ${pattern}`,
    () => {
      const match = pattern.exec(err())
      if (!match && isOver) throw new Error(`it ended without saying ${pattern}:\n${err()}`)
      return match
    },
    { state: err },
  )
}

/** The last lines that a server prints when it has started. */
export const END_OF_BANNER = /kill -TERM \d+/
export const START_SETTINGS = { KONTOR_OPS_PORT: '0', KONTOR_LOG_LEVEL: 'warn' }

export async function stop({ child, ended }: Running): Promise<number | null> {
  child.kill('SIGTERM')
  return ended
}

/** Whether a server that root starts can change to another user: not in a checkout that only root can read, for example. */
export async function canChangeUser(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false
  const account = await findAccount('nobody')
  return account !== null && (await inaccessiblePart(import.meta.dirname, account, 0o5)) === null
}

/** A stop ends in time while the embedded PostgreSQL hangs. */
export async function stopsFrozen(t: TestContext, running: Running, dataDir: string): Promise<void> {
  const [pid] = (await readFile(`${dataDir}/postgres/data/postmaster.pid`, 'utf8')).split('\n')
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', pid!])
  const all = [pid!, ...stdout.split('\n')].map(Number).filter(Boolean)
  t.after(() => {
    for (const each of all) tryKill(each, 'SIGKILL')
  })
  for (const each of all) tryKill(each, 'SIGSTOP')
  assert.equal(await stop(running), 3)
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has exited
  }
}
