import { type AccountState, accountStates, continueStates } from '../../domain/billing/account.ts'
import { deriveAccount } from '../../domain/billing/movements.ts'
import type { Instant } from '../../domain/billing/types.ts'
import type { NodeKey } from '../../domain/identity/identity.ts'
import { toDay } from '../../domain/time.ts'
import type { Db } from '../../postgres/database.ts'
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
import { keyText, type ObjectKey } from '../../store/billing/rows.ts'
import { coverDays } from '../../store/billing/snapshots.ts'
import { notifyMovements } from '../deliveries/movements.ts'
import type { Deriving } from '../unit.ts'

type AccountNews = {
  /** By account, the node of its latest event. */
  nodes?: Map<string, number>
  /** The profiles behind these accounts changed. */
  isPersonNews?: boolean
  /** By account, the start of the changed segments; without it, all may have changed. */
  since?: Map<string, Instant>
  /** A policy change caused the derivation. */
  isRestated?: boolean
}

/**
 * Derives accounts from the segments of their subscriptions. The caller holds the profile lock, so the profiles read
 * here do not change until the end of the transaction.
 */
export async function deriveAccounts({ client, now }: Deriving, keys: ObjectKey[], news: AccountNews): Promise<void> {
  if (keys.length === 0) return
  const rows = await lockAccounts(client, keys)
  const owners = rows.map(row => ({ ...row, since: findStart(row, news) }))
  const loaded = await loadAccountSegments(client, owners)
  const segments = Map.groupBy(loaded, segmentAccount)
  const findSegments = (key: ObjectKey) => segments.get(keyText(key)) ?? []
  // an account's own acquisition source is stored in all of its rows
  const restated = owners.filter(
    row => row.since !== null && findSegments(row).some(segment => isOtherSource(row, segment)),
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
  // a policy change is no movement, so destinations receive no message
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

/** Looks up the first touches of `wanted`. The source of an erased person stays as it is. */
async function withFirstTouches(
  db: Db,
  accounts: DerivedAccount[],
  wanted: DerivedAccount[],
): Promise<DerivedAccount[]> {
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
    let payingSince = past?.payingSince ?? 0
    return movements.map((movement, i) => {
      if (movement.before === 0) payingSince = movement.at
      return {
        tenantId,
        id,
        currency,
        movement,
        firstAt: past?.firstAt ?? movements[0]!.at,
        firstMrr: past?.firstMrr ?? movements[0]!.after,
        previousAt: movements[i - 1]?.at ?? past?.at ?? null,
        payingSince,
        acquisitionId: acquisitionId(account),
      }
    })
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
