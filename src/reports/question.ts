import type pg from 'pg'
import type { Filter } from '../domain/billing/dimensions.ts'
import type { PolicyVersion } from '../domain/billing/policy.ts'
import type { Slice } from '../domain/list-slices.ts'
import { DAY_MS, withinYears } from '../domain/time.ts'
import { type Db, inTransaction, isConflict } from '../postgres/database.ts'
import { readOneState } from '../store/reports/scope.ts'

/** What every report is asked: about whom, in which currency, as of when and by which policy. */
export type ReportQuestion = {
  tenantId: number
  currency: string
  asOf: Date
  /** When it is asked. */
  now: Date
  policy: PolicyVersion
  filter: Filter
}

/** A list of a report: how long it is, and its rows as far as they are wanted. Amounts are whole minor units. */
export type ReportList<Row> = { count: number; rows(slice: Slice): Promise<Row[]> }

/** A list that is all there already. */
export function listOf<Row>(rows: Row[]): ReportList<Row> {
  return { count: rows.length, rows: async ({ offset, limit }) => rows.slice(offset, offset + limit) }
}

/** So many days before or after, within the years that there are. */
export function daysFrom(at: Date, days: number): Date {
  return withinYears(at.getTime() + days * DAY_MS)
}

export function sum<T>(values: T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}

/** One state of the database for all questions of one report; PostgreSQL itself refuses to write in it. */
export async function inSnapshot<T>(pool: pg.Pool, read: (db: Db) => Promise<T>): Promise<T> {
  const once = () =>
    inTransaction(pool, async client => {
      await readOneState(client)
      return read(client)
    })
  try {
    return await once()
  } catch (error) {
    // behind a pooler that loses prepared statements, the first report finds that out
    if (!isConflict(error)) throw error
    return once()
  }
}
