/** The output of a command: results as JSON on stdout, messages on stderr (so `kontor … | jq` always works), and an exit code. */
export type Output = {
  /** One JSON value: indented on a terminal, otherwise on one line. */
  json(value: unknown): void
  /** Text on stdout: help, the version, exported data. */
  print(text: string): void
  say(words: string): void
  /** Resolves when the message is flushed. */
  sayNow(words: string): Promise<void>
  /** 0 success, 1 failure, 2 usage error. */
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
