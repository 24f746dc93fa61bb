import { type Db, queryPrepared } from '../../postgres/database.ts'

/** An object of one tenant, by its id at the source. */
export type ObjectKey = { tenantId: number; id: string }

export function keyColumns(keys: ObjectKey[]): [number[], string[]] {
  return [keys.map(key => key.tenantId), keys.map(key => key.id)]
}

/** In the order in which rows are locked. */
export function sortedKeys<Key extends ObjectKey>(keys: Key[]): Key[] {
  return [...keys].sort((a, b) => a.tenantId - b.tenantId || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

export function keyText(key: ObjectKey): string {
  return `${key.tenantId} ${key.id}`
}

export function distinctKeys<Key extends ObjectKey>(keys: Key[]): Key[] {
  return [...new Map(keys.map(key => [keyText(key), key])).values()]
}

export function timeText(at: number): string {
  return new Date(at).toISOString()
}

export const utcDay = (at: string) => `(${at}::timestamptz at time zone 'UTC')::date`

/** The end of a row; null: open-ended. */
export function endText(at: number | null): string {
  return at === null ? 'infinity' : timeText(at)
}

/** Converts pg's value of a timestamptz column; infinity becomes null. */
export function toInstant(value: Date | number): number | null {
  return value instanceof Date ? value.getTime() : null
}

type Lockable = 'billing_subscriptions' | 'billing_invoices' | 'billing_payments'

/** Columns of a row without any known version, in addition to its key. */
const EMPTY: Record<Lockable, { columns: string; values: string }> = {
  billing_subscriptions: { columns: ', seen', values: ', false' },
  billing_invoices: { columns: ', currency', values: ", ''" },
  billing_payments: { columns: '', values: '' },
}

/** Creates missing rows, in order. */
export async function ensureRows(db: Db, table: Lockable, keys: ObjectKey[]): Promise<void> {
  const { columns, values } = EMPTY[table]
  await queryPrepared(
    db,
    `insert into ${table} (tenant_id, id${columns})
     select tenant_id, id${values} from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     order by tenant_id, id collate "C" on conflict do nothing`,
    keyColumns(sortedKeys(keys)),
  )
}

/** Locks in order. The caller then sees all that earlier transactions wrote. */
export async function lockRows(db: Db, table: Lockable, keys: ObjectKey[]): Promise<void> {
  await queryPrepared(
    db,
    `select from ${table} t join unnest($1::int[], $2::text[]) as k (tenant_id, id) using (tenant_id, id)
     order by t.tenant_id, t.id for update of t`,
    keyColumns(sortedKeys(keys)),
  )
}

/** A table with derived rows. All rows of one owner are derived together, and only changed ones are written. */
export type DerivedTable = {
  name: string
  /** The column with the owner of the row, in addition to tenant_id. */
  owner: string
  /** The other columns of the primary key. */
  key: readonly string[]
  /** The columns outside the primary key. */
  values: readonly string[]
  /** The end column, if only the rows after `since` are replaced. */
  until?: string
  /** The expression that shows whether a row changed; default: all values. */
  compared?: (row: 'new' | 'old') => string
}

/**
 * The statement that replaces the rows of some owners ($1 tenants, $2 owners) with $3, a JSON array of rows, and does not
 * touch rows that stay the same. In tables with `until`, only rows that end after $4 are replaced. `effects` continues
 * the statement and can use `old`, the removed rows, and `new`, the added ones. The caller locks the owners.
 */
export function replacing(table: DerivedTable, effects = 'select'): string {
  const key = ['tenant_id', table.owner, ...table.key]
  const columns = [...key, ...table.values].join(', ')
  const sameRow = (a: string, b: string) => key.map(column => `${a}.${column} = ${b}.${column}`).join(' and ')
  const compared = table.compared ?? (row => `(${table.values.map(column => `${row}.${column}`).join(', ')})`)
  const unlike = (row: 'new' | 'old', other: 'new' | 'old', others: string) => `not exists (
      select from ${others} ${other} where ${sameRow(other, row)} and ${compared(other)} is not distinct from ${compared(row)})`
  const since = table.until === undefined ? '' : ', $4::timestamptz[]'
  return `
with wanted as materialized (
  select ${columns} from json_populate_recordset(null::${table.name}, $3)
), had as materialized (
  select r.* from unnest($1::int[], $2::text[]${since}) as k (tenant_id, owner${since && ', since'}) cross join lateral (
    select ${columns} from ${table.name} t where t.tenant_id = k.tenant_id and t.${table.owner} = k.owner
      ${since && `and t.${table.until} > k.since`} offset 0) r
), old as materialized (
  select * from had old where ${unlike('old', 'new', 'wanted')}
), new as materialized (
  select * from wanted new where ${unlike('new', 'old', 'had')}
), removed as (
  delete from ${table.name} t using old
  where ${sameRow('t', 'old')} and not exists (select from new where ${sameRow('new', 'old')})
), written as (
  insert into ${table.name} (${columns}) select ${columns} from new
  on conflict (${key.join(', ')}) do update set
    ${table.values.map(column => `${column} = excluded.${column}`).join(', ')}
)
${effects}`
}

/** An `effects` for `replacing` that returns the keys of added rows. */
export function returningAdded(table: DerivedTable): string {
  const key = ['tenant_id', table.owner, ...table.key]
  const sameRow = key.map(column => `old.${column} = new.${column}`).join(' and ')
  return `select ${key.join(', ')} from new where not exists (select from old where ${sameRow})`
}

/** Runs a statement of `replacing`. */
export async function replaceRows<Row extends object = never>(
  db: Db,
  statement: string,
  owners: ObjectKey[],
  rows: object[],
): Promise<Row[]> {
  return (await queryPrepared<Row>(db, statement, [...keyColumns(owners), JSON.stringify(rows)])).rows
}

/** An owner whose rows that end after `since` are replaced; null: all rows. */
export type OwnerSince = ObjectKey & { since: number | null }

/** Runs a statement of `replacing` for a table with `until`. */
export async function replaceRowsSince<Row extends object = never>(
  db: Db,
  statement: string,
  owners: OwnerSince[],
  rows: object[],
): Promise<Row[]> {
  const since = owners.map(({ since }) => (since === null ? '-infinity' : timeText(since)))
  const values = [...keyColumns(owners), JSON.stringify(rows), since]
  return (await queryPrepared<Row>(db, statement, values)).rows
}
