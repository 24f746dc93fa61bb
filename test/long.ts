/** CI runs at length what finds more the longer it goes on; `npm test` by itself ends in eight minutes on two processors. */
export const isLong = process.env.KONTOR_TEST_LONG === '1'
