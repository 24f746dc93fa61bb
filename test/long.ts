/** CI runs randomized tests longer, because more iterations find more. */
export const isLong = process.env.KONTOR_TEST_LONG === '1'

/** The number of runs of a property: all of them in CI, otherwise a third. KONTOR_TEST_RUNS sets another number. */
export const runs = (inCi: number) => Number(process.env.KONTOR_TEST_RUNS ?? (isLong ? inCi : Math.ceil(inCi / 3)))

/** All values in CI, otherwise every third, beginning with another one in each group of three. */
export const sampled = <T>(values: T[]) => (isLong ? values : values.filter((_, i) => i % 3 === Math.floor(i / 3) % 3))
