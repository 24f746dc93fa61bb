import { styleText } from 'node:util'
import type { Progress } from '../admin/backup.ts'
import { fileErrorReason } from '../admin/error.ts'

/** The output of a command: results as JSON on stdout, messages on stderr (so `kontor … | jq` always works), and an exit code. */
export type Output = {
  /** One JSON value, on one line. On a terminal, a list is a table unless `asJson`, and anything else is indented. */
  json(value: unknown): void
  /** `--json` */
  asJson?: boolean
  /** Text on stdout: help, the version, exported data. */
  print(text: string): void
  say(words: string): void
  /** Resolves when the message is flushed. Rejects with MessageLost if it cannot be written. */
  sayNow(words: string): Promise<void>
  /** 0 success, 1 failure, 2 usage error. */
  exitCode: 0 | 1 | 2
}

/** stderr cannot be written. */
export class MessageLost extends Error {
  override name = 'MessageLost'
}

export function processOutput(): Output {
  const out: Output = {
    json(value) {
      const isTable = process.stdout.isTTY && !out.asJson && Array.isArray(value) && value.every(isRow)
      const text = isTable ? formatTable(value) : JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)
      process.stdout.write(`${text}\n`)
    },
    print: text => process.stdout.write(text),
    say: words => process.stderr.write(`${words}\n`),
    sayNow: words =>
      new Promise((resolve, reject) => {
        process.stderr.write(`${words}\n`, error => (error ? reject(new MessageLost(error.message)) : resolve()))
      }),
    exitCode: 0,
  }
  return out
}

/**
 * Without these listeners, an error of stdout or stderr would end the process before it stops what it has started. If the result of a
 * command cannot be written, the command fails. Lost messages are not an error: a full disk of the log must not end the server.
 */
export function reportFailedOutput(): void {
  process.stderr.on('error', () => {})
  let isReported = false
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `kontor … | head` closes the pipe early.
    if (error.code === 'EPIPE' || isReported) return
    isReported = true
    process.exitCode = 1
    process.stderr.write(`The output cannot be written: ${fileErrorReason(error)}.\n`)
  })
}

type Row = Record<string, unknown>
const isRow = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

const MAX_CELL = 40

/** Fields that are objects or lists are left out, and those that are empty in every row; `--json` prints them. Only the last column is never cut. */
export function formatTable(rows: Row[]): string {
  if (rows.length === 0) return '(none)'
  const names = [...new Set(rows.flatMap(Object.keys))].filter(name =>
    rows.some(row => !isEmpty(row[name]) && typeof row[name] !== 'object'),
  )
  const cell = (value: unknown, isLast: boolean) => {
    const text = isEmpty(value) || typeof value === 'object' ? '' : printable(String(value))
    return text.length > MAX_CELL && !isLast ? `${text.slice(0, MAX_CELL - 1)}…` : text
  }
  const lines = [names, ...rows.map(row => names.map((name, i) => cell(row[name], i === names.length - 1)))]
  const widths = names.map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  return lines
    .map(line =>
      line
        .map((text, column) => text.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === ''
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
    out.say(`${verb} ${share}% (${megabytes(bytes)} MB, ${pace} MB/s)${what === '' ? '' : `, current: ${what}`}.`)
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
        share && share > 0.001 ? `, ${Math.round(100 * share)}%, ${duration((seconds / share) * (1 - share))} left` : ''
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
