import type pg from 'pg'
import { markDrained } from './jetstream/known-streams.ts'
import { forgetUnread } from './jetstream/losses.ts'
import { beginEra } from './postgres/eras.ts'

/**
 * In the transaction that restores a backup: whatever database this is, all that came with it lies before what comes now, and
 * what streams held was processed before the backup was taken.
 */
export async function enterRestored(client: pg.PoolClient): Promise<void> {
  await beginEra(client)
  await markDrained(client)
  await forgetUnread(client)
}
