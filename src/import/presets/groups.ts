import type { Read, Reading, Row } from '../row.ts'

/** A reading in which rows that follow each other and have the same name belong together. */
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
