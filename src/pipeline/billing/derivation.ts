import type { Policy } from '../../domain/billing/policy.ts'
import { indexTerms, type KnownTerms, mergeTerm } from '../../domain/billing/terms.ts'
import {
  CHECKPOINT_SIZES,
  type Checkpoint,
  continueSubscription,
  deriveSubscription,
  type Segment,
} from '../../domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../domain/billing/types.ts'
import type { Db } from '../../postgres/database.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { loadCheckpoints, type StoredCheckpoint, saveCheckpoints } from '../../store/billing/subscriptions.ts'
import { distinctTerms, loadTerms, loadTermsOfCustomers, type TermKey } from '../../store/billing/terms.ts'
import { loadVersions, loadVersionsSince } from '../../store/billing/versions.ts'
import type { Deriving } from '../unit.ts'

/** `since`: the segments are those from then on; null: they are all. */
export type Derived = ObjectKey & { segments: Segment[]; since: Instant | null }

type ReportedVersion = ObjectKey & { sourceId: string | null; eventId: string; version: SubscriptionVersion }

type Question = {
  policyOf: (tenantId: number) => Policy | undefined
  /** By subscription, the earliest time of which something new was told. */
  since: Map<string, Instant>
}

type WithCheckpoint = Derived & { checkpoint: StoredCheckpoint | null }

/** Of many versions only those since the checkpoint are read, unless what is new speaks of the time before it. */
export async function deriveSubscriptions(
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

/** Others never had a checkpoint. */
function isLong({ versions }: { versions: number }): boolean {
  return versions >= CHECKPOINT_SIZES.minVersions
}

async function deriveWhole(
  db: Db,
  keys: ObjectKey[],
  { policyOf }: Question,
): Promise<(WithCheckpoint & { versions: number })[]> {
  if (keys.length === 0) return []
  const known = await loadVersions<SubscriptionVersion>(db, 'subscription', keys)
  const terms = await termsNamedBy(db, known)
  return [...Map.groupBy(known, keyText).values()].map(told => {
    const { tenantId, id } = told[0]!
    const { segments, checkpoint } = deriveSubscription(
      versionsOf(told),
      terms.get(tenantId),
      policyOf(tenantId),
    )
    const isOfTwo = isOfTwoThings(customersOf(told))
    return {
      ...{ tenantId, id, since: null, versions: told.length },
      segments: isOfTwo ? segments.map(withCollision) : segments,
      checkpoint: checkpoint && storedCheckpoint(checkpoint, told, { customers: {}, isOfTwo }),
    }
  })
}

async function continueFromCheckpoints(
  db: Db,
  keys: ObjectKey[],
  now: Instant,
  { policyOf, since }: Question,
): Promise<WithCheckpoint[]> {
  const told = keys.filter(key => since.has(keyText(key)))
  if (told.length === 0) return []
  const found = (await loadCheckpoints(db, told)).filter(
    ({ checkpoint, before, ...key }) => since.get(keyText(key))! > checkpoint.at && before.from <= now,
  )
  if (found.length === 0) return []
  const news = await loadVersionsSince<SubscriptionVersion>(
    db,
    found.map(({ checkpoint, ...key }) => ({ ...key, from: checkpoint.at })),
  )
  const terms = await termsNamedBy(db, news)
  const newsOf = Map.groupBy(news, keyText)
  return found.flatMap(continuation => {
    const { tenantId, id, checkpoint, before } = continuation
    const own = newsOf.get(keyText(continuation)) ?? []
    const isOfTwo = isOfTwoThings(customersOf(own, checkpoint.customers))
    if (isOfTwo !== checkpoint.isOfTwo) return []
    const derived = continueSubscription(
      { checkpoint, before },
      versionsOf(own),
      terms.get(tenantId),
      policyOf(tenantId),
    )
    if (derived === null) return []
    return [
      {
        ...{ tenantId, id, since: before.from },
        segments: isOfTwo ? derived.segments.map(withCollision) : derived.segments,
        checkpoint: derived.checkpoint && storedCheckpoint(derived.checkpoint, own, checkpoint),
      },
    ]
  })
}

/** All that these versions name, by tenant. */
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
    ...rows.map(({ tenantId, told }) => ({ tenantId, ...mergeTerm(told) })),
  ]
  // a promotion code leads to its coupon: two steps at most
  const codes = references.flatMap(({ tenantId, promotionCodeId: id }) =>
    id === undefined ? [] : [{ tenantId, kind: 'promotion_code' as const, id }],
  )
  const codeRows = codes.length > 0 ? await loadTerms(db, distinctTerms(codes)) : []
  const coupons = [
    ...references,
    ...codeRows.map(({ tenantId, told }) => ({ tenantId, ...mergeTerm(told) })),
  ].flatMap(({ tenantId, couponId: id }) =>
    id === undefined ? [] : [{ tenantId, kind: 'coupon' as const, id }],
  )
  const couponRows = coupons.length > 0 ? await loadTerms(db, distinctTerms(coupons)) : []
  const byTenant = Map.groupBy([...rows, ...codeRows, ...couponRows], ({ tenantId }) => tenantId)
  return new Map(
    [...byTenant].map(([tenantId, own]) => [tenantId, indexTerms(own.map(({ told }) => mergeTerm(told)))]),
  )
}

function versionsOf(told: ReportedVersion[]): SubscriptionVersion[] {
  return told.map(({ version, eventId }) => ({ ...version, eventId }))
}

function storedCheckpoint(
  checkpoint: Checkpoint,
  told: ReportedVersion[],
  before: Pick<StoredCheckpoint, 'customers' | 'isOfTwo'>,
): StoredCheckpoint {
  const earlier = told.filter(({ version }) => version.sourceAt < checkpoint.at)
  const customers = customersOf(earlier, before.customers)
  return {
    ...checkpoint,
    customers: Object.fromEntries([...customers].map(([source, own]) => [source, [...own]])),
    isOfTwo: before.isOfTwo,
  }
}

/** By source, which customers it tells the subscription with. */
function customersOf(
  told: ReportedVersion[],
  before: Record<string, string[]> = {},
): Map<string, Set<string>> {
  const customers = new Map(Object.entries(before).map(([source, own]) => [source, new Set(own)]))
  for (const { sourceId, version } of told) {
    if (sourceId === null || version.customer === null) continue
    const own = customers.get(sourceId) ?? new Set()
    customers.set(sourceId, own.add(version.customer))
  }
  return customers
}

/** Whether two sources tell one id with two customers: two things in one namespace. */
function isOfTwoThings(customers: Map<string, Set<string>>): boolean {
  const sets = [...customers.values()]
  return sets.some((own, i) => sets.some((other, j) => i !== j && ![...own].some(id => other.has(id))))
}

function withCollision(segment: Segment): Segment {
  return { ...segment, cautions: [...(segment.cautions ?? []), 'id_of_two_customers'] }
}
