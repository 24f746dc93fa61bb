import { listChildren, query } from '../deployment/postgres.ts'
import { type KontorProcess, startAll } from '../deployment/process.ts'
import { checkOthersContinue, EVERYWHERE, type Fault, type Strike } from './fault.ts'

const servers = ({ deployment }: Strike) => deployment.processes.filter(({ role }) => role !== 'worker')
const workers = ({ deployment }: Strike) => deployment.processes.filter(({ role }) => role === 'worker')

/** Like the kernel's OOM killer. */
export const killServer: Fault = {
  name: 'kill-server',
  modes: EVERYWHERE,
  joins: true,
  async strike(strike) {
    await killOne(strike, servers(strike))
  },
}

export const killWorker: Fault = {
  name: 'kill-worker',
  modes: ['fleet'],
  joins: true,
  async strike(strike) {
    await killOne(strike, workers(strike))
  },
}

async function killOne({ random, last }: Strike, among: KontorProcess[]): Promise<void> {
  const victim = random.pick(among)
  await victim.kill()
  await last(0, 2)
  await victim.start()
}

export const freezeServer: Fault = {
  name: 'freeze-server',
  modes: EVERYWHERE,
  async strike(strike) {
    const victim = strike.random.pick(servers(strike))
    victim.freeze()
    await strike.last(3, 12)
    victim.thaw()
  },
}

/** Freezes a worker in the middle of a transaction that holds locks and a snapshot. The other worker must continue. */
export const freezeWorker: Fault = {
  name: 'freeze-worker',
  modes: ['fleet'],
  async strike(strike) {
    const victim = strike.random.pick(workers(strike))
    await insideTransaction(strike, victim, {
      hold: () => victim.freeze(),
      release: () => victim.thaw(),
    })
    await checkOthersContinue(strike, `${victim.name} was frozen inside a transaction`)
    victim.thaw()
  },
}

/** Freezes a process repeatedly until PostgreSQL shows it inside a transaction that has written. */
export async function insideTransaction(
  { deployment, say }: Strike,
  victim: KontorProcess,
  { hold, release }: { hold: () => void; release: () => void },
): Promise<void> {
  const proxy = deployment.proxies.get(victim)!
  for (let attempt = 1; attempt <= 300; attempt++) {
    hold()
    const held = await query(
      deployment.postgres,
      `select from pg_stat_activity
       where client_port = any($1::int[]) and state like 'idle in transaction%' and backend_xid is not null`,
      [proxy.clientPorts()],
    )
    if (held.length > 0) return
    release()
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  say('  (it was never inside a transaction, so it is frozen outside one)')
  hold()
}

/** A rolling restart: each process is asked to stop and must exit cleanly. */
// A process may not stop in time on a busy machine or with a bad network.
const CUT_OFF = 3

export const rollingRestart: Fault = {
  name: 'rolling-restart',
  modes: EVERYWHERE,
  async strike({ deployment, violation, say, last }) {
    for (const process of deployment.processes) {
      const code = await process.terminate()
      if (code === CUT_OFF) say(`  ${process.name} did not stop in time and aborted the remaining work`)
      else if (code !== 0) violation(`${process.name} was asked to stop and ended with ${code}`)
      await process.start()
      await last(0, 1)
    }
  },
}

/** Power loss: all processes are killed at once. */
export const powerCut: Fault = {
  name: 'power-cut',
  modes: EVERYWHERE,
  async strike({ deployment, last }) {
    const postmaster = await deployment.postgres.postmasterPid()
    const victims = postmaster === null ? [] : [postmaster, ...listChildren(postmaster).map(({ pid }) => pid)]
    const ends = deployment.processes.map(process => process.kill())
    for (const pid of victims) killNow(pid)
    await Promise.all(ends)
    await last(0, 2)
    if (deployment.postgres.isOurs) await deployment.postgres.start()
    await startAll(deployment.processes)
  },
}

export function killNow(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has already exited
  }
}
