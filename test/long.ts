/** CI runs randomized tests longer, because more iterations find more. */
export const isLong = process.env.KONTOR_TEST_LONG === '1'
