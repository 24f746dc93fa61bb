import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import type pg from 'pg'
import type { Db } from '../../postgres/database.ts'

/** A database role that reads one tenant through the views of kontor_bi. */
export type SqlAccess = { role: string; tenantId: number; name: string; createdBy: string; createdAt: Date }

const COLUMNS = 'role, tenant_id as "tenantId", name, created_by as "createdBy", created_at as "createdAt"'

export async function insertSqlAccess(
  db: Db,
  access: Omit<SqlAccess, 'createdAt'> & { verifier: string; statementSeconds: number },
): Promise<SqlAccess> {
  const { rows } = await db.query<SqlAccess>(
    `insert into sql_access (role, tenant_id, name, verifier, statement_seconds, created_by)
     values ($1, $2, $3, $4, $5, $6) returning ${COLUMNS}`,
    [access.role, access.tenantId, access.name, access.verifier, access.statementSeconds, access.createdBy],
  )
  return rows[0]!
}

/** Null: of all tenants. */
export async function listSqlAccess(db: Db, tenantId: number | null): Promise<SqlAccess[]> {
  const { rows } = await db.query<SqlAccess>(
    `select ${COLUMNS} from sql_access where $1::int is null or tenant_id = $1 order by created_at, role`,
    [tenantId],
  )
  return rows
}

export async function deleteSqlAccess(db: Db, role: string): Promise<SqlAccess | null> {
  const { rows } = await db.query<SqlAccess>(`delete from sql_access where role = $1 returning ${COLUMNS}`, [role])
  return rows[0] ?? null
}

type RoleLimits = { connections: number; statementSeconds: number }

/** `create role` takes no parameters. Kontor generates the names, so they need no escaping. */
export async function createRole(
  db: Db,
  { role, verifier, limits }: { role: string; verifier: string; limits: RoleLimits },
): Promise<void> {
  await db.query(
    `create role ${role} login noinherit nosuperuser nocreatedb nocreaterole noreplication
     connection limit ${limits.connections} password '${verifier}'`,
  )
  await db.query(`grant ${role} to current_user${await inheriting(db)}`)
  await setDefaults(db, role, limits)
}

/** A member sees the sessions of the role and may end them. Since PostgreSQL 16 the creator of a role does not inherit this. */
async function inheriting(db: Db): Promise<string> {
  const { rows } = await db.query<{ version: number }>(`select current_setting('server_version_num')::int as version`)
  return rows[0]!.version >= 160_000 ? ' with inherit true' : ''
}

const IDLE_SECONDS = 60

const defaultsOf = ({ statementSeconds }: Pick<RoleLimits, 'statementSeconds'>) => ({
  statement_timeout: `${statementSeconds}s`,
  idle_in_transaction_session_timeout: `${IDLE_SECONDS}s`,
  lock_timeout: '5s',
  default_transaction_read_only: 'on',
  search_path: 'kontor_bi',
})

/** Also removes settings that the role added. */
async function setDefaults(db: Db, role: string, limits: Pick<RoleLimits, 'statementSeconds'>): Promise<void> {
  await db.query(`alter role ${role} reset all`)
  for (const [name, value] of Object.entries(defaultsOf(limits)))
    await db.query(`alter role ${role} set ${name} = '${value}'`)
}

/**
 * By default every role may hold advisory locks, with which Kontor's workers coordinate, and get a transaction id, behind which all
 * readers of the log wait. Only a superuser can revoke these privileges, in this database; this is done once. The owner of the tables
 * and of the database keep them.
 */
export async function denyLocks(db: Db): Promise<void> {
  const { rows } = await db.query<{ may: boolean; functions: string; owners: string }>(
    `select rolsuper and has_function_privilege('public', 'pg_catalog.pg_advisory_lock(int8)', 'execute') as may,
       (select string_agg(p.oid::regprocedure::text, ', ') from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace
          and p.proname ~ '^(pg_(try_)?advisory_(xact_)?lock(_shared)?|pg_current_xact_id|txid_current)$') as functions,
       (select string_agg(distinct quote_ident(o.rolname), ', ') from pg_roles o where o.oid in (
          select relowner from pg_class where oid = 'public.log'::regclass
          union select datdba from pg_database where datname = current_database())) as owners
     from pg_roles where rolname = current_user`,
  )
  const [found] = rows
  if (!found?.may) return
  await db.query(`revoke execute on function ${found.functions} from public`)
  await db.query(`grant execute on function ${found.functions} to ${found.owners}`)
}

