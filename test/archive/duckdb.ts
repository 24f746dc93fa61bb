/** Rows of a query. Values without a JavaScript type are strings. */
export type Query = (sql: string, ...values: string[]) => Promise<Record<string, unknown>[]>

/** An in-memory DuckDB; null if its package has no build for this machine. */
export async function openDuckdb(): Promise<{ query: Query; close(): Promise<void> } | null> {
  const api = await import('@duckdb/node-api').catch(() => null)
  if (api === null) return null
  const instance = await api.DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  return {
    async query(sql, ...values) {
      const reader = await connection.runAndReadAll(sql, values)
      return reader.getRowObjectsJson()
    },
    async close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
