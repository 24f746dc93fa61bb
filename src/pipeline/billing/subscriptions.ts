import { computeFigures } from '../../domain/billing/account.ts'
import {
  agendaHorizon,
  agendaNeededUntil,
  buildAgenda,
  continuesAfter,
} from '../../domain/billing/attention.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { itemRanges, type Segment } from '../../domain/billing/timeline.ts'
import type { Instant } from '../../domain/billing/types.ts'
import { contentHash } from '../../domain/json/json.ts'
import type { Db } from '../../postgres/database.ts'
import { shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import { acquisitionIds } from '../../store/billing/acquisitions.ts'
import { keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { policiesOf } from '../../store/billing/policies.ts'
import { addRestated } from '../../store/billing/restatement.ts'
import {
  itemStarts,
  loadSegments,
  lockSubscriptions,
  noteAgendaUntil,
  replaceAgenda,
  replaceItems,
  replaceSegments,
  type SegmentRow,
  segmentsFrom,
  shortAgendas,
} from '../../store/billing/subscriptions.ts'
import { takeOutdated } from '../../store/billing/terms.ts'
import type { Deriving } from '../unit.ts'
import { deriveAccounts } from './accounts.ts'
import { type Derived, deriveSubscriptions } from './derivation.ts'

type SubscriptionNews = {
  /** Subscriptions that only an invoice speaks of so far. */
  named: ObjectKey[]
  /** By subscription, under which node it was last seen. */
  nodes: Map<string, number>
  /** By subscription, the earliest time of which something new was told; without it all may read otherwise. */
  since?: Map<string, Instant>
  /** By which to derive, where it is not the one that their tenants follow. */
  policy?: Policy
}

/**
 * Derives subscriptions anew from what is known of them, and then their accounts. Whoever calls shares the locks on
 * who is who and on terms.
 */
export async function applySubscriptions(
  transaction: Deriving,
  keys: ObjectKey[],
  { named, nodes, since, policy }: SubscriptionNews,
): Promise<void> {
  const { client, now } = transaction
  await lockSubscriptions(client, keys, named)
  if (keys.length === 0) return
  const policyOf = policy ? () => policy : await followedPolicies(client, keys)
  const derived = await deriveSubscriptions(transaction, keys, { policyOf, since: since ?? new Map() })
  const accounts = await writeSegments(transaction, derived)
  await writeItems(client, derived)
  await writeAgenda(client, derived, now.getTime())
  await deriveAccounts(transaction, accounts.keys, {
    nodes: nodesOfAccounts(derived, nodes),
    since: accounts.since,
    isRestated: policy !== undefined,
  })
}

/** An item that goes on at the beginning of what was derived began as it is known. */
async function writeItems(db: Db, derived: Derived[]): Promise<void> {
  const continued = derived.flatMap(({ since, ...key }) => (since === null ? [] : [{ ...key, since }]))
  const starts = new Map(
    (continued.length > 0 ? await itemStarts(db, continued) : []).map(start => [
      `${keyText(start)} ${start.place}`,
      start.from.getTime(),
    ]),
  )
  const ranges = derived.flatMap(({ tenantId, id, segments, since }) =>
    itemRanges(segments).map(range => {
      const key = { tenantId, id }
      const start = range.from === since ? starts.get(`${keyText(key)} ${range.place}`) : undefined
      return { ...key, ...range, ...(start !== undefined && { from: start }) }
    }),
  )
  await replaceItems(db, derived, ranges)
}

/** The policies of these tenants. Where another is to come, these subscriptions are to be derived by it then. */
async function followedPolicies(
  db: Db,
  keys: ObjectKey[],
): Promise<(tenantId: number) => Policy | undefined> {
  const policies = await policiesOf(
    db,
    keys.map(({ tenantId }) => tenantId),
  )
  const pending = keys.filter(({ tenantId }) => policies.get(tenantId)?.isPending)
  if (pending.length > 0) await addRestated(db, pending)
  return tenantId => policies.get(tenantId)?.policy
}

/** Accounts whose segments are others, and for those that were derived from a time on: from when. */
type ChangedAccounts = { keys: ObjectKey[]; since: Map<string, Instant> }

/** Writes what changed, and returns the accounts that had or have a part in it. */
async function writeSegments({ client }: Deriving, derived: Derived[]): Promise<ChangedAccounts> {
  const before = await loadSegments(client, derived)
  const rows = derived.flatMap(({ tenantId, id, segments }) =>
    segments.map(segment => ({ tenantId, id, segment, hash: contentHash(segment) })),
  )
  const rowText = (key: ObjectKey, from: number, digest: string) => `${keyText(key)} ${from} ${digest}`
  const kept = new Set(before.map(row => rowText(row, row.from, row.hash)))
  const wanted = new Set(rows.map(row => rowText(row, row.segment.from, row.hash)))
  const gone = before.filter(row => !wanted.has(rowText(row, row.from, row.hash)))
  const added = rows.filter(row => !kept.has(rowText(row, row.segment.from, row.hash)))
  const ids = await acquisitionIds(
    client,
    added.map(({ tenantId, segment }) => ({ tenantId, acquisition: segment.acquisition })),
  )
  await replaceSegments(
    client,
    gone,
    added.map(
      (row, i): SegmentRow => ({ ...row, figures: computeFigures(row.segment), acquisitionId: ids[i]! }),
    ),
  )
  const isContinued = new Set(derived.filter(({ since }) => since !== null).map(keyText))
  return changedAccounts([
    ...gone.map(row => ({ ...row, isContinued: isContinued.has(keyText(row)) })),
    ...added.map(row => ({
      ...row.segment,
      tenantId: row.tenantId,
      isContinued: isContinued.has(keyText(row)),
    })),
  ])
}

function changedAccounts(
  rows: { tenantId: number; account: string; from: Instant; isContinued: boolean }[],
): ChangedAccounts {
  const accounts = Map.groupBy(rows, ({ tenantId, account }) => keyText({ tenantId, id: account }))
  const since = new Map<string, Instant>()
  for (const [key, own] of accounts)
    if (own.every(row => row.isContinued))
      since.set(
        key,
        own.reduce((first, { from }) => Math.min(first, from), Number.POSITIVE_INFINITY),
      )
  return {
    keys: [...accounts.values()].map(([row]) => ({ tenantId: row!.tenantId, id: row!.account })),
    since,
  }
}

function nodesOfAccounts(derived: Derived[], nodes: Map<string, number>): Map<string, number> {
  const found = new Map<string, number>()
  for (const { tenantId, id, segments } of derived) {
    const node = nodes.get(keyText({ tenantId, id }))
    if (node === undefined) continue
    for (const { account } of segments) found.set(keyText({ tenantId, id: account }), node)
  }
  return found
}

/** Derives some of those that read otherwise by what was learnt of a coupon or a customer. Returns how many. */
export async function deriveOutdated(transaction: Deriving, limit: number): Promise<number> {
  const { client } = transaction
  const keys = await takeOutdated(client, limit)
  if (keys.length === 0) return 0
  const tenantIds = keys.map(({ tenantId }) => tenantId)
  await shareTenants(client, TENANT_LOCKS.profiles, tenantIds)
  await shareTenants(client, TENANT_LOCKS.terms, tenantIds)
  await applySubscriptions(transaction, keys, { named: [], nodes: new Map() })
  return keys.length
}

/** Writes what these subscriptions are expected to do, and that they were seen. They are locked. */
async function writeAgenda(
  db: Db,
  subscriptions: (ObjectKey & { segments: Segment[] })[],
  now: number,
): Promise<void> {
  const horizon = agendaHorizon(now)
  await replaceAgenda(
    db,
    subscriptions,
    subscriptions.flatMap(({ tenantId, id, segments }) =>
      buildAgenda(segments, now, horizon).map(entry => ({ tenantId, id, entry })),
    ),
  )
  await noteAgendaUntil(
    db,
    subscriptions.map(({ tenantId, id, segments }) => ({
      tenantId,
      id,
      agendaUntil: continuesAfter(segments, horizon) ? horizon : null,
    })),
  )
}

/** Fills in what has come within reach, for some of the subscriptions that need it. Returns for how many. */
export async function extendAgenda(db: Db, now: number, limit: number): Promise<number> {
  const keys = await shortAgendas(db, agendaNeededUntil(now), limit)
  if (keys.length === 0) return 0
  await lockSubscriptions(db, keys, [])
  const segments = Map.groupBy(await segmentsFrom(db, keys, now), keyText)
  await writeAgenda(
    db,
    keys.map(key => ({ ...key, segments: (segments.get(keyText(key)) ?? []).map(({ segment }) => segment) })),
    now,
  )
  return keys.length
}
