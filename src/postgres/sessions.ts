import type pg from 'pg'

/**
 * Limits of Kontor's own, whatever the server's defaults: nobody reads past a transaction that is open, so one that belongs to a
 * host which stands still would stop all workers for as long as it does.
 */

// A worker reads and works out a batch between two statements: tens of milliseconds, a second on a machine that is overrun.
const IDLE_IN_TRANSACTION_MS = 10_000
// A host that is gone is noticed after 15 s idle + 3 × 5 s; one that does not take what it is sent, after 30 s. Warnings are listened to.
const CONNECTION_SETTINGS = `
set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};
set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3;
set tcp_user_timeout = 30000; set client_min_messages = warning`

// A server that does not know one of them keeps its own.
const UNKNOWN_SETTING = '42704'

/** On a new connection. Behind a transaction pooler this sticks to whichever connection it meets, and does no harm. */
export async function limitConnection(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
  try {
    await client.query(CONNECTION_SETTINGS)
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNKNOWN_SETTING) throw error
  }
}

export type TransactionLimits = { lockMs?: number; statementMs?: number }

/** What a transaction begins with: what is set with it holds behind a transaction pooler too, and costs no round trip. */
export function beginWith({ lockMs, statementMs }: TransactionLimits = {}): string {
  return [
    `begin; set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
    ...(lockMs === undefined ? [] : [`set local lock_timeout = ${lockMs}`]),
    ...(statementMs === undefined ? [] : [`set local statement_timeout = ${statementMs}`]),
  ].join('; ')
}

/**
 * Ends sessions of servers and workers that have written and then waited so long for their client: a COPY that was cut off in
 * the middle is under no limit of PostgreSQL's own, because it counts as running. Returns how many.
 */
export async function endStuckSessions(db: Pick<pg.Pool, 'query'>, olderThanMs: number): Promise<number> {
  const { rowCount } = await db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
       and application_name in ('kontor', 'kontor worker') and backend_xid is not null and wait_event_type = 'Client'
       and greatest(xact_start, query_start, state_change) < clock_timestamp() - $1 * interval '1 ms'`,
    [olderThanMs],
  )
  return rowCount ?? 0
}
