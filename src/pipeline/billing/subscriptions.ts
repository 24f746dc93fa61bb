import {
  type AccountState,
  accountStates,
  computeFigures,
  continueStates,
  deriveAccount,
} from '../../domain/billing/account.ts'
import { agendaHorizon, agendaNeededUntil, buildAgenda, continuesAfter } from '../../domain/billing/attention.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { currentTerms, indexTerms, type KnownTerms, mergeTerm } from '../../domain/billing/terms.ts'
import {
  CHECKPOINT_SIZES,
  type Checkpoint,
  continueSubscription,
  deriveSubscription,
  itemRanges,
  ownAccount,
  ownAndTarget,
  type Segment,
} from '../../domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../domain/billing/types.ts'
import type { NodeKey } from '../../domain/identity/identifiers.ts'
import { contentHash } from '../../domain/json/json.ts'
import { toDay } from '../../domain/time.ts'
import type { Db } from '../../postgres/database.ts'
import { shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import {
  type AccountPast,
  type AccountRow,
  type AccountSegment,
  accountsOfPeople,
  acquisitionIds,
  firstTouches,
  loadAccountPasts,
  loadAccountSegments,
  lockAccounts,
  type MovementRow,
  replaceMovements,
  replaceStates,
  updateAccounts,
} from '../../store/billing/accounts.ts'
import { mergeTargets } from '../../store/billing/merges.ts'
import { addRestated, readPolicies } from '../../store/billing/policies.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/rows.ts'
import { coverDays } from '../../store/billing/snapshots.ts'
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
  loadVersions,
  loadVersionsSince,
  type TermKey,
  takeOutdated,
} from '../../store/billing/versions.ts'
import { notifyMovements } from '../deliveries/notify.ts'
import type { Deriving } from '../unit.ts'
import { type Cause, type ClosedBefore, keepAttributed, keepClosed, noteRestatements } from './closings.ts'

type SubscriptionNews = {
  /** Subscriptions that are known only from an invoice. */
  named: ObjectKey[]
  /** By subscription, the node of its latest event. */
  nodes: Map<string, number>
  /** By subscription, the time of its earliest new version; without it, everything may have changed. */
  since?: Map<string, Instant>
  /** The policy to use instead of the tenant's applied one. */
  policy?: Policy
  /** Accounts are merged or unmerged. */
  isRestated?: boolean
  /** The event that changed a subscription; null: unknown. */
  causeOf?: (subscription: ObjectKey) => Cause | null
}

/**
 * Derives subscriptions and then their accounts. The caller shares the profile lock and the terms lock.
 */
export async function applySubscriptions(
  transaction: Deriving,
  keys: ObjectKey[],
  { named, nodes, since, policy, isRestated = false, causeOf }: SubscriptionNews,
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
    isRestated: isRestated || policy !== undefined,
  })
  if (accounts.closed)
    await noteRestatements(client, accounts.closed, key => causeOf?.(key) ?? { eventId: null, receivedAt: now })
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
type ChangedAccounts = { keys: ObjectKey[]; since: Map<string, Instant>; closed: ClosedBefore | null }

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
  const closed = await keepClosed(client, gone, added)
  await replaceSegments(
    client,
    gone,
    added.map((row, i): SegmentRow => ({ ...row, figures: computeFigures(row.segment), acquisitionId: ids[i]! })),
  )
  const isContinued = new Set(derived.filter(({ since }) => since !== null).map(keyText))
  const accounts = changedAccounts([
    ...gone.map(row => ({ ...row, isContinued: isContinued.has(keyText(row)) })),
    ...added.flatMap(({ tenantId, id, segment }) =>
      ownAndTarget(segment).map(account => ({
        ...{ tenantId, account, from: segment.from, isContinued: isContinued.has(keyText({ tenantId, id })) },
      })),
    ),
  ])
  return { ...accounts, closed }
}

