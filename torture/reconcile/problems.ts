/** A difference from the ledger. `at` is the time of sending, which identifies the active fault. */
export type Problem = {
  kind: 'missing' | 'duplicate' | 'unexpected' | 'wrong' | 'stuck' | 'memory' | 'violation'
  words: string
  at: number | null
}
