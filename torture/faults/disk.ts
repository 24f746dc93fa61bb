import { EVERYWHERE, type Fault } from './fault.ts'

/** PostgreSQL may exit. The operator restarts an external one; the embedded one must restart automatically. */
export const diskFull: Fault = {
  name: 'disk-full',
  modes: EVERYWHERE,
  needs: 'disk',
  prepare: conditions => {
    conditions.disk = true
    // Recycled WAL segments would provide space for a long time.
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
