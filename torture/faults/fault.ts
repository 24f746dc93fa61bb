import { setTimeout as sleep } from 'node:timers/promises'
import type { Conditions, Deployment, Mode } from '../deployment/deployment.ts'
import { startAll } from '../deployment/process.ts'
import type { Random } from '../random.ts'
import type { Traffic } from '../traffic/traffic.ts'

/** What a fault can use. */
export type Strike = {
  deployment: Deployment
  traffic: Traffic
  random: Random
  /** Waits a random number of seconds between the two; shorter in a quick run. */
  last(fromSeconds: number, toSeconds: number): Promise<void>
  /** Sends writes to all partitions; the returned function repeats them and returns true once all are applied. */
  probe(): () => Promise<boolean>
  say(words: string): void
  violation(words: string): void
}

/**
 * To add a fault, write it in the matching file and add it to list.ts. A fault must undo its changes. If it fails midway, heal()
 * undoes a frozen process, network faults or a wrong clock.
 */
export type Fault = {
  name: string
  modes: readonly Mode[]
  /** Changes the installation before the start. */
  prepare?: (conditions: Conditions) => void
  needs?: 'disk' | 'nats'
  /** May be injected during another fault. */
  joins?: true
  strike(strike: Strike): Promise<void>
}

export const EVERYWHERE: readonly Mode[] = ['single', 'fleet']

// Longer than Kontor's own timeouts.
const PATIENCE_MS = 90_000

/** Checks that the rest of the fleet continues while a part hangs. */
export async function checkOthersContinue({ probe, violation, say }: Strike, what: string): Promise<void> {
  const since = Date.now()
  const hasTakenEffect = probe()
  while (Date.now() - since < PATIENCE_MS) {
    if (await hasTakenEffect()) {
      say(`  the other processes continued after ${seconds(Date.now() - since)} s`)
      return
    }
    await sleep(200)
  }
  violation(`${what}, and nothing was applied for ${seconds(PATIENCE_MS)} s`)
}

export const seconds = (ms: number) => (ms / 1_000).toFixed(1)

/** Restores everything after a fault: all processes run, with correct clocks and a working network. */
export async function heal({ processes, proxies, postgres, disk, nats }: Deployment, setClock: SetClock) {
  await disk?.free()
  for (const proxy of proxies.values()) proxy.set({ kind: 'fair' })
  for (const process of processes) process.thaw()
  await nats?.heal()
  await setClock(processes, 0)
  if (postgres.isOurs && (await postgres.postmasterPid()) === null) await postgres.start()
  await startAll(processes)
}

type SetClock = (processes: Deployment['processes'], offsetMs: number) => Promise<void>
