import { EVERYWHERE, type Fault } from './fault.ts'

/** PostgreSQL may end over it. An own one is started again by its operator, the embedded one has to come back by itself. */
export const diskFull: Fault = {
  name: 'disk-full',
  modes: EVERYWHERE,
  needs: 'disk',
  prepare: conditions => {
    conditions.disk = true
    // Segments that are kept for later would be room for a long time.
    conditions.postgres.min_wal_size = '32MB'
    conditions.postgres.wal_recycle = 'off'
  },
  async strike({ deployment, last }) {
    await deployment.disk!.fill()
    await last(6, 15)
    await deployment.disk!.free()
    const { postgres } = deployment
    if (postgres.isOurs && (await postgres.postmasterPid()) === null) await postgres.start()
  },
}
