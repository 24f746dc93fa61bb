import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { disableFailing } from '../admin/destinations.ts'
import type { Secrets } from '../admin/secrets.ts'
import { DISABLED_AFTER_MS } from '../domain/destinations/destinations.ts'
import { coalesce } from '../overload/coalesce.ts'
import { openSender } from '../pipeline/deliveries/send.ts'
import { makingPartitions } from '../postgres/partitions.ts'
import { type Attempt, destinationsDue, type Health, saveAttempts } from '../store/destinations/queue.ts'
import { runChannel } from './delivery-channel.ts'
import { type FailureLogger, openFailures } from './failures.ts'

const POLL_EVERY_MS = 250
// After a failure that is not the destination's: the database is away, the master key does not open a secret.
const AFTER_FAILURE_MS = 2_000
// What is on its way when the node stops gets so long; then it is tried again by whoever comes next.
const GRACE_MS = 2_000

type DeliveryOptions = {
  pool: pg.Pool
  secrets: Secrets
  allowPrivate: boolean
  now: () => Date
  logger: FailureLogger
  /** How often the configuration has changed, as far as this node knows. */
  configChanges(): number
  /** Told what came of each attempt. */
  counted(outcome: Attempt['outcome']): void
}

/** Sends to all destinations what is due there. Nodes share them: each is sent to by one node at a time. */
export function startDeliveries(options: DeliveryOptions): { stop(): Promise<void> } {
  const { pool, logger } = options
  const owner = randomUUID()
  const sender = openSender(options)
  const saver = openSaver(options)
  const channels = new Map<string, Promise<void>>()
  const restingUntil = new Map<string, number>()
  const stopping = new AbortController()
  const isStopping = () => stopping.signal.aborted

  function open(id: string): void {
    const running = runChannel({ ...options, id, owner, sender, isStopping, save: saver.save })
      .catch(error => {
        restingUntil.set(id, Date.now() + AFTER_FAILURE_MS)
        logger.warn(
          { err: error, destination: id },
          'sending to a destination failed and will be tried again',
        )
      })
      .finally(() => channels.delete(id))
    channels.set(id, running)
  }

  async function openDue(): Promise<void> {
    for (const id of await destinationsDue(pool, owner)) {
      const isResting = (restingUntil.get(id) ?? 0) > Date.now()
      if (!isResting) restingUntil.delete(id)
      if (!channels.has(id) && !isResting && !isStopping()) open(id)
    }
  }

  async function openDueUntilStopped(): Promise<void> {
    const failures = openFailures(logger, { job: 'deliveries', failed: 'due deliveries could not be found' })
    while (!isStopping()) {
      await openDue().then(failures.succeeded, failures.failed)
      await sleep(POLL_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const opening = openDueUntilStopped()
  return {
    async stop() {
      stopping.abort()
      await opening
      const ended = Promise.all(channels.values())
      await Promise.race([ended, sleep(GRACE_MS, undefined, { ref: false })])
      sender.close()
      await ended
      await saver.idle()
    },
  }
}

/** Writes attempts down: what comes while a statement is under way goes into the next one. */
function openSaver({ pool, now, logger, counted }: DeliveryOptions) {
  async function saveSome(attempts: Attempt[]): Promise<void> {
    const healths = [...Map.groupBy(attempts, ({ destinationId }) => destinationId).values()].map(healthOf)
    const failing = await makingPartitions(pool, () => saveAttempts(pool, attempts, healths))
    for (const { outcome } of attempts) counted(outcome)
    for (const { destinationId, failingSince } of failing) {
      const isGone = attempts.some(
        attempt => attempt.destinationId === destinationId && attempt.status === 410,
      )
      const isOver = failingSince !== null && now().getTime() - failingSince.getTime() > DISABLED_AFTER_MS
      if (!isGone && !isOver) continue
      const reason = isGone ? 'It answered 410 Gone.' : 'Nothing could be delivered for five days.'
      await disableFailing(pool, destinationId, reason)
      logger.warn({ destination: destinationId, reason }, 'a destination was disabled')
    }
  }

  const saving = coalesce<Attempt, void>({
    async run(attempts) {
      await saveSome(attempts)
      return attempts.map(() => undefined)
    },
    ...{ maxItems: Infinity, maxInFlight: 1 },
  })
  return {
    save: async (attempt: Attempt): Promise<void> => {
      await saving.submit([attempt])
    },
    idle: saving.drained,
  }
}

/** Of one destination, in their order. */
function healthOf(attempts: Attempt[]): Health {
  const last = attempts.at(-1)!
  const lastSuccess = attempts.findLastIndex(({ outcome }) => outcome === 'delivered')
  return {
    destinationId: last.destinationId,
    lastAttemptAt: last.attemptedAt,
    lastSuccessAt: attempts[lastSuccess]?.attemptedAt ?? null,
    failingSince: attempts[lastSuccess + 1]?.attemptedAt ?? null,
    lastStatus: last.status,
    lastError: last.error,
  }
}
