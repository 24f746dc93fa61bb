import { styleText } from 'node:util'

/** What a command that goes on shows of one thing on a terminal: when (in the time of whoever looks), what, and facts of it. */
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

/** What somebody sent may not move the cursor, nor change what the terminal does. */
function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

/** Ctrl-C, or the reader of a pipe has seen enough. */
export function untilStopped(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  process.stdout.once('error', () => stop.abort())
  return stop.signal
}
