import { withoutNats } from '../nats.ts'
import { logContract } from './contract.ts'
import { openJetStreamTestLog } from './open-jetstream.ts'

logContract('JetStream', openJetStreamTestLog, { claims: true, kind: 'events', skip: withoutNats })
