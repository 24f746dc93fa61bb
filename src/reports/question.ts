import type { Filter } from '../domain/billing/dimensions.ts'
import type { PolicyVersion } from '../domain/billing/policy.ts'
import type { Slice } from '../domain/list-slices.ts'
import { DAY_MS, withinYears } from '../domain/time.ts'

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
