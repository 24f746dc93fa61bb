import { setTimeout as sleep } from 'node:timers/promises'
import type { Conditions, Deployment, Mode } from '../deployment/deployment.ts'
import { startAll } from '../deployment/process.ts'
import type { Random } from '../random.ts'
import type { Traffic } from '../traffic/traffic.ts'

/** What a fault has at hand while it strikes. */
export type Strike = {
  deployment: Deployment
  traffic: Traffic
  random: Random
  /** Lasts so many seconds, at random between the two; shorter in a quick run. */
  last(fromSeconds: number, toSeconds: number): Promise<void>
  /** Writes to all partitions; true, when they are sent (again), once all of them have taken effect. */
  probe(): () => Promise<boolean>
  say(words: string): void
  violation(words: string): void
}

/**
 * To add one: write it here beside its like, and name it in list.ts. It has to end what it began; what it cannot undo when it
 * fails half-way (a frozen process, bad weather, a wrong clock), heal() undoes after it.
 */
export type Fault = {
  name: string
  modes: readonly Mode[]
  /** Changes what it needs to be changed before the start. */
  prepare?: (conditions: Conditions) => void
  needs?: 'disk' | 'nats'
  /** May strike while another one lasts. */
  joins?: true
  strike(strike: Strike): Promise<void>
}

export const EVERYWHERE: readonly Mode[] = ['single', 'fleet']

// As long as an operator may look away; Kontor's own limits have to be shorter.
const PATIENCE_MS = 90_000

/** While a part of the fleet hangs, the rest has to go on: waits until it does, or says that it did not. */
export async function restGoesOn({ probe, violation, say }: Strike, what: string): Promise<void> {
  const since = Date.now()
  const hasTakenEffect = probe()
  while (Date.now() - since < PATIENCE_MS) {
    if (await hasTakenEffect()) {
      say(`  the others went on after ${seconds(Date.now() - since)} s`)
      return
    }
    await sleep(200)
  }
  violation(`${what}, and nothing was applied for ${seconds(PATIENCE_MS)} s`)
}

export const seconds = (ms: number) => (ms / 1_000).toFixed(1)

/** Whatever a fault left: everything runs, at the right time, in fair weather. */
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
