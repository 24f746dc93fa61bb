import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import type { Config } from '../config/config.ts'
import { newEntryId } from '../domain/ids.ts'
import type { Log } from '../log/log.ts'
import { type Backlog, describeBacklog } from '../overload/backlog.ts'
import { type Disk, describeDisk } from '../overload/disk.ts'
import { inTransaction, isUnavailable } from '../postgres/database.ts'

type Check = { ok: boolean; text: string }

/** Whether PostgreSQL stores what Kontor accepts. A full disk still answers reads. */
export type Writes = {
  /** Notes the outcome of every append. */
  watch(append: Log['append']): Log['append']
  /** After a failed append, tries another one that is rolled back. */
  check(): Promise<Check>
}

// Larger than what fits into the pages that a table has left.
const PROBE_BYTES = 32_768

export function watchWrites({ pool, log }: { pool: pg.Pool; log: Pick<Log, 'append'> }): Writes {
  let failure: string | null = null

  async function probe(): Promise<void> {
    const rollback = new Error('rolled back on purpose')
    const now = new Date()
    const id = newEntryId(now.getTime())
    const body = JSON.stringify({ probe: randomBytes(PROBE_BYTES / 2).toString('hex') })
    const entry = { id, tenantId: 0, kind: 'record' as const, orderingKey: id, receivedAt: now, context: '{}', body }
    await inTransaction(pool, async client => {
      await log.append([{ entry, claim: null }], { client })
      throw rollback
    }).catch(error => {
      if (error !== rollback) throw error
    })
  }

  return {
    watch: append => async (batch, options) => {
      try {
        const appended = await append(batch, options)
        failure = null
        return appended
      } catch (error) {
        if (isUnavailable(error)) failure = (error as Error).message
        throw error
      }
    },
    async check() {
      if (failure === null) return { ok: true, text: 'accepted' }
      try {
        await probe()
        failure = null
        return { ok: true, text: 'accepted again' }
      } catch (error) {
        failure = (error as Error).message
        return { ok: false, text: `rejected with 503: ${failure}` }
      }
    },
  }
}

type ReadinessParts = {
  pool: pg.Pool
  log: Pick<Log, 'outside'>
  writes: Writes
  disk: Disk
  backlog: Backlog
  surfaces: Config['surfaces']
}

/**
 * Whether a load balancer should send requests to this node. All nodes share PostgreSQL and NATS, so a node that can still do a part
 * of its work stays ready: with NATS it accepts events without PostgreSQL, and serves records and reads without NATS.
 */
export function readinessOf({ pool, log: { outside }, writes, disk, backlog, surfaces }: ReadinessParts) {
  const receives = surfaces.includes('events') || surfaces.includes('inbound')
  const onlyReceives = receives && !surfaces.includes('data') && !surfaces.includes('console')
  return async () => {
    const nats = outside && checkNats(outside)
    const database = await checkDatabase(pool)
    const stored = database.ok ? await writes.check() : database
    const acceptsOnNats = receives && nats?.ok === true
    const servesRecords = database.ok && stored.ok && !(onlyReceives && nats?.ok === false)
    return {
      ok: (acceptsOnNats || servesRecords) && !(receives && disk.isLow()),
      checks: {
        ...{
          database: database.text,
          writes: stored.text,
          disk: describeDisk(disk),
          backlog: describeBacklog(backlog),
        },
        ...(nats && { nats: nats.text }),
      },
    }
  }
}

function checkNats({ promise, failing }: NonNullable<Log['outside']>): Check {
  const promised = promise()
  if (promised === null) return { ok: false, text: 'unreachable or refused: events are answered with 503' }
  const why = failing()
  if (why === 'full') return { ok: false, text: 'the stream is full: events are answered with 503' }
  if (why === 'silent') return { ok: false, text: 'NATS does not acknowledge: events are answered with 503' }
  return { ok: true, text: promised }
}

// With everything else, less than the 0.9 s in which a probe is answered.
const DATABASE_WITHIN_MS = 700

async function checkDatabase(pool: pg.Pool): Promise<Check> {
  const started = performance.now()
  const late = Promise.withResolvers<Check>()
  const timer = setTimeout(late.resolve, DATABASE_WITHIN_MS, {
    ...{ ok: false, text: `no response within ${DATABASE_WITHIN_MS} ms` },
  })
  const asked = pool.query('select 1').then(
    () => ({ ok: true, text: `answered in ${Math.round(performance.now() - started)} ms` }),
    (error: Error) => ({ ok: false, text: error.message }),
  )
  return Promise.race([asked, late.promise]).finally(() => clearTimeout(timer))
}
