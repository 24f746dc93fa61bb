import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'

// Longer than a request that does not wait.
const HELD_MS = 400

/**
 * Holds back the workers of a server, so that a guide that reads without waiting what it has just written fails every time: what a
 * command sends is processed 400 ms after the next command has started.
 */
export function openSlowWorkers(pool: pg.Pool) {
  let held: pg.PoolClient | null = null

  async function hold(): Promise<void> {
    if (held !== null) return
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select from log_cursors for update')
    held = client
  }
  async function release(): Promise<void> {
    const client = held
    held = null
    if (client === null) return
    await client.query('rollback')
    client.release()
  }
  return {
    release,
    async holdBack<T>(run: () => Promise<T>): Promise<T> {
      await hold()
      const command = run()
      const isOver = command.then(
        () => true,
        () => true,
      )
      if (!(await Promise.race([isOver, sleep(HELD_MS, false)]))) await release()
      return command
    },
  }
}
