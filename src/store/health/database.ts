import type { Db } from '../../postgres/database.ts'

export type OpenTransaction = {
  /** null: prepared, of no process */
  pid: number | null
  database: string
  application: string
  state: string
  seconds: number
  /** It has written, or will: workers read only what lies before it. */
  holdsLog: boolean
  /** the name of a prepared one */
  gid: string | null
}

/** Transactions anywhere in the cluster that have been open for longer than this, longest first. */
export async function longTransactions(db: Db, seconds: number): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenTransaction>(
    `select pid, coalesce(datname, '') as database, application_name as application, coalesce(state, '') as state,
       extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, backend_xid is not null as "holdsLog", null as gid
     from pg_stat_activity
     where xact_start < clock_timestamp() - make_interval(secs => $1) and pid <> pg_backend_pid()
       and backend_type = 'client backend' and (backend_xid is not null or backend_xmin is not null)
     union all
     select null, database::text, '', 'prepared', extract(epoch from clock_timestamp() - prepared)::float8, true, gid
     from pg_prepared_xacts where prepared < clock_timestamp() - make_interval(secs => $1)
     order by seconds desc limit 20`,
    [seconds],
  )
  return rows
}

type Sessions = { servers: number; workers: number }

/** Connections of processes that serve, and of workers. */
export async function countSessions(db: Db): Promise<Sessions> {
  const { rows } = await db.query<Sessions>(
    `select count(*) filter (where application_name = 'kontor') as servers,
       count(*) filter (where application_name = 'kontor worker') as workers
     from pg_stat_activity where datname = current_database()`,
  )
  return rows[0]!
}

/** Settings under which what was acknowledged may not be on disk. */
export async function settingsThatLose(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select name from pg_settings
     where name in ('fsync', 'synchronous_commit', 'full_page_writes') and setting = 'off' order by name`,
  )
  return rows.map(({ name }) => name)
}
