import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { queryPrepared } from '../../postgres/database.ts'
import { LogRefused, LogUnavailable } from '../log.ts'
import {
  type Connected,
  connectTo,
  errorReason,
  type LogLogger,
  type NatsSettings,
  StreamRefused,
  toRefusal,
} from './nats.ts'
import { ensureStream, type OpenStream, type Stream } from './stream.ts'

/**
 * The connection to NATS and its stream, in one of these stages:
 *
 * - `disconnected`: the client is connecting, or was never used.
 * - `connected`: the stream was not checked since the connection was opened. It may be another one by now. Writers continue with the
 *   stream as it was last seen, because a cluster that lost a server cannot answer that question for seconds.
 * - `found`: the stream was seen on this connection.
 * - `ready`: its cursors are in PostgreSQL as well. Only now it is read. Publishing does not wait for that: PostgreSQL may be unavailable.
 * - `closed`
 */
type Stage = 'disconnected' | 'connected' | 'found' | 'ready' | 'closed'

export type Connection = {
  /** For writers: the stream as last seen while connected, or null. */
  writable(): OpenStream | null
  waitWritable(withinMs: number): Promise<OpenStream>
  /** For readers: the stream in the stage `ready`, or null. Connects if it has to. */
  readable(): OpenStream | null
  waitReadable(withinMs?: number): Promise<OpenStream>
  /** The stream, if it was seen on this connection. */
  found(): OpenStream | null
  /** After a failure: looks the stream up again, because it may have been deleted. */
  renew(): void
  close(): Promise<void>
}

const RETRY_MS = 500
const RETRY_WHEN_REFUSED_MS = 5_000
const READABLE_WITHIN_MS = 5_000
const RENEW_EVERY_MS = 1_000
const REPORT_AGAIN_MS = 60_000

type Waiter = { resolve(stream: OpenStream): void; reject(error: unknown): void }

