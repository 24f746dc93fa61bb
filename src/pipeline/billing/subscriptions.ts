import { figuresOf } from '../../domain/billing/account-states.ts'
import { contentHash } from '../../domain/billing/content.ts'
import { itemRanges } from '../../domain/billing/item-states.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { deriveSubscription, type Segment } from '../../domain/billing/timeline.ts'
import type { SubscriptionVersion } from '../../domain/billing/types.ts'
import type { Db } from '../../postgres/database.ts'
import { shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import { acquisitionIds } from '../../store/billing/acquisitions.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { policiesOf } from '../../store/billing/policies.ts'
import { addRestated } from '../../store/billing/restatement.ts'
import {
  loadSegments,
  lockSubscriptions,
  replaceItems,
  replaceSegments,
  type SegmentRow,
} from '../../store/billing/subscriptions.ts'
import { takeOutdated } from '../../store/billing/terms.ts'
import { loadVersions } from '../../store/billing/versions.ts'
import type { Deriving } from '../unit.ts'
import { deriveAccounts } from './accounts.ts'
import { writeAgenda } from './agenda.ts'
import { termsNamedBy } from './terms.ts'

type SubscriptionNews = {
  /** Subscriptions that only an invoice speaks of so far. */
  named: ObjectKey[]
  /** By subscription, under which node it was last seen. */
  nodes: Map<string, number>
  /** By which to derive, where it is not the one that their tenants follow. */
  policy?: Policy
}

type Derived = ObjectKey & { segments: Segment[] }

/**
 * Derives subscriptions anew from all that is known of them, and then their accounts. Whoever calls shares the locks on
 * who is who and on terms.
 */
export async function applySubscriptions(
  transaction: Deriving,
  keys: ObjectKey[],
  { named, nodes, policy }: SubscriptionNews,
): Promise<void> {
  const { client, now } = transaction
  await lockSubscriptions(client, keys, named)
  if (keys.length === 0) return
  const known = await loadVersions<SubscriptionVersion>(client, 'subscription', keys)
  const terms = await termsNamedBy(client, known)
  const policyOf = policy ? () => policy : await followedPolicies(client, keys)
  const derived = [...Map.groupBy(known, keyText).values()].map((versions): Derived => {
    const { tenantId, id } = versions[0]!
    const told = versions.map(({ version, eventId }) => ({ ...version, eventId }))
    const { segments } = deriveSubscription(told, terms.get(tenantId), policyOf(tenantId))
    return { tenantId, id, segments: isOfTwo(versions) ? segments.map(withCollision) : segments }
  })
  const accounts = await writeSegments(transaction, derived)
  await replaceItems(
    client,
    keys,
    derived.flatMap(({ tenantId, id, segments }) =>
      itemRanges(segments).map(range => ({ tenantId, id, ...range })),
    ),
  )
  await writeAgenda(client, derived, now.getTime())
  await deriveAccounts(transaction, accounts, { nodes: nodesOfAccounts(derived, nodes) })
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

/** Whether two sources tell one id with two customers: two things in one namespace. */
function isOfTwo(versions: { sourceId: string | null; version: SubscriptionVersion }[]): boolean {
  const customers = new Map<string, Set<string>>()
  for (const { sourceId, version } of versions) {
    if (sourceId === null || version.customer === null) continue
    const own = customers.get(sourceId) ?? new Set()
    customers.set(sourceId, own.add(version.customer))
  }
  const sets = [...customers.values()]
  return sets.some((own, i) => sets.some((other, j) => i !== j && ![...own].some(id => other.has(id))))
}

function withCollision(segment: Segment): Segment {
  return { ...segment, cautions: [...(segment.cautions ?? []), 'id_of_two_customers'] }
}

/** Writes what changed, and returns the accounts that had or have a part in it. */
async function writeSegments({ client }: Deriving, derived: Derived[]): Promise<ObjectKey[]> {
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
    added.map((row, i): SegmentRow => ({ ...row, figures: figuresOf(row.segment), acquisitionId: ids[i]! })),
  )
  return distinctKeys([
    ...gone.map(({ tenantId, account }) => ({ tenantId, id: account })),
    ...added.map(({ tenantId, segment }) => ({ tenantId, id: segment.account })),
  ])
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
