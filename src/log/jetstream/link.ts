import { setTimeout as sleep } from 'node:timers/promises'
import { LogUnavailable } from '../log.ts'
import { type Connected, connectTo } from './access.ts'
import { isRefusal, reasonOf } from './errors.ts'
import type { NatsSettings } from './settings.ts'
import { ensureStream, type Stream } from './stream.ts'

export type Linked = Connected & { stream: Stream }

/** The way to the stream: there, or being looked for. */
export type Link = {
  /** null while NATS is away, or the stream has not been looked at since. */
  current(): Linked | null
  /** Looks for it from here on. */
  open(): void
  /** Waits for it; refuses with what stands in the way. */
  ready(withinMs?: number): Promise<Linked>
  /** Something went wrong there: the stream is looked at anew, for it may be gone. */
  renew(): void
  /** Called with every stream that was found: the first time, and after each time that NATS was away. */
  onFound(listener: (linked: Linked) => Promise<void>): void
  close(): Promise<void>
}

export type LinkLogger = {
  warn(facts: object, message: string): void
  info(facts: object, message: string): void
}

const AGAIN_MS = 500
const AGAIN_WHEN_REFUSED_MS = 5_000
const READY_WITHIN_MS = 5_000
const RENEW_EVERY_MS = 1_000

/** Nothing is opened before it is asked for. */
export function openLink(
  settings: NatsSettings,
  { name, logger }: { name: string; logger?: LinkLogger },
): Link {
  const listeners: ((linked: Linked) => Promise<void>)[] = []
  const waiting = new Set<{ resolve(linked: Linked): void; reject(error: unknown): void }>()
  let connected: Connected | null = null
  let linked: Linked | null = null
  let isOpening = false
  let isClosed = false
  let lastError: unknown = null
  let foundAt = -Infinity

  async function find(): Promise<void> {
    connected ??= await watched(await connectTo(settings.access, name))
    const found = { ...connected, stream: await ensureStream(connected, settings) }
    for (const listener of listeners) await listener(found)
    linked = found
    foundAt = performance.now()
    lastError = null
    for (const { resolve } of waiting) resolve(found)
    waiting.clear()
  }

  async function keepFinding(): Promise<void> {
    if (isOpening) return
    isOpening = true
    try {
      while (!isClosed && linked === null) {
        try {
          await find()
        } catch (error) {
          if (isClosed) return
          lastError = error
          const refused = isRefusal(error)
          logger?.warn({ reason: reasonOf(error) }, 'the log on NATS cannot be reached')
          // Whoever starts is to hear of it at once; others go on waiting until their time is over.
          if (refused) for (const { reject } of waiting) reject(error)
          await sleep(refused ? AGAIN_WHEN_REFUSED_MS : AGAIN_MS, undefined, { ref: false })
        }
      }
    } finally {
      isOpening = false
    }
  }

  /** After NATS was away, the stream may be another one. */
  async function watched(fresh: Connected): Promise<Connected> {
    void (async () => {
      for await (const { type } of fresh.connection.status()) {
        if (type === 'disconnect') linked = null
        if (type === 'reconnect') void keepFinding()
      }
    })()
    void fresh.connection.closed().then(() => {
      linked = null
      connected = null
      if (!isClosed) void keepFinding()
    })
    return fresh
  }

  return {
    current: () => linked,
    open: () => void keepFinding(),
    async ready(withinMs = READY_WITHIN_MS) {
      if (linked) return linked
      if (isClosed) throw new LogUnavailable('The log on NATS is closed')
      void keepFinding()
      const { promise, resolve, reject } = Promise.withResolvers<Linked>()
      const waiter = { resolve, reject }
      waiting.add(waiter)
      const timer = setTimeout(
        () => reject(new LogUnavailable(`NATS is away${lastError ? `: ${reasonOf(lastError)}` : ''}`)),
        withinMs,
      )
      return promise.finally(() => {
        clearTimeout(timer)
        waiting.delete(waiter)
      })
    },
    renew() {
      if (linked === null || performance.now() - foundAt < RENEW_EVERY_MS) return
      linked = null
      void keepFinding()
    },
    onFound: listener => listeners.push(listener),
    async close() {
      isClosed = true
      const open = connected
      linked = null
      await open?.connection.close()
    },
  }
}
