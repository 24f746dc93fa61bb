import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { runCommand } from '../../src/cli/program.ts'

const LIMIT_MS = 60_000 // for commands that never end by themselves, such as `kontor tail`

export type Ran = { code: number; out: string; err: string }
export type Terminal = { run(command: string): Promise<Ran>; close(): Promise<void> }

/**
 * A bash in a directory, as a reader of a guide would use it. Variables persist between commands, and a failed request is a
 * failed command. `kontor` runs in this process, because a separate process would take half a second per command.
 */
export async function openTerminal(
  directory: string,
  environment: Record<string, string>,
  commandsUrl: string,
): Promise<Terminal> {
  const setup = `set -o pipefail
curl() { command curl -sS --fail-with-body --max-time 30 "$@"; }
kontor() {
  printf '%s\\0' "$@" | command curl -sS --data-binary @- -H "x-database-url: $DATABASE_URL" -D .head -o .out ${commandsUrl}
  cat .out; cat .err >&2
  return "$(sed -n 's/^x-exit-code: //p' .head | tr -d '\\r')"
}
npm() { case "$1 $2" in "install http"*) shift; [ -e package.json ] || echo '{}' > package.json; command npm install --no-audit --no-fund --loglevel=error "$@"; return;; esac; [ "$1 $2 $3" = 'run kontor --' ] || { echo "npm $* is not for a guide's test" >&2; return 127; }; shift 3; kontor "$@"; }
`
  const shell = spawn('bash', ['--noprofile', '--norc'], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(shell, 'close')
  let out = ''
  let heard = () => {}
  shell.stdout.setEncoding('utf8').on('data', text => {
    out += text
    heard()
  })
  shell.stdin.write(setup)
  return {
    async run(command) {
      out = ''
      await writeFile(join(directory, '.command'), command)
      const end = /\n<<end (\d+)>>\n$/
      const over = new Promise<void>((resolve, reject) => {
        const limit = setTimeout(() => {
          shell.kill('SIGKILL')
          reject(new Error(`no end after ${LIMIT_MS / 1000} s: ${command}`))
        }, LIMIT_MS)
        heard = () => {
          if (!end.test(out)) return
          clearTimeout(limit)
          resolve()
        }
      })
      shell.stdin.write(`. ./.command </dev/null 2>.stderr; printf '\\n<<end %s>>\\n' "$?"\n`)
      await over
      const code = Number(end.exec(out)![1])
      return { code, out: out.replace(end, ''), err: await readFile(join(directory, '.stderr'), 'utf8') }
    },
    async close() {
      shell.stdin.end()
      await ended
    },
  }
}

/** Runs posted command lines, with arguments separated by NUL. Also a webhook receiver at /hooks. */
export async function startCommands(serverUrl: () => string) {
  const server = createServer(async (request, response) => {
    if (request.url === '/hooks') {
      request.resume()
      return void response.writeHead(204).end()
    }
    const { code, out, err } = await on(request.headers['x-database-url'], async () =>
      runLine(await wordsIn(request), serverUrl()),
    )
    await writeFile('.err', err.join('')) // the working directory of the shell and of this process
    response.writeHead(200, { 'x-exit-code': code }).end(out.join(''))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}

/** Uses the DATABASE_URL of the shell, if it is set. */
async function on<T>(databaseUrl: string | string[] | undefined, run: () => Promise<T>): Promise<T> {
  const before = process.env.DATABASE_URL
  if (databaseUrl) process.env.DATABASE_URL = String(databaseUrl)
  try {
    return await run()
  } finally {
    process.env.DATABASE_URL = before
  }
}

async function wordsIn(request: IncomingMessage): Promise<string[]> {
  return (await buffer(request)).toString().split('\0').slice(0, -1)
}

async function runLine(words: string[], url: string) {
  const out: string[] = []
  const err: string[] = []
  // With DATABASE_URL, commands do not find the server automatically.
  const line = words[0] === 'import' && !words.includes('--url') ? [...words, '--url', url] : words
  const code = await runCommand(line, {
    json: value => out.push(`${JSON.stringify(value)}\n`),
    print: text => out.push(text),
    say: text => err.push(`${text}\n`),
    sayNow: async text => void err.push(`${text}\n`),
    exitCode: 0,
  })
  return { code, out, err }
}
