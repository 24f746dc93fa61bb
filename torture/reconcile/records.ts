import { type Postgres, query } from '../deployment/postgres.ts'
import type { Shop } from '../deployment/shops.ts'
import { type Read, reader } from './api.ts'
import type { Outcome } from './outcomes.ts'
import type { Problem } from './problems.ts'

export type Write = Outcome & { item: { record: NonNullable<Outcome['item']['record']> } }

/** Each record equals the newest acknowledged write, or a newer one with an unclear outcome. */
export async function checkRecords(url: string, shop: Shop, outcomes: Outcome[]): Promise<Problem[]> {
  const read = reader(url, shop.privateKey)
  const problems: Problem[] = []
  const writes = outcomes.filter(({ item }) => item.record) as Write[]
  const records = Map.groupBy(writes, ({ item: { record } }) => `${record.type}s/${record.id}`)
  for (const [path, own] of records) problems.push(...(await checkRecord(read, path, own)))
  return problems
}

export async function checkRecord(read: Read, path: string, writes: Write[]): Promise<Problem[]> {
  const valid = writes.filter(({ item }) => !item.invalid)
  const newest = valid
    .filter(({ acknowledgedAt }) => acknowledgedAt !== null)
    .reduce<Write | null>((best, write) => (best && readVersion(best) > readVersion(write) ? best : write), null)
  const possible = valid.filter(
    write => write === newest || (write.unclear > 0 && readVersion(write) > (newest ? readVersion(newest) : 0)),
  )
  const { status, body } = await read(`/v1/${path}`)
  const at = newest?.acknowledgedAt ?? null
  if (status === 404) {
    const mayBeGone = newest === null || possible.some(({ item }) => item.record.deleted)
    return mayBeGone ? [] : [{ kind: 'missing', words: `${path} is missing: ${describeWrite(newest)}`, at }]
  }
  if (status !== 200) return [{ kind: 'wrong', words: `${path} returned ${status}`, at }]
  const marker = (body.data as { marker?: string }).marker
  if (possible.some(({ item }) => !item.record.deleted && item.marker === marker)) return []
  const isOlder = valid.some(({ item }) => item.marker === marker)
  const kind = isOlder ? 'missing' : 'unexpected'
  return [
    {
      kind,
      words: `${path} contains ${marker}, but the acknowledged write is ${newest ? describeWrite(newest) : 'none'}`,
      at,
    },
  ]
}

const readVersion = ({ item }: Write) => item.record.version

const describeWrite = ({ item }: Write) =>
  `${item.marker} (version ${item.record.version}${item.record.deleted ? ', a delete' : ''})`

/** One operation per acknowledged write, and at most one per unclear write. */
export async function checkOperations(
  postgres: Postgres,
  outcomes: Outcome[],
  isAged: (at: number) => boolean,
): Promise<Problem[]> {
  const rows = await query<{ id: string; status: string; count: number }>(
    postgres,
    `select id::text, min(status) as status, count(*)::int from operations group by id`,
  )
  const stored = new Map(rows.map(row => [row.id, row]))
  const problems: Problem[] = []
  let unclear = 0
  for (const { item, operations, acknowledgedAt: at, firstSentAt, unclear: attempts } of outcomes) {
    if (!item.record) continue
    if (operations.size > 1)
      problems.push({
        kind: 'duplicate',
        words: `key ${item.claim} was accepted ${operations.size} times`,
        at,
      })
    if (operations.size === 0 && attempts > 0) unclear++
    for (const id of operations) {
      const row = stored.get(id)
      stored.delete(id)
      // Retention may have dropped backdated entries.
      if (!row && !isAged(at ?? firstSentAt))
        problems.push({ kind: 'missing', words: `operation ${id} of ${item.marker}`, at })
      if (row && row.count > 1)
        problems.push({
          kind: 'duplicate',
          words: `operation ${id} of ${item.marker} exists ${row.count} times`,
          at,
        })
      if (row?.status === 'failed')
        problems.push({ kind: 'wrong', words: `operation ${id} of ${item.marker} failed`, at })
    }
  }
  if (stored.size > unclear)
    problems.push({
      kind: 'duplicate',
      words: `${stored.size} unacknowledged operations, but only ${unclear} unclear writes`,
      at: null,
    })
  return problems
}
