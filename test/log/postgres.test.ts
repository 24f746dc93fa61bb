import { logContract } from './contract.ts'
import { openTestLog } from './open.ts'

logContract('PostgreSQL', openTestLog, { claims: true, kind: 'record' })
