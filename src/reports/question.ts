import type pg from 'pg'
import type { Filter } from '../domain/billing/dimensions.ts'
import type { PolicyVersion } from '../domain/billing/policy.ts'
import type { Slice } from '../domain/list-slices.ts'
import { DAY_MS, withinYears } from '../domain/time.ts'
import { type Db, inTransaction, isConflict } from '../postgres/database.ts'
import type { Closing } from '../store/billing/closings.ts'
import { readOneState } from '../store/reports/scope.ts'

/** The parameters of every report. */
export type ReportQuestion = {
  tenantId: number
  currency: string
  asOf: Date
  /** The time of the request. */
  now: Date
  policy: PolicyVersion
  filter: Filter
  /** All currencies, converted to `currency`. */
  isReporting?: boolean
  /** With basis=as_closed: the closing of the month in which the report ends; the report is as it was then. */
  closing?: Closing | null
  /** With basis=as_closed: all closings. A series follows one in each bucket. */
  closings?: Closing[]
}

/** The report cannot answer the question. The message follows the name of the parameter. */
export class QuestionError extends Error {
  readonly pointer: string
  constructor(pointer: string, message: string) {
    super(message)
    this.pointer = pointer
  }
}

/** A list of a report: its length, and a reader of its rows. Amounts are integers in minor units. */
export type ReportList<Row> = { count: number; rows(slice: Slice): Promise<Row[]> }

/** A list whose rows are all in memory. */
export function toList<Row>(rows: Row[]): ReportList<Row> {
  return { count: rows.length, rows: async ({ offset, limit }) => rows.slice(offset, offset + limit) }
}

/** Adds days, limited to the years 1 to 9999. */
export function daysFrom(at: Date, days: number): Date {
  return withinYears(at.getTime() + days * DAY_MS)
}

export function sum<T>(values: T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}

/** Runs all queries of one report in one read-only snapshot. */
export async function inSnapshot<T>(pool: pg.Pool, read: (db: Db) => Promise<T>): Promise<T> {
  const once = () =>
    inTransaction(pool, async client => {
      await readOneState(client)
      return read(client)
    })
  try {
    return await once()
  } catch (error) {
    // behind a pooler without prepared statements, the first query fails once
    if (!isConflict(error)) throw error
    return once()
  }
}
