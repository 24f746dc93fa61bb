import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Output } from '../../src/cli/output.ts'
import { runCommand } from '../../src/cli/program.ts'
import { eventually } from '../eventually.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

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
  return { code, out, err, json: () => JSON.parse(out) as never }
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