/** Connects when it is first used. `enter`: writes the cursors of a found stream to PostgreSQL. */
export function openConnection(
  settings: NatsSettings,
  options: {
    name: string
    owner: ReadOwner
    enter?: (stream: OpenStream) => Promise<void>
    logger?: LogLogger | undefined
  },
): Connection {
  const { name, owner, enter, logger } = options
  const readers = new Set<Waiter>()
  const writers = new Set<Waiter>()
  let stage: Stage = 'disconnected'
  let client: Connected | null = null
  /** The stream as last seen, on this connection or an earlier one. */
  let stream: OpenStream | null = null
  /** Counts disconnects: a stream found before a disconnect may not exist on the next connection. */
  let disconnects = 0
  let isFinding = false
  let entering: Promise<void> | null = null
  let lastError: unknown = null
  let foundAt = -Infinity
  /** Only once: a process that loses the stream to another database later does not take it back. */
  let { takesOver } = settings
  let formerOwner: string | null = null
  /** The reason of the current outage that was last reported. */
  let reported: { reason: string; at: number } | null = null
  let reportedDoubt: string | null = null

  const isClosed = () => stage === 'closed'
  const found = () => (stage === 'found' || stage === 'ready' ? stream : null)
  const writable = () => (stage === 'disconnected' || stage === 'closed' ? null : stream)

  /** Finds the stream, retrying until it is found or the connection is closed. */
  async function keepFinding(): Promise<void> {
    if (isFinding) return
    isFinding = true
    try {
      while (!isClosed() && found() === null) {
        try {
          await find()
        } catch (error) {
          if (isClosed()) return
          const refused = toRefusal(error, {
            access: settings.access,
            hasJetStream: client?.connection.info?.jetstream ?? null,
          })
          lastError = refused ?? error
          if (error instanceof StreamRefused) stream = null
          reportUnreachable(errorReason(lastError))
          // A refusal is reported at once, because waiting does not help. All other errors leave the waiters until their timeout.
          if (refused) for (const { reject } of [...readers, ...writers]) reject(refused)
          await sleep(refused ? RETRY_WHEN_REFUSED_MS : RETRY_MS, undefined, { ref: false })
        }
      }
    } finally {
      isFinding = false
    }
  }

  async function find(): Promise<void> {
    client ??= watch(await connectTo(settings.access, name))
    // Closed while connecting: no one else would close this connection.
    if (isClosed()) return client.connection.close()
    const disconnectsBefore = disconnects
    const owners = { owner: await owner(), formerOwner }
    const opened = { ...client, stream: await ensureStream(client, { ...settings, takesOver }, owners) }
    if (disconnects !== disconnectsBefore) throw new LogUnavailable('NATS disconnected again')
    stage = 'found'
    stream = opened
    takesOver = false
    formerOwner = opened.stream.owner
    foundAt = performance.now()
    lastError = null
    if (reported) logger?.info({}, 'NATS has recovered')
    reported = null
    reportDoubt(opened.stream)
    void enterFound(opened).catch(() => {})
    resolveAll(readers, opened)
    resolveAll(writers, opened)
  }

  /** One at a time: an older stream must not overwrite the cursors of a newer one. */
  function enterFound(opened: OpenStream): Promise<void> {
    entering ??= (enter?.(opened) ?? Promise.resolve())
      .then(() => {
        if (found() === opened) stage = 'ready'
      })
      .finally(() => {
        entering = null
      })
    return entering
  }

  /** After a reconnect the stream may be another one. */
  function watch(fresh: Connected): Connected {
    stage = isClosed() ? 'closed' : 'connected'
    void (async () => {
      for await (const { type } of fresh.connection.status()) {
        if (type === 'disconnect') disconnected()
        if (type !== 'reconnect' || isClosed()) continue
        stage = 'connected'
        if (stream) resolveAll(writers, stream)
        void keepFinding()
      }
    })()
    void fresh.connection.closed().then(() => {
      disconnected()
      client = stream = null
      if (!isClosed()) void keepFinding()
    })
    return fresh
  }

  function disconnected(): void {
    disconnects++
    if (!isClosed()) stage = 'disconnected'
  }

  /** Once per outage, and once a minute if the reason changes. */
  function reportUnreachable(reason: string): void {
    const now = performance.now()
    if (reported !== null && (reported.reason === reason || now - reported.at < REPORT_AGAIN_MS)) return
    reported = { reason, at: now }
    logger?.warn({ reason }, 'NATS is unreachable')
  }

  function reportDoubt({ doubt, promise }: Stream): void {
    if (doubt !== null && doubt !== reportedDoubt)
      logger?.warn({ reason: doubt }, `cannot find out whether NATS syncs; acknowledged means ${promise}`)
    reportedDoubt = doubt
  }

  function wait(waiters: Set<Waiter>, withinMs: number): Promise<OpenStream> {
    if (isClosed()) return Promise.reject(new LogUnavailable('The connection to NATS is closed'))
    void keepFinding()
    const { promise, resolve, reject } = Promise.withResolvers<OpenStream>()
    const waiter = { resolve, reject }
    waiters.add(waiter)
    const timer = setTimeout(() => reject(toUnavailable(lastError)), withinMs)
    return promise.finally(() => {
      clearTimeout(timer)
      waiters.delete(waiter)
    })
  }

  return {
    writable,
    waitWritable: async withinMs => writable() ?? wait(writers, withinMs),
    found,
    readable() {
      const opened = found()
      if (opened === null) void keepFinding()
      else if (stage === 'found') void enterFound(opened).catch(() => {})
      return stage === 'ready' ? opened : null
    },
    async waitReadable(withinMs = READABLE_WITHIN_MS) {
      const deadline = performance.now() + withinMs
      for (;;) {
        const opened = found() ?? (await wait(readers, Math.max(1, deadline - performance.now())))
        while (found() === opened && stage !== 'ready') await enterFound(opened)
        if (found() === opened) return opened
      }
    },
    renew() {
      if (found() === null || performance.now() - foundAt < RENEW_EVERY_MS) return
      stage = 'connected'
      void keepFinding()
    },
    async close() {
      stage = 'closed'
      disconnects++
      await client?.connection.close()
    },
  }
}

function resolveAll(waiters: Set<Waiter>, stream: OpenStream): void {
  for (const { resolve } of waiters) resolve(stream)
  waiters.clear()
}

function toUnavailable(error: unknown): LogUnavailable {
  if (error instanceof LogRefused) return error
  return new LogUnavailable(`NATS is unreachable${error ? `: ${errorReason(error)}` : ''}`)
}

/** The owner of a stream: one database of one installation. A restored copy is another owner. */
type ReadOwner = () => Promise<string>

/** Reads it each time, because the database behind the address may change. While PostgreSQL is unavailable, the last owner counts. */
export function ownerReader(pool: pg.Pool): ReadOwner {
  let known: string | null = null
  return async () => {
    try {
      const { rows } = await queryPrepared<{ owner: string }>(
        pool,
        `select id || '/' || log_database() as owner from installation`,
        [],
      )
      known = rows[0]!.owner
    } catch (error) {
      if (known === null) throw error
    }
    return known!
  }
}
