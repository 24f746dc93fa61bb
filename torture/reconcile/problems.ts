/** Something that is not as the ledger says. `at`: when it was sent, to find the fault that struck then. */
export type Problem = {
  kind: 'missing' | 'doubled' | 'unexpected' | 'wrong' | 'stuck' | 'memory' | 'violation'
  words: string
  at: number | null
}
