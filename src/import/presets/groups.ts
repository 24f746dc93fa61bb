import type { Read, Reading, Row } from '../row.ts'

// Bounds memory. An order has at most 500 items, a product 2,048 variants and 250 pictures.
const MAX_ROWS = 10_000

/** A reading that groups consecutive rows with the same name. */
export function grouped(
  nameOf: (row: Row) => string | null,
  read: (rows: [Row, ...Row[]]) => Read[],
): Reading {
  let name: string | null = null
  let open: [Row, ...Row[]] | null = null
  const close = () => {
    const reads = open ? read(open) : []
    open = null
    return reads
  }
  return {
    push(row) {
      const own = nameOf(row)
      if (open && own !== null && own === name) {
        if (open.length >= MAX_ROWS)
          return [
            {
              line: row.line,
              column: null,
              reason: `there are more than ${MAX_ROWS} rows of ${own.slice(0, 100)}`,
            },
          ]
        open.push(row)
        return []
      }
      const reads = close()
      name = own
      open = [row]
      return reads
    },
    end: close,
  }
}
