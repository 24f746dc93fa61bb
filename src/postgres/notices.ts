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
    let fresh: pg.PoolClient | null = null
    try {
      const connected = await pool.connect()
      if (stopped) return connected.release()
      client = fresh = connected
      connected.on('notification', heard)
      connected.on('error', () => reconnect(connected))
      connected.on('end', () => reconnect(connected))
      await connected.query(`listen ${channel}`)
    } catch {
      // Its own connection: where that has told of its end already, another one is on its way, and two would leave one open for ever.
      reconnect(fresh)
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
