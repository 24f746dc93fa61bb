import { accountStates } from '../../domain/billing/account-states.ts'
import { deriveAccount } from '../../domain/billing/movements.ts'
import { dayOf } from '../../domain/time.ts'
import type { Db } from '../../postgres/database.ts'
import {
  type AccountRow,
  type AccountSegment,
  loadAccountSegments,
  lockAccounts,
  type MovementRow,
  replaceMovements,
  replaceStates,
  updateAccounts,
} from '../../store/billing/accounts.ts'
import { acquisitionIds, firstTouches } from '../../store/billing/acquisitions.ts'
import { keyText, type ObjectKey } from '../../store/billing/keys.ts'
import { coverDays } from '../../store/billing/snapshots.ts'
import { tellingMovements } from '../deliveries/movements.ts'
import type { Deriving } from '../unit.ts'

type AccountNews = {
  /** By account, under which node it was last seen. */
  nodes?: Map<string, number>
  /** Something was learnt of the people behind these accounts. */
  isPersonNews?: boolean
}

/**
 * Derives accounts anew from the segments of their subscriptions. Whoever calls holds the lock on who is who
 * (`profiles`), so that what is found here of people stays so until the end of the transaction.
 */
export async function deriveAccounts(
  { client, now }: Deriving,
  keys: ObjectKey[],
  news: AccountNews,
): Promise<void> {
  if (keys.length === 0) return
  const rows = await lockAccounts(client, keys)
  const segments = Map.groupBy(await loadAccountSegments(client, keys), ({ tenantId, account }) =>
    keyText({ tenantId, id: account }),
  )
  const segmentsOf = (key: ObjectKey) => segments.get(keyText(key)) ?? []
  const accounts = await attribute(client, rows, segmentsOf, news)
  const states = accounts.flatMap(account =>
    accountStates(segmentsOf(account)).map(state => ({
      ...account,
      state,
      acquisitionId: acquisitionOf(account),
    })),
  )
  await replaceStates(client, keys, states)
  const movements = accounts.flatMap(account =>
    movementsOf(account, segmentsOf(account), acquisitionOf(account)),
  )
  await tellingMovements({ client, now }, keys, telling => replaceMovements(client, keys, movements, telling))
  const firsts = Map.groupBy(states, ({ tenantId }) => tenantId)
  await coverDays(
    client,
    [...firsts].map(([tenantId, own]) => ({
      tenantId,
      from: dayOf(own.reduce((first, { state }) => Math.min(first, state.from), Number.POSITIVE_INFINITY)),
    })),
    dayOf(now),
    now,
  )
}

/** By its own word, else by its first touch: as billing_accounts.acquisition_id tells it too. */
function acquisitionOf({ ownAcquisitionId, touchAcquisitionId }: AccountRow): number {
  return ownAcquisitionId > 0 ? ownAcquisitionId : touchAcquisitionId
}

/** Where accounts came from, and under which name they are known; what changed is written. */
async function attribute(
  db: Db,
  rows: AccountRow[],
  segmentsOf: (key: ObjectKey) => AccountSegment[],
  { nodes, isPersonNews = false }: AccountNews,
): Promise<AccountRow[]> {
  const now = rows.map(row => ({
    ...row,
    node: nodes?.get(keyText(row)) ?? row.node,
    ownAcquisitionId: ownAcquisition(segmentsOf(row)),
  }))
  const isOther = (account: AccountRow, i: number) =>
    account.node !== rows[i]!.node || account.ownAcquisitionId !== rows[i]!.ownAcquisitionId
  const accounts = await withFirstTouches(
    db,
    now,
    now.filter((account, i) => account.ownAcquisitionId === 0 && (isPersonNews || isOther(account, i))),
  )
  const changed = accounts.filter(
    (account, i) => isOther(account, i) || account.touchAcquisitionId !== rows[i]!.touchAcquisitionId,
  )
  if (changed.length > 0) await updateAccounts(db, changed)
  return accounts
}

/** Looks up `wanted` of the accounts. What was learnt of a person who has been erased since stays as it is. */
async function withFirstTouches(db: Db, accounts: AccountRow[], wanted: AccountRow[]): Promise<AccountRow[]> {
  const people = wanted.flatMap(({ tenantId, node }) => (node === null ? [] : [{ tenantId, node }]))
  if (people.length === 0) return accounts
  const touches = await firstTouches(db, people)
  const ids = await acquisitionIds(db, touches)
  const found = new Map(touches.map(({ tenantId, node }, i) => [`${tenantId} ${node}`, ids[i]!]))
  const isWanted = new Set(wanted)
  return accounts.map(account => {
    const id = isWanted.has(account) ? found.get(`${account.tenantId} ${account.node}`) : undefined
    return id === undefined ? account : { ...account, touchAcquisitionId: id }
  })
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

function movementsOf(
  { tenantId, id }: ObjectKey,
  segments: AccountSegment[],
  acquisitionId: number,
): MovementRow[] {
  return deriveAccount(segments).flatMap(({ currency, movements }) => {
    let payingSince = 0
    return movements.map((movement, i) => {
      if (movement.before === 0) payingSince = movement.at
      return {
        tenantId,
        id,
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
