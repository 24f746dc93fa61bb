import { setTimeout as sleep } from 'node:timers/promises'
import { EVERYWHERE, type Fault } from './fault.ts'

/** Kills one server of the cluster. The others continue. */
export const killNats: Fault = {
  name: 'kill-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, random, last }) {
    const server = random.pick(nats!.servers)
    await server.kill()
    await last(1, 4)
    await server.start()
  },
}

export const freezeNats: Fault = {
  name: 'freeze-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, random, last }) {
    const server = random.pick(nats!.servers)
    server.freeze()
    await last(3, 10)
    server.thaw()
  },
}

// The remaining servers elect a leader after four to nine seconds, and a client reconnects after four.
const CUT_OFF_MS = 8_000

/** Isolates one server. The other side of the partition has the majority and continues. */
export const cutNats: Fault = {
  name: 'cut-nats',
  modes: ['fleet'],
  needs: 'nats',
  async strike({ deployment: { nats }, random, last }) {
    nats!.cutOff(random.pick(nats!.servers))
    await sleep(CUT_OFF_MS)
    await last(0, 10)
    await nats!.heal()
  },
}

/** All servers lose power, so nothing can be acknowledged. */
export const killAllNats: Fault = {
  name: 'kill-all-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, last }) {
    await Promise.all(nats!.servers.map(server => server.kill()))
    await last(1, 4)
    await nats!.heal()
  },
}

export const rollNats: Fault = {
  name: 'roll-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, last }) {
    for (const server of nats!.servers) {
      await server.stop()
      await server.start()
      await last(1, 3)
    }
  },
}
