// Requests to stop the process: a signal, or the end of the process that started it.
import { isRunByNpm } from '../config/config.ts'

// Ctrl-C on a terminal reaches this process twice within milliseconds: directly, and through bin/kontor.mjs or npm.
const ECHO_MS = 500
const POLL_PARENT_MS = 500
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** The command was stopped before it was complete. */
export class Stopped extends Error {
  override name = 'Stopped'
  constructor(message = 'Stopped before the command was complete.') {
    super(message)
  }
}

type Handler = {
  isDefault: boolean
  stop(why: string): void
  /** Called before a second signal ends the process. */
  stopNow(): void
}

const handlers: Handler[] = []
let firstAt: number | null = null
let polling: NodeJS.Timeout | undefined

/**
 * Calls `stop` at the first request to stop. Of several handlers, the last one is called. A second signal ends the process
 * immediately. Returns a function that removes the handler.
 */
export function onStop(stop: Handler['stop'], stopNow: Handler['stopNow'] = () => {}): () => void {
  return addHandler({ stop, stopNow, isDefault: false })
}

/** For what all commands have in common: called if the command has no handler of its own. */
export function onStopByDefault(stop: Handler['stop']): () => void {
  return addHandler({ stop, stopNow() {}, isDefault: true })
}

function addHandler(handler: Handler): () => void {
  if (handlers.length === 0) listen()
  handlers.push(handler)
  return () => {
    handlers.splice(handlers.indexOf(handler), 1)
    if (handlers.length === 0) unlisten()
  }
}

/** For work that can end by itself. `onFirst` is called at the first request to stop. */
export async function withStopSignal<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onFirst: () => void = () => {},
): Promise<T> {
  const controller = new AbortController()
  const end = onStop(() => {
    onFirst()
    controller.abort()
  })
  try {
    return await work(controller.signal)
  } finally {
    end()
  }
}

/** For commands that follow new data: Ctrl-C ends them, and so does a reader that closes the pipe. */
export async function untilReaderStops(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const closed = new AbortController()
  const close = () => closed.abort()
  process.stdout.once('error', close)
  try {
    await withStopSignal(signal => work(AbortSignal.any([signal, closed.signal])))
  } finally {
    process.stdout.off('error', close)
  }
}

function listen(): void {
  for (const signal of SIGNALS) process.on(signal, onSignal)
  // After a signal, npm exits before this process. That is not a second signal.
  if (isRunByNpm()) pollParent()
  // The caller knows only the process id of bin/kontor.mjs. If that process is gone, the caller cannot stop this one.
  process.once('disconnect', onDisconnect)
  process.channel?.unref()
  // It ended before this listener was added.
  if (process.connected === false) setImmediate(onDisconnect)
}

function unlisten(): void {
  for (const signal of SIGNALS) process.off(signal, onSignal)
  process.off('disconnect', onDisconnect)
  clearInterval(polling)
  firstAt = null
}

function onSignal(signal: NodeJS.Signals): void {
  if (firstAt !== null && performance.now() - firstAt > ECHO_MS) {
    currentHandler()?.stopNow()
    process.exit(1)
  }
  request(signal)
}

function onDisconnect(): void {
  request('the kontor command has ended')
}

function request(why: string): void {
  if (firstAt !== null) return
  firstAt = performance.now()
  currentHandler()?.stop(why)
}

function currentHandler(): Handler | undefined {
  return handlers.findLast(({ isDefault }) => !isDefault) ?? handlers.at(-1)
}

/** npm forwards a signal only to the shell that it started, and the shell exits without forwarding it. */
function pollParent(): void {
  const parent = process.ppid
  polling = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(polling)
    request('npm has ended')
  }, POLL_PARENT_MS).unref()
}
