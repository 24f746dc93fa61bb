import type { JsonObject } from '../domain/json/json.ts'

/** A row of a file as it stands there; `line` is where it begins. `text`: the JSON that it was, if it was JSON. */
export type Row = { line: number; cells: JsonObject; text?: string }

/** Why a row is not taken, and in which column that is, if in one. */
export type Rejection = { line: number; column: string | null; reason: string }

/** What goes into the service: `text` is JSON, `id` what it is about; of one id the order is kept. */
export type Item = { line: number; id: string; text: string }

export type Read = Item | Rejection

/** Makes items of rows. Several rows may be one item: `end` gives what is still open. */
export type Reading = { push(row: Row): Read[]; end(): Read[] }

/** The file cannot be read as what it was said to be: nothing of it is taken from here on. */
export class FileFault extends Error {
  override name = 'FileFault'
}

export function isRejection(read: Row | Read): read is Rejection {
  return 'reason' in read
}

/** A reading in which every row stands for itself. */
export function rowByRow(read: (row: Row) => Read): Reading {
  return { push: row => [read(row)], end: () => [] }
}
