import { hash } from 'node:crypto'
import { accountStates, figuresOf } from '../../domain/billing/account-states.ts'
import { itemRanges } from '../../domain/billing/item-states.ts'
import { deriveAccount } from '../../domain/billing/movements.ts'
import { deriveSubscription, type Segment } from '../../domain/billing/timeline.ts'
import type { SubscriptionVersion } from '../../domain/billing/types.ts'
import {
  type AccountRow,
  type AccountSegment,
  acquisitionIds,
  loadAccountSegments,
  lockAccounts,
  type MovementRow,
  replaceMovements,
  replaceStates,
  updateAccounts,
} from '../../store/billing/accounts.ts'
import { writeAgenda } from '../../store/billing/agenda.ts'
import { hintAttribution } from '../../store/billing/attribution.ts'
import { coverDays } from '../../store/billing/snapshots.ts'
import {
  loadSegments,
  lockSubscriptions,
  replaceItems,
  replaceSegments,
  type SegmentRow,
} from '../../store/billing/subscriptions.ts'
import { keyText, loadVersions, type ObjectKey } from '../../store/billing/versions.ts'
import type { Transaction } from '../unit.ts'

type Derived = ObjectKey & { segments: Segment[] }

/** Derives subscriptions anew from all that is known of them, and then their accounts. */
export async function applySubscriptions(
  transaction: Transaction,
  keys: ObjectKey[],
  { named, nodes }: { named: ObjectKey[]; nodes: Map<string, number> },
): Promise<void> {
  const { client, now } = transaction
  await lockSubscriptions(client, keys, named)
  if (keys.length === 0) return
  const known = await loadVersions<SubscriptionVersion>(client, 'subscription', keys)
  const derived = [...Map.groupBy(known, keyText).values()].map((versions): Derived => {
    const { tenantId, id } = versions[0]!
    return { tenantId, id, segments: deriveSubscription(versions.map(({ version }) => version)).segments }
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
  await deriveAccounts(transaction, accounts, nodesOfAccounts(derived, nodes))
}

/** Writes what changed, and returns the accounts that had or have a part in it. */
async function writeSegments({ client }: Transaction, derived: Derived[]): Promise<ObjectKey[]> {
  const before = await loadSegments(client, derived)
  const rows = derived.flatMap(({ tenantId, id, segments }) =>
    segments.map(segment => ({ tenantId, id, segment, hash: contentHash(segment) })),
  )
  const rowText = (key: ObjectKey, from: number, digest: string) => `${keyText(key)} ${from} ${digest}`
  const kept = new Set(before.map(row => rowText(row, row.from, row.hash.replaceAll('-', ''))))
  const wanted = new Set(rows.map(row => rowText(row, row.segment.from, row.hash)))
  const gone = before.filter(row => !wanted.has(rowText(row, row.from, row.hash.replaceAll('-', ''))))
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

export function contentHash(content: object): string {
  return hash('sha256', JSON.stringify(content), 'hex').slice(0, 32)
}

function nodesOfAccounts(derived: Derived[], nodes: Map<string, number>): Map<string, number> {
  const found = new Map<string, number>()
  for (const one of derived) {
    const node = nodes.get(keyText(one))
    if (node === undefined) continue
    for (const { account } of one.segments) found.set(keyText({ tenantId: one.tenantId, id: account }), node)
  }
  return found
}

async function deriveAccounts(
  { client, now }: Transaction,
  keys: ObjectKey[],
  nodes: Map<string, number>,
): Promise<void> {
  if (keys.length === 0) return
  const rows = await lockAccounts(client, keys)
  const segments = Map.groupBy(await loadAccountSegments(client, keys), ({ tenantId, account }) =>
    keyText({ tenantId, id: account }),
  )
  const acquisitions = await noteAccounts(client, rows, segments, nodes)
  const states = keys.flatMap(key =>
    accountStates(segments.get(keyText(key)) ?? []).map(state => ({
      ...key,
      state,
      acquisitionId: acquisitions.get(keyText(key)) ?? 0,
    })),
  )
  await replaceStates(client, keys, states)
  await replaceMovements(
    client,
    keys,
    keys.flatMap(key =>
      movementsOf(key, segments.get(keyText(key)) ?? [], acquisitions.get(keyText(key)) ?? 0),
    ),
  )
  const firsts = Map.groupBy(states, ({ tenantId }) => tenantId)
  await coverDays(
    client,
    [...firsts].map(([tenantId, own]) => ({
      tenantId,
      from: dayOf(own.reduce((first, { state }) => Math.min(first, state.from), Number.POSITIVE_INFINITY)),
    })),
    dayOf(now.getTime()),
    now,
  )
}

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

function movementsOf(key: ObjectKey, segments: AccountSegment[], acquisitionId: number): MovementRow[] {
  return deriveAccount(segments).flatMap(({ currency, movements }) => {
    let payingSince = 0
    return movements.map((movement, i) => {
      if (movement.before === 0) payingSince = movement.at
      return {
        ...key,
        currency,
        movement,
        firstAt: movements[0]!.at,
        firstMrr: movements[0]!.after,
        previousAt: movements[i - 1]?.at ?? null,
        payingSince,
        acquisitionId,
      }
    })
  })
}

/** Where accounts came from by their own word, and under which name they are known; returns what holds now. */
async function noteAccounts(
  client: Transaction['client'],
  rows: AccountRow[],
  segments: Map<string, AccountSegment[]>,
  nodes: Map<string, number>,
): Promise<Map<string, number>> {
  const acquisitions = new Map(rows.map(row => [keyText(row), row.acquisitionId]))
  const changed = rows
    .map(row => ({
      ...row,
      before: row,
      node: nodes.get(keyText(row)) ?? row.node,
      ownAcquisitionId: ownAcquisition(segments.get(keyText(row)) ?? []),
    }))
    .filter(row => row.node !== row.before.node || row.ownAcquisitionId !== row.before.ownAcquisitionId)
  if (changed.length > 0) {
    for (const row of await updateAccounts(client, changed)) acquisitions.set(keyText(row), row.acquisitionId)
  }
  await hintAttribution(
    client,
    changed.flatMap(({ tenantId, node, ownAcquisitionId }) =>
      node !== null && ownAcquisitionId === 0 ? [{ tenantId, node }] : [],
    ),
  )
  return acquisitions
}

/** What its oldest subscription says that says anything. */
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

function distinctKeys(keys: ObjectKey[]): ObjectKey[] {
  return [...new Map(keys.map(key => [keyText(key), key])).values()]
}
