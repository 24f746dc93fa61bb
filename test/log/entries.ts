import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { Entry } from '../../src/domain/entries/entry.ts'
import { newEntryId } from '../../src/domain/ids.ts'
import type { Append, Claim, Log, Taken } from '../../src/log/log.ts'
import { RestartTransaction } from '../../src/postgres/database.ts'
import { eventually } from '../eventually.ts'

export function anEntry(given: Partial<Entry> = {}): Entry {
  const receivedAt = given.receivedAt ?? new Date()
  return {
    id: newEntryId(receivedAt.getTime()),
    tenantId: 1,
    kind: 'record',
    orderingKey: 'key',
    receivedAt,
    context: '{}',
    body: '{}',
    ...given,
  }
}

export function anAppend(given: Partial<Entry> = {}, key: string | null = null): Append {
  const entry = anEntry(given)
  return { entry, claim: key === null ? null : aClaim(key, entry.body) }
}

function aClaim(key: string, body = '{}'): Claim {
  return { key, bodyHash: createHash('sha256').update(body).digest(), entityType: 'product', recordId: 'p-1' }
}

export const EVERYTHING = { maxPartitions: 1_000, maxEntries: 1_000, alsoPartitions: [] as string[] }

/** Runs `work` in a reader's transaction, which `work` may abort. */
export async function asReader<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

export async function takeOnce(log: Log, pool: pg.Pool, options = EVERYTHING): Promise<Taken[]> {
  const attempt = () =>
    asReader(pool, async client => {
      const taken = await log.take(client, options)
      await log.advance(client, taken)
      return taken
    })
  return attempt().catch(async error => {
    if (!(error instanceof RestartTransaction)) throw error
    await error.prepare()
    return attempt()
  })
}

/** Reads to the end, one transaction after the other. */
export async function readAll(log: Log, pool: pg.Pool, options = EVERYTHING): Promise<Entry[]> {
  const entries: Entry[] = []
  await eventually('the end of the log', async () => {
    let taken: Taken[]
    do {
      taken = await takeOnce(log, pool, options)
      for (const partition of taken) entries.push(...partition.entries)
    } while (taken.length > 0)
    // An empty take may be temporary: another test's transaction on the same server is still open.
    return (await log.lag()).every(partition => partition.entries === 0)
  })
  return entries
}

export function bodies(entries: Entry[]): string[] {
  return entries.map(({ body }) => body)
}