/** A session of a role that does what it must not. `isEnded`: this user had the right to end it. */
type Misuse = { role: string; pid: number; reason: string; isEnded: boolean }

// A statement that its own timeout ends is not ended twice.
const GRACE_S = 1

/** Sessions of the roles that hold locks or a transaction id, or ignore their timeouts, which a client can change. */
const MISUSES = `
  select a.pid, a.usename::text as role, pg_has_role(a.usesysid, 'usage') as "isEnded", case
    when exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory') then 'it holds an advisory lock'
    when a.backend_xid is not null then 'it has a transaction id'
    when a.state = 'active' and a.query_start < clock_timestamp() - make_interval(secs => s.statement_seconds + ${GRACE_S})
      then 'its statement exceeds the timeout'
    when a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - make_interval(secs => ${IDLE_SECONDS + GRACE_S})
      then 'its transaction is idle'
    when a.xact_start < clock_timestamp() - make_interval(secs => s.statement_seconds + ${GRACE_S})
      then 'its transaction exceeds the timeout'
    end as reason
  from sql_access s join pg_stat_activity a on a.usename = s.role`

export async function listMisuses(db: Db): Promise<Misuse[]> {
  const { rows } = await db.query<Misuse>(`select * from (${MISUSES}) m where reason is not null`)
  return rows
}

/** Ends these sessions in every database of the cluster: transaction ids are shared by all of them. */
export async function endMisuses(db: Db): Promise<Misuse[]> {
  const { rows } = await db.query<Misuse>(
    `select m.*, pg_terminate_backend(pid) from (${MISUSES}) m where reason is not null and "isEnded"`,
  )
  return rows
}

/** A role that is not as Kontor created it. Null: this user cannot see the passwords of roles. */
export type ChangedRole = {
  role: string
  tenantId: number
  hasOtherPassword: boolean | null
  hasOtherDefaults: boolean
}

export async function listChangedRoles(db: Db): Promise<ChangedRole[]> {
  const { rows: seen } = await db.query<{ may: boolean }>(
    `select has_table_privilege('pg_catalog.pg_authid', 'select') as may from sql_access limit 1`,
  )
  if (!seen[0]) return []
  const { may } = seen[0]
  const password = may ? '(select p.rolpassword from pg_authid p where p.oid = r.oid)' : 'null::text'
  const { rows } = await db.query<ChangedRole & { config: string[] | null; limit: string[] | null; seconds: number }>(
    `select s.role, s.tenant_id as "tenantId", ${password} is distinct from s.verifier as "hasOtherPassword",
       r.rolconfig as config, s.statement_seconds as seconds
     from sql_access s join pg_roles r on r.rolname = s.role`,
  )
  return rows
    .map(({ role, tenantId, hasOtherPassword, config, seconds }) => {
      const wanted = Object.entries(defaultsOf({ statementSeconds: seconds })).map(
        ([name, value]) => `${name}=${value}`,
      )
      const own = (config ?? []).filter(setting => !setting.startsWith('temp_file_limit='))
      const hasOtherDefaults = own.length !== wanted.length || !wanted.every(setting => own.includes(setting))
      return { role, tenantId, hasOtherPassword: may ? hasOtherPassword : null, hasOtherDefaults }
    })
    .filter(({ hasOtherPassword, hasOtherDefaults }) => hasOtherPassword !== false || hasOtherDefaults)
}

/** Until the transaction ends, no other node restores the role. */
export async function lockSqlAccess(db: Db, role: string): Promise<void> {
  await db.query('select from sql_access where role = $1 for update', [role])
}

/** Restores the password and the defaults. */
export async function restoreRole(db: Db, role: string): Promise<void> {
  const { rows } = await db.query<{ verifier: string; statementSeconds: number }>(
    'select verifier, statement_seconds as "statementSeconds" from sql_access where role = $1',
    [role],
  )
  const [access] = rows
  if (!access) return
  await db.query(`alter role ${role} password '${access.verifier}'`)
  await setDefaults(db, role, access)
  await limitTemporaryFiles(db, role)
}

