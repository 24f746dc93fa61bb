import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort } from '../embedded-postgres/socket.ts'
import { eventually } from './eventually.ts'

// Debian's package belongs to Debian's Python.
const PYTHON = '/usr/bin/python3'
const isInstalled = existsSync(PYTHON) && existsSync('/usr/lib/python3/dist-packages/aiosmtpd')
const program = fileURLToPath(new URL('./mail-server.py', import.meta.url))

/** A message as the server received it. */
export type ReceivedMail = {
  from: string
  to: string[]
  headers: [name: string, value: string][]
  text: string
  html: string
  encrypted: boolean
}

type MailServer = { port: number; received: ReceivedMail[]; stop(): Promise<void> }
type Options = {
  /** A free port if it is not given. */
  port?: number
  /** Of the user `kontor`. Without it, the server requires no authentication. */
  password?: string
  /** PEM files: the server offers STARTTLS. */
  certificate?: string
  key?: string
}

/** The SMTP server aiosmtpd. If it is not installed, skips the test and returns null. */
export async function startMailServer(t: TestContext, options: Options = {}): Promise<MailServer | null> {
  if (!isInstalled) {
    const how = 'aiosmtpd is not installed (apt-get install python3-aiosmtpd)'
    if (process.env.KONTOR_TEST_REQUIRE_ALL === '1') throw new Error(how)
    t.skip(how)
    return null
  }
  const port = options.port ?? (await freePort())
  const child = spawn(PYTHON, [program, JSON.stringify({ ...options, port })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const received: ReceivedMail[] = []
  let isReady = false
  createInterface({ input: child.stdout }).on('line', line => {
    const value = JSON.parse(line)
    if (value === 'ready') isReady = true
    else received.push(value)
  })
  const stop = async () => {
    child.stdin.end()
    await ended
  }
  t.after(stop)
  await eventually('the mail server to listen', () => {
    if (child.exitCode !== null) throw new Error(`The mail server ended with ${child.exitCode}`)
    return isReady
  })
  return { port, received, stop }
}

export function headerOf({ headers }: ReceivedMail, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1]
}
