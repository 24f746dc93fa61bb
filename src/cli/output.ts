/** What a command leaves: results on stdout as JSON, words on stderr (`kontor … | jq` always works), an exit code. */
export type Output = {
  /** One JSON value: on one line, or spread out where a person looks. */
  json(value: unknown): void
  /** What was asked for and is text: help, the version. */
  print(text: string): void
  say(words: string): void
  /** Resolves when the words have left this process. */
  sayNow(words: string): Promise<void>
  /** 0 done, 1 failed, 2 not used as it should be. */
  exitCode: 0 | 1 | 2
}

export function processOutput(): Output {
  return {
    json: value => process.stdout.write(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)}\n`),
    print: text => process.stdout.write(text),
    say: words => process.stderr.write(`${words}\n`),
    sayNow: words =>
      new Promise((resolve, reject) => {
        process.stderr.write(`${words}\n`, error => (error ? reject(error) : resolve()))
      }),
    exitCode: 0,
  }
}