// lo_import and lo_export are already limited to superusers.
const LARGE_OBJECT_WRITERS = `lo_creat(int4), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, int8, bytea),
  lowrite(int4, bytea), lo_truncate(int4, int4), lo_truncate64(int4, int8), lo_unlink(oid)`

/**
 * By default every role may create large objects, which use disk space and outlive their creator. Kontor does not need them. Only a
 * superuser can revoke the privilege; this is done once.
 */
export async function denyLargeObjects(db: Db): Promise<void> {
  const { rows } = await db.query<{ may: boolean }>(
    `select r.rolsuper and has_function_privilege('public', 'pg_catalog.lo_creat(int4)', 'execute') as may
     from pg_roles r where r.rolname = current_user`,
  )
  if (rows[0]?.may) await db.query(`revoke execute on function ${LARGE_OBJECT_WRITERS} from public`)
}

/**
 * By default every role may create temporary tables, which use disk space during the session. Kontor does not need them. Only the
 * owner of the database can revoke the privilege; this is done once.
 */
export async function denyTemporaryTables(db: Db): Promise<void> {
  const { rows } = await db.query<{ name: string; may: boolean }>(
    `select quote_ident(datname) as name,
       pg_has_role(datdba, 'usage') and has_database_privilege('public', oid, 'temporary') as may
     from pg_database where datname = current_database()`,
  )
  const [database] = rows
  if (database?.may) await db.query(`revoke temporary on database ${database.name} from public`)
}

// Per session, for sorts and joins that do not fit into memory. The role cannot change it.
const MAX_TEMPORARY_FILES = '2GB'

/** Applies only if Kontor's database user is a superuser or may set the parameter. */
export async function limitTemporaryFiles(db: Db, role: string): Promise<void> {
  const { rows } = await db.query<{ may: boolean }>(`select has_parameter_privilege('temp_file_limit', 'set') as may`)
  if (rows[0]?.may) await db.query(`alter role ${role} set temp_file_limit = '${MAX_TEMPORARY_FILES}'`)
}

/** Privileges of the role beyond the views, granted to PUBLIC. Returns at most three. */
export async function excessOf(db: Db, role: string): Promise<string[]> {
  const { rows } = await db.query<{ what: string }>(
    `select 'read or change ' || n.nspname || '.' || c.relname as what
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema', 'kontor_bi')
       and n.nspname !~ '^pg_(toast|temp)' and has_schema_privilege($1, n.oid, 'usage')
       and (has_table_privilege($1, c.oid, 'select, insert, update, delete, truncate')
         or has_any_column_privilege($1, c.oid, 'select, insert, update'))
       and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
     union all
     select 'create tables in the schema ' || n.nspname from pg_namespace n
     where n.nspname !~ '^pg_' and has_schema_privilege($1, n.oid, 'create')
     limit 3`,
    [role],
  )
  return rows.map(({ what }) => what)
}

/** Prevents new sessions. Existing ones see no rows from their next statement on. */
export async function disableRole(db: Db, role: string): Promise<void> {
  await db.query(`alter role ${role} nologin`)
}

export async function endSessionsOf(db: Db, role: string): Promise<void> {
  await db.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role])
}

/** Also drops what the role owns in this database. Run in a transaction, so that a failure does not leave the grant. */
export async function dropRole(client: pg.PoolClient, role: string): Promise<void> {
  // The creator of a role may grant it, and needs membership to drop its objects.
  await client.query(`grant ${role} to current_user`)
  await client.query(`drop owned by ${role}`)
  await client.query(`drop role ${role}`)
}

export async function roleExists(db: Db, role: string): Promise<boolean> {
  const { rows } = await db.query('select from pg_roles where rolname = $1', [role])
  return rows.length === 1
}

/** The database name and user for connection instructions. */
export async function databaseAddress(db: Db): Promise<{ database: string; user: string }> {
  const { rows } = await db.query<{ database: string; user: string }>(
    'select current_database() as database, current_user as user',
  )
  return rows[0]!
}

const ITERATIONS = 4_096

/** The form in which PostgreSQL stores a password. Statements and their logs then never contain the password itself. */
export function scramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256')
  const key = (name: string) => createHmac('sha256', salted).update(name).digest()
  const stored = createHash('sha256').update(key('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${key('Server Key').toString('base64')}`
}
