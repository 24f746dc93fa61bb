import { type Db, queryPrepared } from './database.ts'

/**
 * All advisory locks in one list, so that no two uses share a number by accident. PostgreSQL releases each one at the end of its
 * transaction. They therefore work behind a transaction pooler, and a process that dies holds none.
 */
export const LOCKS = {
  /** Nodes that start at the same time migrate the schema one after the other. */
  migration: 4_911_001,
  /** One transaction at a time creates partitions. */
  partitions: 4_911_002,
  /** At the first start, one node creates the tenant and the keys. */
  firstStart: 4_911_003,
  /** When nodes find the log in another cluster, one of them starts the new epoch. */
  epoch: 4_911_004,
  /** Registering a writer of a NATS stream excludes marking the stream as left. */
  streamWriters: 4_911_005,
  /** One node at a time computes the daily sums. */
  daySums: 4_911_400,
  /** One node at a time folds additions into the sums of the series. */
  series: 4_911_900,
  /** One node at a time computes the rows of customers. */
  customers: 4_911_920,
  /** One node at a time evaluates the alerts. */
  alerts: 4_911_950,
} as const

/** Locks with one instance per tenant. PostgreSQL keeps these pairs separate from the single numbers above. */
export const TENANT_LOCKS = {
  /** One per entity type, numbered from here. Writers share it. A delete by name instead of id holds it exclusively. */
  records: 4_911_100,
  /**
   * The profile lock. Merging profiles and finding an earlier touch of a profile hold it exclusively; reading where the accounts
   * of profiles came from shares it. If two transactions each learn half of a fact, the second one therefore sees both halves.
   */
  profiles: 4_911_200,
  /**
   * Coupons, discounts and customers. Writing them holds it exclusively; deriving the subscriptions that refer to them shares it.
   * Acquired after `profiles`.
   */
  terms: 4_911_700,
} as const

/** Waits for running derivations of the tenant's ledger. Those that start later see what the caller changes. */
export async function lockLedger(db: Db, tenantId: number): Promise<void> {
  await lockTenants(db, TENANT_LOCKS.profiles, [tenantId])
  await lockTenants(db, TENANT_LOCKS.terms, [tenantId])
}

/**
 * A charge and the invoice that it pays are in different partitions, and neither refers to the other. Transactions that write
 * payments of one customer therefore run one after the other.
 */
const CUSTOMER_LOCK = 4_911_800
const CUSTOMER_LOCKS = 1_024

/** Sales of one order come from events and from its record, in different partitions. They are written one after the other. */
const SALE_LOCK = 4_911_600
// A request may contain thousands of orders, and PostgreSQL's lock table is shared and bounded.
const SALE_LOCKS = 1_024

// The people of a tenant: workers share this lock for the length of a transaction, an erasure holds it exclusively. All tenants
// share 64 locks, so that a transaction over a thousand tenants does not fill PostgreSQL's lock table.
const PEOPLE = 4_911_500
const PEOPLE_LOCKS = 64

// Seed for hashing source ids: one node at a time drains the overflow queue of a source.
const OVERFLOW_SEED = 4_911_003

/** The range of all numbers above. */
const RANGE = [4_911_000, 4_911_999]

export type ForeignLock = { pid: number; user: string; application: string }

/** Sessions of other database users that hold one of these locks. */
export async function listForeignLocks(db: Db): Promise<ForeignLock[]> {
  const { rows } = await db.query<ForeignLock>(
    `select distinct a.pid, coalesce(a.usename, '')::text as user, coalesce(a.application_name, '') as application
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and a.usename is distinct from current_user
       and l.database = (select oid from pg_database where datname = current_database())
       and case l.objsubid when 1 then l.classid = 0 and l.objid between $1 and $2 else l.classid between $1 and $2 end`,
    RANGE,
  )
  return rows
}

type Lock = (typeof LOCKS)[keyof typeof LOCKS]
type TenantLock = (typeof TENANT_LOCKS)[keyof typeof TENANT_LOCKS]

