import type pg from 'pg'
import { forgetStreams } from './jetstream/known-streams.ts'
import { startEpoch } from './postgres/log.ts'

/**
 * In the transaction that restores a backup: its entries come before all new ones, and its streams count as read, because the backup
 * was taken when they were.
 */
export async function enterRestored(client: pg.PoolClient): Promise<void> {
  await startEpoch(client)
  await forgetStreams(client)
}
