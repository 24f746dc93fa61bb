import { computeFigures } from '../../domain/billing/account.ts'
import { agendaHorizon, agendaNeededUntil, buildAgenda, continuesAfter } from '../../domain/billing/attention.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { indexTerms, type KnownTerms, mergeTerm } from '../../domain/billing/terms.ts'
import {
  CHECKPOINT_SIZES,
  type Checkpoint,
  continueSubscription,
  deriveSubscription,
  itemRanges,
  type Segment,
} from '../../domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../domain/billing/types.ts'
import { contentHash } from '../../domain/json/json.ts'
import type { Db } from '../../postgres/database.ts'
import { shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import { acquisitionIds } from '../../store/billing/accounts.ts'
import { addRestated, readPolicies } from '../../store/billing/policies.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/rows.ts'
import {
  itemStarts,
  loadCheckpoints,
  loadSegments,
  lockSubscriptions,
  noteAgendaUntil,
  replaceAgenda,
  replaceItems,
  replaceSegments,
  type SegmentRow,
  type StoredCheckpoint,
  saveCheckpoints,
  segmentsFrom,
  shortAgendas,
} from '../../store/billing/subscriptions.ts'
import {
  distinctTerms,
  loadTerms,
  loadTermsOfCustomers,
  type TermKey,
  takeOutdated,
} from '../../store/billing/terms.ts'
import { loadVersions, loadVersionsSince } from '../../store/billing/versions.ts'
import type { Deriving } from '../unit.ts'
import { deriveAccounts } from './accounts.ts'

type SubscriptionNews = {
  /** Subscriptions that are known only from an invoice. */
  named: ObjectKey[]
  /** By subscription, the node of its latest event. */
  nodes: Map<string, number>
  /** By subscription, the time of its earliest new version; without it, everything may have changed. */
  since?: Map<string, Instant>
  /** The policy to use instead of the tenant's applied one. */
  policy?: Policy
}

/**
 * Derives subscriptions and then their accounts. The caller shares the profile lock and the terms lock.
 */
export async function applySubscriptions(
  transaction: Deriving,
  keys: ObjectKey[],
  { named, nodes, since, policy }: SubscriptionNews,
): Promise<void> {
  const { client, now } = transaction
  await lockSubscriptions(client, keys, named)
  if (keys.length === 0) return
  const findPolicy = policy ? () => policy : await followedPolicies(client, keys)
  const derived = await deriveSubscriptions(transaction, keys, { findPolicy, since: since ?? new Map() })
  const accounts = await writeSegments(transaction, derived)
  await writeItems(client, derived)
  await writeAgenda(client, derived, now.getTime())
  await deriveAccounts(transaction, accounts.keys, {
    nodes: nodesOfAccounts(derived, nodes),
    since: accounts.since,
    isRestated: policy !== undefined,
  })
}

/** An item range that continues across the start of the derivation keeps its stored start. */
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

/** The applied policies. If one is pending, the subscriptions are queued to be derived by it later. */
async function followedPolicies(db: Db, keys: ObjectKey[]): Promise<(tenantId: number) => Policy | undefined> {
  const policies = await readPolicies(
    db,
    keys.map(({ tenantId }) => tenantId),
  )
  const pending = keys.filter(({ tenantId }) => policies.get(tenantId)?.isPending)
  if (pending.length > 0) await addRestated(db, pending)
  return tenantId => policies.get(tenantId)?.policy
}

/** Accounts with changed segments; `since`: the start of the change, if only a part was derived. */
type ChangedAccounts = { keys: ObjectKey[]; since: Map<string, Instant> }

/** Writes changed segments, and returns the accounts that they belong or belonged to. */
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
    added.map((row, i): SegmentRow => ({ ...row, figures: computeFigures(row.segment), acquisitionId: ids[i]! })),
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

/** Derives some of the subscriptions queued after a change of terms. Returns how many. */
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

/** Writes the agenda of these subscriptions and marks them as seen. They are locked. */
async function writeAgenda(db: Db, subscriptions: (ObjectKey & { segments: Segment[] })[], now: number): Promise<void> {
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

/** Extends the agenda of some subscriptions that need it. Returns how many. */
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

/** `since`: the start of the derived segments; null: all are derived. */
type Derived = ObjectKey & { segments: Segment[]; since: Instant | null }

type ReportedVersion = ObjectKey & { sourceId: string | null; eventId: string; version: SubscriptionVersion }

type Question = {
  findPolicy: (tenantId: number) => Policy | undefined
  /** By subscription, the time of its earliest new version. */
  since: Map<string, Instant>
}

type WithCheckpoint = Derived & { checkpoint: StoredCheckpoint | null }

/** With a checkpoint, only later versions are read, unless a new version concerns an earlier time. */
async function deriveSubscriptions(
  { client, now }: Deriving,
  keys: ObjectKey[],
  question: Question,
): Promise<Derived[]> {
  const continued = await continueFromCheckpoints(client, keys, now.getTime(), question)
  const done = new Set(continued.map(keyText))
  const whole = await deriveWhole(
    client,
    keys.filter(key => !done.has(keyText(key))),
    question,
  )
  const moved = [...continued.filter(({ checkpoint }) => checkpoint !== null), ...whole.filter(isLong)]
  if (moved.length > 0) await saveCheckpoints(client, moved)
  return [...continued, ...whole]
}

/** Shorter histories never have a checkpoint. */
function isLong({ versions }: { versions: number }): boolean {
  return versions >= CHECKPOINT_SIZES.minVersions
}

async function deriveWhole(
  db: Db,
  keys: ObjectKey[],
  { findPolicy }: Question,
): Promise<(WithCheckpoint & { versions: number })[]> {
  if (keys.length === 0) return []
  const known = await loadVersions<SubscriptionVersion>(db, 'subscription', keys)
  const terms = await termsNamedBy(db, known)
  return [...Map.groupBy(known, keyText).values()].map(versions => {
    const { tenantId, id } = versions[0]!
    const { segments, checkpoint } = deriveSubscription(toVersions(versions), terms.get(tenantId), findPolicy(tenantId))
    const isConflicting = hasConflictingCustomers(customersBySource(versions))
    return {
      ...{ tenantId, id, since: null, versions: versions.length },
      segments: isConflicting ? segments.map(withCollision) : segments,
      checkpoint: checkpoint && storedCheckpoint(checkpoint, versions, { customers: {}, isConflicting }),
    }
  })
}

async function continueFromCheckpoints(
  db: Db,
  keys: ObjectKey[],
  now: Instant,
  { findPolicy, since }: Question,
): Promise<WithCheckpoint[]> {
  const dated = keys.filter(key => since.has(keyText(key)))
  if (dated.length === 0) return []
  const found = (await loadCheckpoints(db, dated)).filter(
    ({ checkpoint, before, ...key }) => since.get(keyText(key))! > checkpoint.at && before.from <= now,
  )
  if (found.length === 0) return []
  const news = await loadVersionsSince<SubscriptionVersion>(
    db,
    found.map(({ checkpoint, ...key }) => ({ ...key, from: checkpoint.at })),
  )
  const terms = await termsNamedBy(db, news)
  const newsByKey = Map.groupBy(news, keyText)
  return found.flatMap(continuation => {
    const { tenantId, id, checkpoint, before } = continuation
    const own = newsByKey.get(keyText(continuation)) ?? []
    const isConflicting = hasConflictingCustomers(customersBySource(own, checkpoint.customers))
    if (isConflicting !== checkpoint.isConflicting) return []
    const derived = continueSubscription(
      { checkpoint, before },
      toVersions(own),
      terms.get(tenantId),
      findPolicy(tenantId),
    )
    if (derived === null) return []
    return [
      {
        ...{ tenantId, id, since: before.from },
        segments: isConflicting ? derived.segments.map(withCollision) : derived.segments,
        checkpoint: derived.checkpoint && storedCheckpoint(derived.checkpoint, own, checkpoint),
      },
    ]
  })
}

/** The terms that these versions refer to, by tenant. */
async function termsNamedBy(
  db: Db,
  versions: { tenantId: number; version: SubscriptionVersion }[],
): Promise<Map<number, KnownTerms>> {
  const customers = versions.flatMap(({ tenantId, version }) =>
    version.customer === null ? [] : [{ tenantId, id: version.customer }],
  )
  const discounts = versions.flatMap(({ tenantId, version: { discounts, items } }) =>
    [...discounts, ...items.flatMap(item => item.discounts)].map(discount => ({ tenantId, discount })),
  )
  const rows = customers.length > 0 ? await loadTermsOfCustomers(db, distinctKeys(customers)) : []
  const named: TermKey[] = discounts.flatMap(({ tenantId, discount: { id } }) =>
    id === undefined ? [] : [{ tenantId, kind: 'discount' as const, id }],
  )
  if (named.length > 0) rows.push(...(await loadTerms(db, distinctTerms(named))))
  const references = [
    ...discounts.map(({ tenantId, discount }) => ({ tenantId, ...discount })),
    ...rows.map(({ tenantId, versions }) => ({ tenantId, ...mergeTerm(versions) })),
  ]
  // a promotion code refers to a coupon: at most two steps
  const codes = references.flatMap(({ tenantId, promotionCodeId: id }) =>
    id === undefined ? [] : [{ tenantId, kind: 'promotion_code' as const, id }],
  )
  const codeRows = codes.length > 0 ? await loadTerms(db, distinctTerms(codes)) : []
  const coupons = [
    ...references,
    ...codeRows.map(({ tenantId, versions }) => ({ tenantId, ...mergeTerm(versions) })),
  ].flatMap(({ tenantId, couponId: id }) => (id === undefined ? [] : [{ tenantId, kind: 'coupon' as const, id }]))
  const couponRows = coupons.length > 0 ? await loadTerms(db, distinctTerms(coupons)) : []
  const byTenant = Map.groupBy([...rows, ...codeRows, ...couponRows], ({ tenantId }) => tenantId)
  return new Map(
    [...byTenant].map(([tenantId, own]) => [tenantId, indexTerms(own.map(({ versions }) => mergeTerm(versions)))]),
  )
}

function toVersions(versions: ReportedVersion[]): SubscriptionVersion[] {
  return versions.map(({ version, eventId }) => ({ ...version, eventId }))
}

function storedCheckpoint(
  checkpoint: Checkpoint,
  versions: ReportedVersion[],
  before: Pick<StoredCheckpoint, 'customers' | 'isConflicting'>,
): StoredCheckpoint {
  const earlier = versions.filter(({ version }) => version.sourceAt < checkpoint.at)
  const customers = customersBySource(earlier, before.customers)
  return {
    ...checkpoint,
    customers: Object.fromEntries([...customers].map(([source, own]) => [source, [...own]])),
    isConflicting: before.isConflicting,
  }
}

/** By source, the customers in its versions of the subscription. */
function customersBySource(
  versions: ReportedVersion[],
  before: Record<string, string[]> = {},
): Map<string, Set<string>> {
  const customers = new Map(Object.entries(before).map(([source, own]) => [source, new Set(own)]))
  for (const { sourceId, version } of versions) {
    if (sourceId === null || version.customer === null) continue
    const own = customers.get(sourceId) ?? new Set()
    customers.set(sourceId, own.add(version.customer))
  }
  return customers
}

/** Whether two sources report one id with different customers: two subscriptions in one namespace. */
function hasConflictingCustomers(customers: Map<string, Set<string>>): boolean {
  const sets = [...customers.values()]
  return sets.some((own, i) => sets.some((other, j) => i !== j && ![...own].some(id => other.has(id))))
}

function withCollision(segment: Segment): Segment {
  return { ...segment, cautions: [...(segment.cautions ?? []), 'id_of_two_customers'] }
}