/** Waits until the lock is free, and holds it until the caller's transaction ends. */
export async function lock(db: Db, which: Lock): Promise<void> {
  await db.query('select pg_advisory_xact_lock($1)', [which])
}

/** Returns false if another transaction holds it. */
export async function tryLock(db: Db, which: Lock): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>('select pg_try_advisory_xact_lock($1) as locked', [which])
  return rows[0]!.locked
}

/** Locks each of these tenants, in ascending order to avoid deadlocks. */
export async function lockTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<void> {
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock($1, t) from unnest($2::int[]) with ordinality as l (t, n) order by n',
    [which, [...new Set(tenantIds)].sort((a, b) => a - b)],
  )
}

/** The same, shared: conflicts only with exclusive holders. */
export async function shareTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<void> {
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock_shared($1, t) from unnest($2::int[]) with ordinality as l (t, n) order by n',
    [which, [...new Set(tenantIds)].sort((a, b) => a - b)],
  )
}

/** Does not wait. Returns false if another transaction holds one of them. */
export async function tryLockTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<boolean> {
  return tryTenants(db, 'pg_try_advisory_xact_lock', which, tenantIds)
}

export async function tryShareTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<boolean> {
  return tryTenants(db, 'pg_try_advisory_xact_lock_shared', which, tenantIds)
}

async function tryTenants(
  db: Db,
  lockFunction: string,
  which: TenantLock,
  tenantIds: Iterable<number>,
): Promise<boolean> {
  const { rows } = await queryPrepared<{ locked: boolean }>(
    db,
    `select coalesce(bool_and(${lockFunction}($1, t)), true) as locked from unnest($2::int[]) as l (t)`,
    [which, [...new Set(tenantIds)]],
  )
  return rows[0]!.locked
}

/** Prevents erasures in these tenants until the caller's transaction ends. */
export async function sharePeople(db: Db, tenantIds: Iterable<number>): Promise<void> {
  const locks = new Set<number>()
  for (const tenantId of tenantIds) locks.add(tenantId % PEOPLE_LOCKS)
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock_shared($1, l) from unnest($2::int[]) with ordinality as p (l, n) order by n',
    [PEOPLE, [...locks].sort((a, b) => a - b)],
  )
}

/** Waits for the transactions that share it, and blocks new ones until the caller's transaction ends. */
export async function lockPeople(db: Db, tenantId: number): Promise<void> {
  await db.query('select pg_advisory_xact_lock($1, $2)', [PEOPLE, tenantId % PEOPLE_LOCKS])
}

/** Returns false while another node drains the source. */
export async function tryLockOverflow(db: Db, sourceId: string): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended($1, $2)) as locked',
    [sourceId, OVERFLOW_SEED],
  )
  return rows[0]!.locked
}

/** Waits for transactions that write payments of these customers. Ordered to avoid deadlocks. */
export async function lockCustomers(db: Db, customers: { tenantId: number; id: string }[]): Promise<void> {
  await queryPrepared(
    db,
    `select pg_advisory_xact_lock($1, n::int) from (
       select distinct hashtextextended(id, tenant_id) & ($2 - 1) as n
       from unnest($3::int[], $4::text[]) as c (tenant_id, id) order by n
     ) buckets`,
    [CUSTOMER_LOCK, CUSTOMER_LOCKS, customers.map(({ tenantId }) => tenantId), customers.map(({ id }) => id)],
  )
}

/** Waits for transactions that write sales of these orders. Ordered to avoid deadlocks. */
export async function lockSales(db: Db, orders: { tenantId: number; orderId: string }[]): Promise<void> {
  await queryPrepared(
    db,
    `select pg_advisory_xact_lock($1, n::int) from (
       select distinct hashtextextended(order_id, tenant_id) & ($2 - 1) as n
       from unnest($3::int[], $4::text[]) as o (tenant_id, order_id) order by n
     ) buckets`,
    [SALE_LOCK, SALE_LOCKS, orders.map(({ tenantId }) => tenantId), orders.map(({ orderId }) => orderId)],
  )
}
