import type { Network, Weather } from '../deployment/proxy.ts'
import { checkOthersContinue, type Fault, type Strike } from './fault.ts'
import { insideTransaction } from './processes.ts'

/** The network of all processes, or of one. */
function struck({ deployment, random }: Strike): Network[] {
  const all = [...deployment.proxies.values()]
  return random.chance(0.5) ? all : [random.pick(all)]
}

async function under(proxies: Network[], weather: Weather, work: () => Promise<void>): Promise<void> {
  for (const proxy of proxies) proxy.set(weather)
  await work()
  for (const proxy of proxies) proxy.set({ kind: 'fair' })
}

export const slowNetwork: Fault = {
  name: 'net-delay',
  modes: ['fleet'],
  joins: true,
  strike: strike => under(struck(strike), { kind: 'delay', fromMs: 5, toMs: 150 }, () => strike.last(5, 12)),
}

export const truncatingNetwork: Fault = {
  name: 'net-truncate',
  modes: ['fleet'],
  joins: true,
  strike: strike => under(struck(strike), { kind: 'truncate', probability: 0.02 }, () => strike.last(4, 10)),
}

export const resettingNetwork: Fault = {
  name: 'net-reset',
  modes: ['fleet'],
  joins: true,
  async strike(strike) {
    for (let i = strike.random.integer(2, 6); i > 0; i--) {
      for (const proxy of struck(strike)) proxy.reset()
      await strike.last(0.1, 1.5)
    }
  },
}

export const blackHole: Fault = {
  name: 'net-blackhole',
  modes: ['fleet'],
  strike: strike => under(struck(strike), { kind: 'black hole' }, () => strike.last(5, 20)),
}

/** Disconnects a worker in the middle of a transaction without PostgreSQL noticing. */
export const cutOffWorker: Fault = {
  name: 'net-lost-worker',
  modes: ['fleet'],
  async strike(strike) {
    const { deployment, random } = strike
    const victim = random.pick(deployment.processes.filter(({ role }) => role === 'worker'))
    const proxy = deployment.proxies.get(victim)!
    await insideTransaction(strike, victim, {
      hold: () => proxy.set({ kind: 'black hole' }),
      release: () => proxy.set({ kind: 'fair' }),
    })
    await checkOthersContinue(strike, `${victim.name} was disconnected inside a transaction`)
    proxy.set({ kind: 'fair' })
  },
}
