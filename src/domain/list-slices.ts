/** Parts of lists: which rows are wanted, and the shortest way to them. */

/** Some rows of a list: `limit` of them after the first `offset`. */
export type Slice = { offset: number; limit: number }

/**
 * A slice from the second half of a list is read from its end: the deepest page then costs what the first one does,
 * and the one in the middle costs most.
 */
export function nearerEnd(slice: Slice, count: number): Slice & { backwards: boolean } {
  const limit = Math.max(0, Math.min(slice.limit, count - slice.offset))
  const fromEnd = count - slice.offset - limit
  return fromEnd < slice.offset
    ? { offset: Math.max(0, fromEnd), limit, backwards: true }
    : { offset: slice.offset, limit, backwards: false }
}

/** Cuts a slice that runs over several lists, one after the other, into slices of each. */
export function slicesOf(slice: Slice, counts: number[]): Slice[] {
  let { offset, limit } = slice
  return counts.map(count => {
    const taken = Math.max(0, Math.min(limit, count - offset))
    const part = { offset: Math.min(offset, count), limit: taken }
    offset = Math.max(0, offset - count)
    limit -= taken
    return part
  })
}
