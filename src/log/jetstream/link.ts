import { setTimeout as sleep } from 'node:timers/promises'
import { LogRefused, LogUnavailable } from '../log.ts'
import { type Connected, connectTo } from './access.ts'
import { reasonOf, refusalOf, StreamTaken } from './errors.ts'
import type { ReadOwner } from './owner.ts'
import type { NatsSettings } from './settings.ts'
import { ensureStream, type Stream } from './stream.ts'

export type Linked = Connected & { stream: Stream }

/**
 * The way to the stream: there, or being looked for. Whoever reads has to know that it is still the same one; whoever writes does not, and goes on
 * while a cluster that lost a server cannot answer that yet.
 */
export type Link = {
  /** The stream, as it was seen since NATS was last away; null until then. */
  current(): Linked | null
  /** Looks for it from here on. */
  open(): void
  /** Waits for it; refuses with what stands in the way. */
  ready(withinMs?: number): Promise<Linked>
  /** The stream as it was last seen, while there is a connection; null while there is none. */
  writable(): Linked | null
  writableWithin(ms: number): Promise<Linked>
  /** Something went wrong there: the stream is looked at anew, for it may be gone. */
  renew(): void
  /** Called with every stream that was found: the first time, and after each time that NATS was away. */
  onFound(listener: (linked: Linked) => void): void
  close(): Promise<void>
}

export type LinkLogger = {
  error(facts: object, message: string): void
  warn(facts: object, message: string): void
  info(facts: object, message: string): void
}

const AGAIN_MS = 500
const AGAIN_WHEN_REFUSED_MS = 5_000
const READY_WITHIN_MS = 5_000
const RENEW_EVERY_MS = 1_000
const TELL_AGAIN_MS = 60_000

type Waiter = { resolve(linked: Linked): void; reject(error: unknown): void }

function tell(waiters: Set<Waiter>, linked: Linked): void {
  for (const { resolve } of waiters) resolve(linked)
  waiters.clear()
}

function awayFor(error: unknown): LogUnavailable {
  if (error instanceof LogRefused) return error
  return new LogUnavailable(`NATS is away${error ? `: ${reasonOf(error)}` : ''}`)
}

/** Nothing is opened before it is asked for. */
export function openLink(
  settings: NatsSettings,
  { name, owner, logger }: { name: string; owner: ReadOwner; logger?: LinkLogger },
): Link {
  const listeners: ((linked: Linked) => void)[] = []
  const readers = new Set<Waiter>()
  const writers = new Set<Waiter>()
  let connected: Connected | null = null
  let linked: Linked | null = null
  /** What was found last. */
  let known: Linked | null = null
  let isConnected = false
  /** Of the connections there were: what is found on one says nothing of the next. */
  let connections = 0
  let isOpening = false
  let isClosed = false
  let lastError: unknown = null
  let foundAt = -Infinity
  /** Once: who loses it to another one later does not take it back. */
  let { takesOver } = settings
  let formerly: string | null = null
  /** Of this outage. */
  let told: { reason: string; at: number } | null = null
  let toldDoubt: string | null = null

  /** Once in an outage, which may end in another reason than it began with. */
  function tellAway(reason: string): void {
    const now = performance.now()
    if (told !== null && (told.reason === reason || now - told.at < TELL_AGAIN_MS)) return
    told = { reason, at: now }
    logger?.warn({ reason }, 'the log on NATS cannot be reached')
  }

  const writable = () => (isConnected ? known : null)

  async function find(): Promise<void> {
    connected ??= watched(await connectTo(settings.access, name))
    // Closed while it connected: nobody would close this one.
    if (isClosed) return connected.connection.close()
    const connection = connections
    const found = {
      ...connected,
      stream: await ensureStream(connected, { ...settings, takesOver }, { owner: await owner(), formerly }),
    }
    if (connection !== connections) throw new LogUnavailable('NATS went away again')
    for (const listener of listeners) listener(found)
    linked = known = found
    takesOver = false
    formerly = found.stream.owner
    foundAt = performance.now()
    lastError = null
    if (told) logger?.info({}, 'the log on NATS is there again')
    told = null
    tellDoubt(found.stream)
    tell(readers, found)
    tell(writers, found)
  }

  /** Once: why the promise is no more than it is. */
  function tellDoubt({ doubt, promise }: Stream): void {
    if (doubt !== null && doubt !== toldDoubt)
      logger?.warn({ reason: doubt }, `whether NATS syncs is not known, and acknowledged means ${promise}`)
    toldDoubt = doubt
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
          const refused = refusalOf(error, {
            access: settings.access,
            hasJetStream: connected?.connection.info?.jetstream ?? null,
          })
          lastError = refused ?? error
          if (error instanceof StreamTaken) known = null
          tellAway(reasonOf(lastError))
          // Whoever starts is to hear of it at once; others go on waiting until their time is over.
          if (refused) for (const { reject } of [...readers, ...writers]) reject(refused)
          await sleep(refused ? AGAIN_WHEN_REFUSED_MS : AGAIN_MS, undefined, { ref: false })
        }
      }
    } finally {
      isOpening = false
    }
  }

  function went(): void {
    connections++
    isConnected = false
    linked = null
  }

  /** After NATS was away, the stream may be another one. */
  function watched(fresh: Connected): Connected {
    isConnected = true
    void (async () => {
      for await (const { type } of fresh.connection.status()) {
        if (type === 'disconnect') went()
        if (type !== 'reconnect') continue
        isConnected = true
        if (known) tell(writers, known)
        void keepFinding()
      }
    })()
    void fresh.connection.closed().then(() => {
      went()
      connected = known = null
      if (!isClosed) void keepFinding()
    })
    return fresh
  }

  function wait(waiters: Set<Waiter>, withinMs: number): Promise<Linked> {
    if (isClosed) return Promise.reject(new LogUnavailable('The log on NATS is closed'))
    void keepFinding()
    const { promise, resolve, reject } = Promise.withResolvers<Linked>()
    const waiter = { resolve, reject }
    waiters.add(waiter)
    const timer = setTimeout(() => reject(awayFor(lastError)), withinMs)
    return promise.finally(() => {
      clearTimeout(timer)
      waiters.delete(waiter)
    })
  }

  return {
    current: () => linked,
    open: () => void keepFinding(),
    ready: async (withinMs = READY_WITHIN_MS) => linked ?? wait(readers, withinMs),
    writable,
    writableWithin: async ms => writable() ?? wait(writers, ms),
    renew() {
      if (linked === null || performance.now() - foundAt < RENEW_EVERY_MS) return
      linked = null
      void keepFinding()
    },
    onFound: listener => listeners.push(listener),
    async close() {
      isClosed = true
      const open = connected
      went()
      await open?.connection.close()
    },
  }
}
