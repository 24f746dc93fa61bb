import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs } from './end.ts'
import { steadyPort } from './ports.ts'

const FOUND_IN = [
  process.env.KONTOR_TEST_NATS_SERVER ?? '',
  ...(process.env.PATH ?? '').split(':').map(folder => join(folder, 'nats-server')),
  '/usr/sbin/nats-server',
  join(homedir(), '.cache/kontor-ci/nats-server'),
]

/** Null if nats-server is not installed. */
export const natsServer = FOUND_IN.find(path => path !== '' && existsSync(path)) ?? null

export type Nats = Awaited<ReturnType<typeof startNats>>

/** One NATS server with JetStream on disk. `settings`: more lines of its configuration. */
export async function startNats(
  directory: string,
  {
    synced = false,
    settings = '',
    storage = '',
    ...options
  }: {
    synced?: boolean
    settings?: string
    /** More lines of its JetStream configuration. */
    storage?: string
    port?: number
  } = {},
) {
  if (!natsServer) throw new Error('nats-server 2.10.27 or newer is required (see CONTRIBUTING.md)')
  await mkdir(directory, { recursive: true })
  const port = options.port ?? (await steadyPort())
  const file = join(directory, 'nats.conf')
  const sync = synced ? ', sync_interval: always' : ''
  const configure = (settings: string) =>
    writeFile(
      file,
      `listen: "127.0.0.1:${port}"
jetstream { store_dir: ${JSON.stringify(join(directory, 'jetstream'))}${sync}${storage && `, ${storage}`} }
log_file: ${JSON.stringify(join(directory, 'nats.log'))}
${settings}
`,
    )
  await configure(settings)
  let child: ChildProcess | null = null

  async function start() {
    const launched = spawn(natsServer!, ['-c', file], { stdio: 'ignore' })
    endWithUs(() => launched.kill('SIGKILL'))
    child = launched
    while (!(await isOpen(port))) {
      if (child.exitCode !== null) throw new Error(`nats-server exited with code ${child.exitCode}`)
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
    port,
    url: `nats://127.0.0.1:${port}`,
    start,
    isRunning: () => child !== null && child.exitCode === null && child.signalCode === null,
    /** Changes its lines of configuration while it runs. */
    async reload(settings: string) {
      await configure(settings)
      child!.kill('SIGHUP')
    },
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
