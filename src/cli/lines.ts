import { styleText } from 'node:util'

/** One line of a following command on a terminal: the local time, a title and details. */
export function lineOf(
  at: Date,
  colour: 'cyan' | 'green' | 'red',
  what: string,
  facts: (string | null)[],
): string {
  const time = at.toLocaleString('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })
  const shown = facts.filter(fact => fact !== null).map(printable)
  return [styleText('dim', time), styleText(colour, printable(what)), ...shown].join('  ')
}

/** Received data must not contain control characters that move the cursor or reconfigure the terminal. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

/** Aborts on Ctrl-C, or when the reader of the pipe closes it. */
export function untilStopped(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  process.stdout.once('error', () => stop.abort())
  return stop.signal
}
