/** CI runs randomized tests longer, because more iterations find more. */
export const isLong = process.env.KONTOR_TEST_LONG === '1'

/** The number of runs of a property: all of them in CI, otherwise a third. */
export const runs = (inCi: number) => (isLong ? inCi : Math.ceil(inCi / 3))
