import { CHECKPOINT_SIZES, type Checkpoint } from '../../domain/billing/checkpoint.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { continueSubscription, deriveSubscription, type Segment } from '../../domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../domain/billing/types.ts'
import type { Db } from '../../postgres/database.ts'
import { loadCheckpoints, type StoredCheckpoint, saveCheckpoints } from '../../store/billing/checkpoints.ts'
import { keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { loadVersions, loadVersionsSince } from '../../store/billing/versions.ts'
import type { Deriving } from '../unit.ts'
import { termsNamedBy } from './terms.ts'

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
  return versions >= CHECKPOINT_SIZES.least
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
