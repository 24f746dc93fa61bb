import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import type pg from 'pg'
import type { Db } from '../../postgres/database.ts'

/** A database role that reads one tenant through the views of kontor_bi. */
export type SqlAccess = { role: string; tenantId: number; name: string; createdBy: string; createdAt: Date }

const COLUMNS = 'role, tenant_id as "tenantId", name, created_by as "createdBy", created_at as "createdAt"'

export async function insertSqlAccess(db: Db, access: Omit<SqlAccess, 'createdAt'>): Promise<SqlAccess> {
  const { rows } = await db.query<SqlAccess>(
    `insert into sql_access (role, tenant_id, name, created_by) values ($1, $2, $3, $4) returning ${COLUMNS}`,
    [access.role, access.tenantId, access.name, access.createdBy],
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
  await db.query(`alter role ${role} set statement_timeout = '${limits.statementSeconds}s'`)
  await db.query(`alter role ${role} set idle_in_transaction_session_timeout = '60s'`)
  await db.query(`alter role ${role} set default_transaction_read_only = on`)
  await db.query(`alter role ${role} set search_path = kontor_bi`)
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
     select 'make tables in the schema ' || n.nspname from pg_namespace n
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
