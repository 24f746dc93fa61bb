/** Rows as columns, for `unnest`: one array a field. */
export function columnsOf<Row extends object>(rows: readonly Row[], ...fields: (keyof Row)[]): unknown[][] {
  return fields.map(field => rows.map(row => row[field]))
}
