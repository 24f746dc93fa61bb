import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs } from './end.ts'
import { steadyPort } from './ports.ts'

const program = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'].find(
  existsSync,
)

export type Nats = Awaited<ReturnType<typeof startNats>>

/** One NATS server with JetStream on disk. */
export async function startNats(directory: string) {
  if (!program) throw new Error('--nats needs a nats-server, 2.10.27 or newer (apt-get install nats-server)')
  await mkdir(directory, { recursive: true })
  const port = await steadyPort()
  let child: ChildProcess | null = null

  async function start() {
    const args = [
      '-a',
      '127.0.0.1',
      '-p',
      String(port),
      '-js',
      '-sd',
      directory,
      '-l',
      join(directory, 'nats.log'),
    ]
    const launched = spawn(program!, args, { stdio: 'ignore' })
    endWithUs(() => launched.kill('SIGKILL'))
    child = launched
    while (!(await isOpen(port))) {
      if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}`)
      await sleep(20)
    }
  }
  async function end(signal: 'SIGKILL' | 'SIGTERM') {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    await exited
  }

  await start()
  return {
    url: `nats://127.0.0.1:${port}`,
    start,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    freeze: () => child!.kill('SIGSTOP'),
    thaw: () => child!.kill('SIGCONT'),
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
