import { clockAhead, clockBehind, lateEvents, oldBacklog, westernTimeZone } from './clock.ts'
import { diskFull } from './disk.ts'
import type { Fault } from './fault.ts'
import { cutNats, freezeNats, killAllNats, killNats, rollNats } from './nats.ts'
import { blackHole, cutOffWorker, resettingNetwork, slowNetwork, truncatingNetwork } from './network.ts'
import {
  failOver,
  foreignTransaction,
  freezeBackend,
  freezePostgres,
  freezePostmaster,
  killBackend,
  killPostmaster,
  stopPostgres,
} from './postgres.ts'
import { freezeServer, freezeWorker, killServer, killWorker, powerCut, rollingRestart } from './processes.ts'
import { dumpAndRestore } from './restore.ts'

export const FAULTS: readonly Fault[] = [
  killServer,
  freezeServer,
  killWorker,
  freezeWorker,
  rollingRestart,
  powerCut,
  killBackend,
  freezeBackend,
  killPostmaster,
  freezePostmaster,
  freezePostgres,
  stopPostgres,
  foreignTransaction,
  slowNetwork,
  truncatingNetwork,
  resettingNetwork,
  blackHole,
  cutOffWorker,
  diskFull,
  clockAhead,
  clockBehind,
  oldBacklog,
  lateEvents,
  westernTimeZone,
  dumpAndRestore,
  killNats,
  freezeNats,
  cutNats,
  killAllNats,
  rollNats,
]

/** Run only if selected by name, because their requirements exclude other faults. */
const BY_NAME: readonly Fault[] = [failOver]

export function faultNamed(name: string): Fault {
  const all = [...FAULTS, ...BY_NAME]
  const fault = all.find(fault => fault.name === name)
  if (!fault) throw new Error(`There is no fault "${name}". Faults: ${all.map(({ name }) => name).join(', ')}`)
  return fault
}

/** One line per fault. */
export function faultLines(): string[] {
  return [...FAULTS, ...BY_NAME].map(fault => {
    const { name, modes, needs } = fault
    const conditions = [
      needs === 'nats' && 'with --nats',
      needs === 'disk' && 'as root',
      BY_NAME.includes(fault) && 'only by name: --faults',
    ].filter(condition => condition !== false)
    const words = conditions.length > 0 ? ` (${conditions.join(', ')})` : ''
    return `${name.padEnd(20)}${modes.join(', ')}${words}`
  })
}