function changedAccounts(
  rows: { tenantId: number; account: string; from: Instant; isContinued: boolean }[],
): Pick<ChangedAccounts, 'keys' | 'since'> {
  const accounts = Map.groupBy(rows, ({ tenantId, account }) => keyText({ tenantId, id: account }))
  const since = new Map<string, Instant>()
  for (const [key, own] of accounts)
    if (own.every(row => row.isContinued))
      since.set(
        key,
        own.reduce((first, { from }) => Math.min(first, from), Number.POSITIVE_INFINITY),
      )
  return { keys: [...accounts.values()].map(([row]) => ({ tenantId: row!.tenantId, id: row!.account })), since }
}

function nodesOfAccounts(derived: Derived[], nodes: Map<string, number>): Map<string, number> {
  const found = new Map<string, number>()
  for (const { tenantId, id, segments } of derived) {
    const node = nodes.get(keyText({ tenantId, id }))
    if (node === undefined) continue
    for (const segment of segments) found.set(keyText({ tenantId, id: ownAccount(segment) }), node)
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
  const causes = new Map(keys.map(({ eventId, receivedAt, ...key }) => [keyText(key), { eventId, receivedAt }]))
  await applySubscriptions(transaction, keys, {
    ...{ named: [], nodes: new Map(), causeOf: key => causes.get(keyText(key)) ?? null },
  })
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
  return withMerges(client, [...continued, ...whole])
}

/** Segments of merged accounts belong to the account that theirs is merged into. */
async function withMerges(db: Db, derived: Derived[]): Promise<Derived[]> {
  const accounts = derived.flatMap(({ tenantId, segments }) => segments.map(({ account: id }) => ({ tenantId, id })))
  const targets = await mergeTargets(db, distinctKeys(accounts))
  if (targets.size === 0) return derived
  return derived.map(subscription => ({
    ...subscription,
    segments: subscription.segments.map(segment => ({
      ...segment,
      account: targets.get(keyText({ tenantId: subscription.tenantId, id: segment.account })) ?? segment.account,
    })),
  }))
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
      { checkpoint, before: { ...before, account: ownAccount(before) } },
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
export async function termsNamedBy(
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
  const taxed = versions.filter(({ version }) => version.items.some(item => item.taxMode || item.priceFromInvoice))
  named.push(...taxed.map(({ tenantId, version: { id } }) => ({ tenantId, kind: 'tax' as const, id })))
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
    [...byTenant].map(([tenantId, own]) => [
      tenantId,
      indexTerms(own.flatMap(({ versions }) => currentTerms(versions))),
    ]),
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

type AccountNews = {
  /** By account, the node of its latest event. */
  nodes?: Map<string, number>
  /** The profiles behind these accounts changed. */
  isPersonNews?: boolean
  /** By account, the start of the changed segments; without it, all may have changed. */
  since?: Map<string, Instant>
  /** A policy change or a merge of accounts caused the derivation. */
  isRestated?: boolean
}

/**
 * Derives accounts from the segments of their subscriptions. The caller holds the profile lock, so the profiles read
 * here do not change until the end of the transaction.
 */
async function deriveAccounts({ client, now }: Deriving, keys: ObjectKey[], news: AccountNews): Promise<void> {
  if (keys.length === 0) return
  const rows = await lockAccounts(client, keys)
  const owners = rows.map(row => ({ ...row, since: findStart(row, news) }))
  const loaded = await loadAccountSegments(client, owners)
  const segments = Map.groupBy(loaded, segmentAccount)
  const findSegments = (key: ObjectKey) => segments.get(keyText(key)) ?? []
  // an account's own acquisition source is stored in all of its rows
  const restated = owners.filter(
    row =>
      row.since !== null &&
      (findSegments(row).some(segment => isOtherSource(row, segment)) ||
        findFirstPayment(row, findSegments(row)) !== row.firstPaidAt),
  )
  if (restated.length > 0) {
    const whole = restated.map(row => ({ ...row, since: null }))
    for (const row of restated) row.since = null
    for (const [key, own] of Map.groupBy(await loadAccountSegments(client, whole), segmentAccount))
      segments.set(key, own)
  }
  const accounts = await attribute(client, owners, findSegments, news)
  await writeAccounts({ client, now }, accounts, findSegments, news)
}

/** The start of the rows that may change; null: all of them, because the source may have changed. */
function findStart(row: AccountRow, { since, nodes, isPersonNews }: AccountNews): Instant | null {
  const node = nodes?.get(keyText(row)) ?? row.node
  const from = isPersonNews || node !== row.node ? undefined : since?.get(keyText(row))
  // include what ends or happens at that instant
  return from === undefined ? null : from - 1
}

function segmentAccount({ tenantId, account }: AccountSegment): string {
  return keyText({ tenantId, id: account })
}

function isOtherSource({ ownAcquisitionId }: AccountRow, { acquisitionId }: AccountSegment): boolean {
  return acquisitionId !== 0 && acquisitionId !== ownAcquisitionId
}

type DerivedAccount = AccountRow & { since: Instant | null }

/** When the account's MRR first exceeded 0. Only segments after `since` are loaded, and only they may have changed. */
function findFirstPayment({ since, firstPaidAt }: DerivedAccount, segments: AccountSegment[]): Instant | null {
  if (since !== null && firstPaidAt !== null && firstPaidAt <= since) return firstPaidAt
  const paid = segments.flatMap(({ mrr, from }) => (mrr !== null && mrr > 0 ? [from] : []))
  return paid.length === 0 ? null : paid.reduce((first, from) => Math.min(first, from))
}

/** Writes the states and movements. */
async function writeAccounts(
  { client, now }: Deriving,
  accounts: DerivedAccount[],
  findSegments: (key: ObjectKey) => AccountSegment[],
  { isRestated = false }: AccountNews,
): Promise<void> {
  const partial = accounts.flatMap(({ tenantId, id, since }) => (since === null ? [] : [{ tenantId, id, since }]))
  const pasts = Map.groupBy(partial.length > 0 ? await loadAccountPasts(client, partial) : [], keyText)
  const findPasts = (key: ObjectKey) => pasts.get(keyText(key)) ?? []
  const states = accounts.flatMap(account =>
    deriveStates(account, findSegments(account), findPasts(account)).map(state => ({
      ...account,
      state,
      acquisitionId: acquisitionId(account),
    })),
  )
  await replaceStates(client, accounts, states)
  const movements = accounts.flatMap(account => deriveMovements(account, findSegments(account), findPasts(account)))
  const replace = (returnsNew: boolean) => replaceMovements(client, accounts, movements, returnsNew)
  // a policy change or a merge is no movement, so destinations receive no message
  if (isRestated) await replace(false)
  else await notifyMovements({ client, now }, accounts, replace)
  const firsts = Map.groupBy(states, ({ tenantId }) => tenantId)
  await coverDays(
    client,
    [...firsts].map(([tenantId, own]) => ({
      tenantId,
      from: toDay(own.reduce((first, { state }) => Math.min(first, state.from), Number.POSITIVE_INFINITY)),
    })),
    toDay(now),
    now,
  )
}

function deriveStates({ since }: DerivedAccount, segments: AccountSegment[], pasts: AccountPast[]): AccountState[] {
  if (since === null) return accountStates(segments)
  return continueStates(
    segments,
    since + 1,
    pasts.flatMap(({ state }) => state ?? []),
  )
}

/** The account's own source, else that of the first touch, as in billing_accounts.acquisition_id. */
function acquisitionId({ ownAcquisitionId, touchAcquisitionId }: AccountRow): number {
  return ownAcquisitionId > 0 ? ownAcquisitionId : touchAcquisitionId
}

/** Finds the sources and nodes of accounts, and writes those that changed. */
async function attribute(
  db: Db,
  rows: DerivedAccount[],
  findSegments: (key: ObjectKey) => AccountSegment[],
  { nodes, isPersonNews = false }: AccountNews,
): Promise<DerivedAccount[]> {
  const now = rows.map(row => ({
    ...row,
    node: nodes?.get(keyText(row)) ?? row.node,
    ownAcquisitionId: row.since === null ? ownAcquisition(findSegments(row)) : row.ownAcquisitionId,
    firstPaidAt: findFirstPayment(row, findSegments(row)),
  }))
  const isOther = (account: AccountRow, i: number) =>
    account.node !== rows[i]!.node ||
    account.ownAcquisitionId !== rows[i]!.ownAcquisitionId ||
    account.firstPaidAt !== rows[i]!.firstPaidAt
  const accounts = await withFirstTouches(
    db,
    now,
    now.filter((account, i) => account.ownAcquisitionId === 0 && (isPersonNews || isOther(account, i))),
  )
  const changed = accounts.filter(
    (account, i) => isOther(account, i) || account.touchAcquisitionId !== rows[i]!.touchAcquisitionId,
  )
  await keepAttributed(
    db,
    rows.filter((row, i) => row.firstPaidAt !== null && acquisitionId(row) !== acquisitionId(accounts[i]!)),
  )
  if (changed.length > 0) await updateAccounts(db, changed)
  return accounts
}

/** Looks up the first touches of `wanted`. The source of an erased person stays as it is. */
async function withFirstTouches(
  db: Db,
  accounts: DerivedAccount[],
  wanted: DerivedAccount[],
): Promise<DerivedAccount[]> {
  const people = wanted.flatMap(account =>
    account.node === null
      ? []
      : [{ account, tenantId: account.tenantId, node: account.node, paidAt: account.firstPaidAt }],
  )
  if (people.length === 0) return accounts
  const touches = await firstTouches(db, people)
  const ids = await acquisitionIds(db, touches)
  const found = new Map(touches.map(({ position }, i) => [people[position]!.account, ids[i]!]))
  return accounts.map(account => {
    const id = found.get(account)
    return id === undefined ? account : { ...account, touchAcquisitionId: id }
  })
}

/** The source of the oldest subscription that has one. */
function ownAcquisition(segments: AccountSegment[]): number {
  let oldest: AccountSegment | null = null
  for (const segment of segments) {
    if (segment.acquisitionId > 0 && (oldest === null || isBefore(segment, oldest))) oldest = segment
  }
  return oldest?.acquisitionId ?? 0
}

function isBefore(a: AccountSegment, b: AccountSegment): boolean {
  if (a.startedAt !== b.startedAt) return a.startedAt < b.startedAt
  return a.subscriptionId === b.subscriptionId ? a.from < b.from : a.subscriptionId < b.subscriptionId
}

function deriveMovements(account: DerivedAccount, segments: AccountSegment[], pasts: AccountPast[]): MovementRow[] {
  const { tenantId, id, since } = account
  const moved = new Map(
    pasts.flatMap(past => (past.moved && past.currency !== null ? [[past.currency, past.moved]] : [])),
  )
  const start = since === null ? null : { at: since + 1, movedIn: new Set(moved.keys()) }
  return deriveAccount(segments, start).flatMap(({ currency, movements }) => {
    const past = moved.get(currency)
    return movements.map((movement, i) => ({
      tenantId,
      id,
      currency,
      movement,
      firstAt: past?.firstAt ?? movements[0]!.at,
      firstMrr: past?.firstMrr ?? movements[0]!.after,
      previousAt: movements[i - 1]?.at ?? past?.at ?? null,
      acquisitionId: acquisitionId(account),
    }))
  })
}

/**
 * Derives the accounts of these people again: a merge or an earlier touch may change where the accounts came from. The
 * transaction holds the profile lock, unless no other transaction can see these people yet.
 */
export async function attributeAccounts(transaction: Deriving, people: NodeKey[]): Promise<void> {
  const accounts = await accountsOfPeople(transaction.client, people)
  await deriveAccounts(transaction, accounts, { isPersonNews: true })
}
