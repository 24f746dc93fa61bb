import type pg from 'pg'

// The function of PostgreSQL that waits; its words are in the server's language.
const WAITS_FOR_STANDBY = 'SyncRepWaitForLSN'
const OUTCOME_UNKNOWN = '08007'

/**
 * Where a synchronous standby is asked for, a commit that waits for it and is cancelled (by pg_cancel_backend, say) is answered as
 * done, with a warning: it is on this one machine, and lost with it. Whoever committed hears that the outcome is unknown instead, so
 * that nothing is acknowledged which a failover may lose. A statement_timeout cancels no such wait (it ends before the commit
 * begins), and a session that is terminated in it answers nothing.
 */
export function distrustCancelledCommits(client: pg.PoolClient): void {
  client.on('notice', ({ routine }) => {
    if (routine !== WAITS_FOR_STANDBY) return
    const { connection } = client as unknown as pg.Client
    // At once: the answer may follow in the bytes that are being read.
    const message = 'A commit was cancelled while it waited for the synchronous standby'
    connection.emit('error', Object.assign(new Error(message), { code: OUTCOME_UNKNOWN }))
    connection.stream.destroy()
  })
}
