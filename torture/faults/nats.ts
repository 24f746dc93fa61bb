import { EVERYWHERE, type Fault } from './fault.ts'

export const killNats: Fault = {
  name: 'kill-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, last }) {
    await nats!.kill()
    await last(1, 4)
    await nats!.start()
  },
}

export const freezeNats: Fault = {
  name: 'freeze-nats',
  modes: EVERYWHERE,
  needs: 'nats',
  async strike({ deployment: { nats }, last }) {
    nats!.freeze()
    await last(3, 10)
    nats!.thaw()
  },
}
