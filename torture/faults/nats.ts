import { EVERYWHERE, type Fault } from './fault.ts'

/** One of them, in a cluster: the others go on. */
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

/** As of a rack without power: nobody can acknowledge anything. */
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
