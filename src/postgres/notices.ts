import type pg from 'pg'

const RECONNECT_MS = 2_000

/**
 * Hears NOTIFY on a connection of its own. Behind a transaction pooler, or while it reconnects, nothing is heard:
 * whoever listens must also look by itself now and then.
 */
export function listenForNotices(
  pool: pg.Pool,
  channel: string,
  heard: () => void,
): { stop(): Promise<void> } {
  let client: pg.PoolClient | null = null
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function connect(): Promise<void> {
    try {
      const fresh = await pool.connect()
      if (stopped) return fresh.release()
      client = fresh
      fresh.on('notification', heard)
      fresh.on('error', () => reconnect(fresh))
      fresh.on('end', () => reconnect(fresh))
      await fresh.query(`listen ${channel}`)
    } catch {
      reconnect(client)
    }
  }

  function reconnect(broken: pg.PoolClient | null): void {
    if (broken !== client || stopped) return
    client = null
    if (broken) {
      broken.removeAllListeners('notification')
      broken.release(true)
    }
    timer = setTimeout(connect, RECONNECT_MS)
  }

  const connecting = connect()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await connecting
      const last = client
      client = null
      last?.removeAllListeners('notification')
      last?.release(true)
    },
  }
}
