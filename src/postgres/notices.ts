import type pg from 'pg'

const RECONNECT_MS = 2_000

/**
 * Calls `onNotice` for every NOTIFY on the channel, over a dedicated connection. Notifications are lost behind a transaction
 * pooler and during a reconnect, so the caller must also poll.
 */
export function listenForNotices(pool: pg.Pool, channel: string, onNotice: () => void): { stop(): Promise<void> } {
  let client: pg.PoolClient | null = null
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  async function connect(): Promise<void> {
    let fresh: pg.PoolClient | null = null
    try {
      const connected = await pool.connect()
      if (stopped) return connected.release()
      client = fresh = connected
      connected.on('notification', onNotice)
      connected.on('error', () => reconnect(connected))
      connected.on('end', () => reconnect(connected))
      await connected.query(`listen ${channel}`)
    } catch {
      // Passes the connection of this attempt: if its end was reported already, another attempt is under way, and a second one would
      // leave a connection open forever.
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
