import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../embedded-postgres/socket.ts'
import type { Scenario } from '../scenario.ts'

/** Time from `npm start` to the first 2xx, on an empty data directory and on existing data. */
export const start: Scenario = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-bench-'))
  await chmod(directory, 0o711)
  try {
    const first = await secondsToAnswer(join(directory, 'data'))
    const later = await secondsToAnswer(join(directory, 'data'))
    return {
      facts: {},
      bars: [
        { what: 'seconds from npm start to the first 2xx, empty data directory', value: first, atMost: 3 },
        { what: 'seconds from npm start to the first 2xx, existing data', value: later, atMost: 1.5 },
      ],
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
}

async function secondsToAnswer(dataDir: string): Promise<number> {
  const port = await freePort()
  const startedAt = performance.now()
  const child = spawn('npm', ['start', '--silent'], {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...process.env, KONTOR_PORT: String(port), KONTOR_DATA_DIR: dataDir, KONTOR_OPS_PORT: 'off' },
    stdio: 'ignore',
    detached: true,
  })
  const exited = once(child, 'exit')
  try {
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error('npm start exited')
      await sleep(10)
    }
    return (performance.now() - startedAt) / 1000
  } finally {
    process.kill(-child.pid!, 'SIGTERM')
    await exited
    // npm exits before the server, which stops PostgreSQL. The next start would wait for that.
    while (isGroupAlive(child.pid!)) await sleep(10)
  }
}

function isGroupAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0)
    return true
  } catch {
    return false
  }
}

async function answers(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/`)).ok
  } catch {
    return false
  }
}
