import { clockAhead, clockBehind, lateEvents, oldBacklog, westernTimeZone } from './clock.ts'
import { diskFull } from './disk.ts'
import type { Fault } from './fault.ts'
import { cutNats, freezeNats, killAllNats, killNats, rollNats } from './nats.ts'
import { blackHole, cutOffWorker, resettingNetwork, slowNetwork, truncatingNetwork } from './network.ts'
import {
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
