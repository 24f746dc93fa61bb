/** Results go to stdout as JSON, words to stderr: `kontor … | jq` always works. */
export type Output = {
  /** One JSON value: on one line, or spread out where a person looks. */
  json(value: unknown): void
  /** What was asked for and is text: help, the version. */
  print(text: string): void
  say(words: string): void
  /** Resolves when the words have left this process. */
  sayNow(words: string): Promise<void>
  isTerminal: boolean
}

export const processOutput: Output = {
  json(value) {
    process.stdout.write(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)}\n`)
  },
  print(text) {
    process.stdout.write(`${text}\n`)
  },
  say(words) {
    process.stderr.write(`${words}\n`)
  },
  sayNow(words) {
    return new Promise((resolve, reject) => {
      process.stderr.write(`${words}\n`, error => (error ? reject(error) : resolve()))
    })
  },
  isTerminal: process.stdout.isTTY === true,
}
