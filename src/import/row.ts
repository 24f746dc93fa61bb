import type { JsonObject } from '../domain/json/json.ts'

/** A row of a file that starts at `line`. `text` is its original JSON, if it was JSON. */
export type Row = { line: number; cells: JsonObject; text?: string }

/** Why a row is rejected, and the column that causes it, if there is one. */
export type Rejection = { line: number; column: string | null; reason: string }

/** What is sent to the service as JSON. Items with the same `id` stay in order. */
export type Item = { line: number; id: string; text: string }

export type Read = Item | Rejection

/** Converts rows to items. Several rows may form one item; `end` returns the last one. */
export type Reading = { push(row: Row): Read[]; end(): Read[] }

/** The file cannot be read. The import stops. */
export class FileFault extends Error {
  override name = 'FileFault'
}

export function isRejection(read: Row | Read): read is Rejection {
  return 'reason' in read
}

/** A reading that converts each row separately. */
export function rowByRow(read: (row: Row) => Read): Reading {
  return { push: row => [read(row)], end: () => [] }
}
