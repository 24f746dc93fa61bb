import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { EVERYTHING } from '../log/entries.ts'

// A process that takes all entries in a transaction, prints the number of partitions, and never commits.
const pool = openPool({
  connection: { url: process.argv[2]! },
  max: 1,
  name: 'holding',
  onError: () => undefined,
})
const client = await pool.connect()
await client.query('begin')
const taken = await openPostgresLog({ pool }).take(client, EVERYTHING)
console.log(taken.length)
setInterval(() => {}, 60_000)
