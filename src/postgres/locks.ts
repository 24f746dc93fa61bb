import { type Db, queryPrepared } from './database.ts'

/**
 * Every advisory lock there is, in one list, so that no two uses meet by accident. All of them end with the
 * transaction that took them: they work behind a transaction pooler, and a process that dies holds none.
 */
export const LOCKS = {
  /** Nodes that start together bring the schema up to date one after the other. */
  migration: 4_911_001,
  /** Makers of partitions take turns. */
  partitions: 4_911_002,
  /** Of the nodes that start together for the first time, one makes the tenant and the keys. */
  firstStart: 4_911_003,
  /** Of the nodes that find the log in another cluster, one begins the new epoch. */
  epoch: 4_911_004,
  /** Whoever begins to write to a stream on NATS, and whoever says that nobody does any more, take turns. */
  streamWriters: 4_911_005,
  /** Of the nodes that want to make the sums of days, one does. */
  daySums: 4_911_400,
  /** Of the nodes that want to fold what was added to the sums of series, one does. */
  series: 4_911_900,
  /** Of the nodes that want to look for what is worth a warning, one does. */
  alerts: 4_911_950,
} as const

/** Locks with one instance a tenant; PostgreSQL keeps these pairs apart from the single numbers above. */
export const TENANT_LOCKS = {
  /** One for each entity type, counted from here. Writers share it, deleters by name have it alone. */
  records: 4_911_100,
  /**
   * Who is who. Whoever merges profiles or finds an earlier touch of a known person has it alone, whoever reads of
   * people where their accounts came from shares it: of two that learn the halves of one fact, the second sees both.
   */
  profiles: 4_911_200,
  /**
   * What is known of coupons, discounts and customers. Whoever learns of them has it alone, whoever derives the
   * subscriptions that name them shares it. Taken after `profiles`.
   */
  terms: 4_911_700,
} as const

/**
 * A charge and the invoice that it pays come in different partitions, and neither names the other: whoever tells of money
 * of one customer takes turns.
 */
const CUSTOMER_LOCK = 4_911_800
const CUSTOMER_LOCKS = 1_024

/** Sales of one order come from events and from its record, in different partitions: they take turns. */
const SALE_LOCK = 4_911_600
// A request may name thousands of orders; locks are a shared and bounded good.
const SALE_LOCKS = 1_024

// Who a tenant's people are: workers share it for the length of a transaction, an erasure has it alone. Tenants share 64
// of them: a transaction over a thousand tenants must not fill PostgreSQL's table of locks.
const PEOPLE = 4_911_500
const PEOPLE_LOCKS = 64

// Names are hashed with it: a source's queue is drained by one node at a time.
const OVERFLOW_SEED = 4_911_003

type Lock = (typeof LOCKS)[keyof typeof LOCKS]
type TenantLock = (typeof TENANT_LOCKS)[keyof typeof TENANT_LOCKS]

/** Waits until the lock is free, and holds it until the caller's transaction ends. */
export async function lock(db: Db, which: Lock): Promise<void> {
  await db.query('select pg_advisory_xact_lock($1)', [which])
}

/** False when somebody else holds it. */
export async function tryLock(db: Db, which: Lock): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>('select pg_try_advisory_xact_lock($1) as locked', [
    which,
  ])
  return rows[0]!.locked
}

/** The lock of each of these tenants, in the order of their numbers: nobody waits in a circle. */
export async function lockTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<void> {
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock($1, t) from unnest($2::int[]) with ordinality as l (t, n) order by n',
    [which, [...new Set(tenantIds)].sort((a, b) => a - b)],
  )
}

/** The same, shared: only whoever wants it alone waits, and is waited for. */
export async function shareTenants(db: Db, which: TenantLock, tenantIds: Iterable<number>): Promise<void> {
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock_shared($1, t) from unnest($2::int[]) with ordinality as l (t, n) order by n',
    [which, [...new Set(tenantIds)].sort((a, b) => a - b)],
  )
}

/** Without waiting: false where somebody else has one of them. */
export async function tryLockTenants(
  db: Db,
  which: TenantLock,
  tenantIds: Iterable<number>,
): Promise<boolean> {
  return tryTenants(db, 'pg_try_advisory_xact_lock', which, tenantIds)
}

export async function tryShareTenants(
  db: Db,
  which: TenantLock,
  tenantIds: Iterable<number>,
): Promise<boolean> {
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

/** Until the caller's transaction ends, nobody of these tenants is erased. */
export async function sharePeople(db: Db, tenantIds: Iterable<number>): Promise<void> {
  const locks = new Set<number>()
  for (const tenantId of tenantIds) locks.add(tenantId % PEOPLE_LOCKS)
  await queryPrepared(
    db,
    'select pg_advisory_xact_lock_shared($1, l) from unnest($2::int[]) with ordinality as p (l, n) order by n',
    [PEOPLE, [...locks].sort((a, b) => a - b)],
  )
}

/** Waits for the transactions that share it, and holds new ones back until the caller's transaction ends. */
export async function lockPeople(db: Db, tenantId: number): Promise<void> {
  await db.query('select pg_advisory_xact_lock($1, $2)', [PEOPLE, tenantId % PEOPLE_LOCKS])
}

/** False when somebody else drains the source at this moment. */
export async function tryLockOverflow(db: Db, sourceId: string): Promise<boolean> {
  const { rows } = await db.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock(hashtextextended($1, $2)) as locked',
    [sourceId, OVERFLOW_SEED],
  )
  return rows[0]!.locked
}

/** Waits for whoever tells of money of these customers. In order, so that nobody waits in a circle. */
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

/** Waits for whoever writes sales of these orders. In order, so that nobody waits in a circle. */
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
