/** Slices of lists, and the cheapest way to read them. */

/** `limit` rows after the first `offset`. */
export type Slice = { offset: number; limit: number }

/**
 * A slice in the second half of a list is read from the end. The last page then costs as much as the first one, and the
 * middle page costs most.
 */
export function nearerEnd(slice: Slice, count: number): Slice & { backwards: boolean } {
  const limit = Math.max(0, Math.min(slice.limit, count - slice.offset))
  const fromEnd = count - slice.offset - limit
  return fromEnd < slice.offset
    ? { offset: Math.max(0, fromEnd), limit, backwards: true }
    : { offset: slice.offset, limit, backwards: false }
}

/** Splits a slice of several concatenated lists into one slice per list. */
export function splitSlice(slice: Slice, counts: number[]): Slice[] {
  let { offset, limit } = slice
  return counts.map(count => {
    const taken = Math.max(0, Math.min(limit, count - offset))
    const part = { offset: Math.min(offset, count), limit: taken }
    offset = Math.max(0, offset - count)
    limit -= taken
    return part
  })
}
