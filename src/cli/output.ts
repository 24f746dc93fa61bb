import { styleText } from 'node:util'
import type { Progress } from '../admin/backup.ts'

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

const EVERY_MS = 3_000

/** Prints a line every three seconds; none for work that is done sooner. */
export function reportProgress(out: Output, verb: string): Progress {
  const start = performance.now()
  let last = start
  return ({ bytes, ofBytes, what }) => {
    const now = performance.now()
    if (now - last < EVERY_MS) return
    last = now
    const pace = megabytes(bytes / ((now - start) / 1_000))
    const share = Math.min(99, Math.floor((100 * bytes) / Math.max(1, ofBytes)))
    out.say(`${verb} ${share} % (${megabytes(bytes)} MB, ${pace} MB/s)${what === '' ? '' : `, current: ${what}`}.`)
  }
}

function megabytes(bytes: number): string {
  return Math.round(bytes / 1e6).toLocaleString('en')
}

/** A progress line on a terminal, overwritten on each update: count, rate and remaining time. */
export function openProgressLine(what: string) {
  const isTerminal = process.stderr.isTTY === true
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    show(count: number, share: number | null): void {
      const now = performance.now()
      if (!isTerminal || now - shownAt < 200) return
      shownAt = now
      const seconds = (now - startedAt) / 1000
      const rate = Math.round(count / Math.max(seconds, 0.001))
      const left =
        share && share > 0.001
          ? `, ${Math.round(100 * share)} %, ${duration((seconds / share) * (1 - share))} left`
          : ''
      process.stderr.write(`\r\x1b[2K${count.toLocaleString('en')} ${what}, ${rate.toLocaleString('en')}/s${left}`)
    },
    end(): void {
      if (isTerminal && shownAt > 0) process.stderr.write('\r\x1b[2K')
    },
  }
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5_400 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`
}

/** One line of a following command on a terminal: the local time, a title and details. */
export function formatLine(at: Date, color: 'cyan' | 'green' | 'red', what: string, facts: (string | null)[]): string {
  const time = at.toLocaleString('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
  const shown = facts.filter(fact => fact !== null).map(printable)
  return [styleText('dim', time), styleText(color, printable(what)), ...shown].join('  ')
}

/** Received data must not contain control characters that move the cursor or reconfigure the terminal. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

/** Aborts on Ctrl-C, or when the reader of the pipe closes it. */
export function createStopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  process.stdout.once('error', () => stop.abort())
  return stop.signal
}
