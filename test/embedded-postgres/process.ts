import { type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Embedded } from '../../embedded-postgres/cluster.ts'

type Answer = Pick<Embedded, 'state' | 'connection'> & { refused?: string }

/** Another process that uses a cluster; see using.ts. */
export function startProcess(t: TestContext, how: 'own' | 'join', dataDir: string, options: SpawnOptions = {}) {
  const script = fileURLToPath(new URL('using.ts', import.meta.url))
  const child = spawn(process.execPath, [script, how, dataDir], {
    ...options,
    detached: true, // leader of its own process group, as in a terminal
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const answer = once(createInterface(child.stdout!), 'line').then(([line]) => JSON.parse(line) as Answer)
  return {
    answer,
    crash: async () => {
      child.kill('SIGKILL')
      await exited
    },
    crashWithGroup: async () => {
      process.kill(-child.pid!, 'SIGKILL')
      await exited
    },
    stop: async () => {
      child.stdin!.write('stop\n')
      await exited
    },
  }
}
