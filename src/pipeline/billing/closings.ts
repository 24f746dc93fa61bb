import { ownAndTarget, type Segment } from '../../domain/billing/timeline.ts'
import type { Instant } from '../../domain/billing/types.ts'
import { contentHash } from '../../domain/json/json.ts'
import type { Db } from '../../postgres/database.ts'
import { lockAccounts } from '../../store/billing/accounts.ts'
import {
  addRestatements,
  type ClosedFigures,
  closedFigures,
  closedUntil,
  keepAccounts,
} from '../../store/billing/closings.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/rows.ts'
import { loadBodies } from '../../store/billing/subscriptions.ts'

type SegmentOf = ObjectKey & { segment: Segment }

/** An event that changed subscriptions. */
export type Cause = { eventId: string | null; receivedAt: Date }

/** Accounts whose closed months may change, with their figures before the change. */
export type ClosedBefore = { accounts: (ObjectKey & { subscriptions: ObjectKey[] })[]; figures: ClosedFigures[] }

/**
 * Keeps the accounts whose closed months these segments change, as they are now. The caller replaces the segments afterwards.
 * `gone` and `added`: the rows to replace. Null: no closed month changes.
 */
export async function keepClosed(
  db: Db,
  gone: (ObjectKey & { account: string; from: Instant })[],
  added: SegmentOf[],
): Promise<ClosedBefore | null> {
  if (gone.length + added.length === 0) return null
  const until = await closedUntil(
    db,
    [...gone, ...added].map(({ tenantId }) => tenantId),
  )
  const isClosed = (tenantId: number, from: Instant) => from <= (until.get(tenantId) ?? Number.NEGATIVE_INFINITY)
  const goneClosed = gone.filter(({ tenantId, from }) => isClosed(tenantId, from))
  const addedClosed = added.filter(({ tenantId, segment }) => isClosed(tenantId, segment.from))
  if (goneClosed.length + addedClosed.length === 0) return null
  const before = goneClosed.length > 0 ? await loadBodies(db, goneClosed) : []
  const changed = findChanged(before, addedClosed, until)
  if (changed.length === 0) return null
  // All accounts that the caller derives, so that they are locked in one order.
  await lockAccounts(
    db,
    distinctKeys([
      ...gone.map(({ tenantId, account }) => ({ tenantId, id: account })),
      ...added.flatMap(({ tenantId, segment }) => ownAndTarget(segment).map(id => ({ tenantId, id }))),
    ]),
  )
  const accounts = [...Map.groupBy(changed, row => keyText(accountOf(row))).values()].map(rows => ({
    ...accountOf(rows[0]!),
    subscriptions: distinctKeys(rows.map(({ tenantId, id }) => ({ tenantId, id }))),
  }))
  await keepAccounts(db, accounts)
  return { accounts, figures: await closedFigures(db, accounts) }
}

function accountOf({ tenantId, segment }: SegmentOf): ObjectKey {
  return { tenantId, id: segment.account }
}

/**
 * The segments that differ up to the end of the last closed month. Most events end an open segment and start another one, later:
 * the segment then differs in its end only, and no closed month changes.
 */
function findChanged(before: SegmentOf[], after: SegmentOf[], until: Map<number, number>): SegmentOf[] {
  const text = ({ tenantId, id, segment }: SegmentOf) => {
    const to = segment.to !== null && segment.to > until.get(tenantId)! ? null : segment.to
    // a new name of the customer is no change of the books
    const nameless = { ...segment, to, customerName: null, customerEmail: null }
    return `${keyText({ tenantId, id })} ${contentHash(nameless)}`
  }
  const [had, has] = [new Set(before.map(text)), new Set(after.map(text))]
  return [...before.filter(row => !has.has(text(row))), ...after.filter(row => !had.has(text(row)))]
}

/** Keeps accounts whose acquisition source changes, so that closed months still show the old one. The caller has locked them. */
export async function keepAttributed(db: Db, accounts: (ObjectKey & { firstPaidAt: Instant | null })[]): Promise<void> {
  if (accounts.length === 0) return
  const until = await closedUntil(
    db,
    accounts.map(({ tenantId }) => tenantId),
  )
  const closed = accounts.filter(
    ({ tenantId, firstPaidAt }) =>
      firstPaidAt !== null && firstPaidAt <= (until.get(tenantId) ?? Number.NEGATIVE_INFINITY),
  )
  if (closed.length > 0) await keepAccounts(db, closed)
}

/** Records by how much each closed month has changed. `causeOf`: the event that changed a subscription. */
export async function noteRestatements(
  db: Db,
  { accounts, figures: before }: ClosedBefore,
  causeOf: (subscription: ObjectKey) => Cause,
): Promise<void> {
  const text = (row: ClosedFigures) => `${keyText(row)} ${row.closing} ${row.currency}`
  const after = await closedFigures(db, accounts)
  const [had, has] = [before, after].map(rows => new Map(rows.map(row => [text(row), row])))
  const causes = new Map(
    accounts.map(account => [keyText(account), latest(account.subscriptions.map(causeOf))] as const),
  )
  const restated = [...new Map([...had!, ...has!])].flatMap(([key, { tenantId, id, closing, currency }]) => {
    const [old, now] = [had!.get(key), has!.get(key)]
    const amount = (now?.mrr ?? 0) - (old?.mrr ?? 0)
    if (amount === 0 && (old?.moved ?? null) === (now?.moved ?? null)) return []
    return [{ tenantId, id, closing, currency, amount, ...causes.get(keyText({ tenantId, id }))! }]
  })
  if (restated.length > 0) await addRestatements(db, restated)
}

function latest(causes: Cause[]): Cause {
  return causes.reduce((last, cause) => (cause.receivedAt > last.receivedAt ? cause : last))
}
