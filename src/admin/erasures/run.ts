import type pg from 'pg'
import { nameHash } from '../../domain/identity/suppression.ts'
import { CLOCKS_APART_MS } from '../../domain/time.ts'
import { databaseNow } from '../../postgres/clock.ts'
import { inTransaction } from '../../postgres/database.ts'
import { lockPeople } from '../../postgres/locks.ts'
import {
  advanceErasure,
  keepErasure,
  type StoredErasure,
  saveErasure,
  takeLeftErasure,
} from '../../store/identity/erasures.ts'
import { currentProfile, namesLike } from '../../store/identity/people.ts'
import { insertSuppressions } from '../../store/identity/suppressions.ts'
import { anonymiseReceipts, deleteNames, type KnownName, namesOf } from '../../store/identity/traces.ts'
import { holdRequests } from '../../store/inbound/requests.ts'
import type { ErasureReceipt } from '../views/erasures.ts'
import { oldestUnapplied, resume, type Storage, showingLife, untilApplied } from './long-work.ts'
import { type ErasureWork, eraseEffects, eraseWaiting, nodesOf, valuesOf } from './steps.ts'

/** Whom an erasure is about. */
export type Subject = { email: string } | { profile: number }

/** Kept with an erasure until it is done. */
type Stored = {
  subject: Subject
  waitMs: number
  /** They are not to be recorded again. */
  suppress?: boolean
  /** Taken away with the last of them; what was written meanwhile is found by them. */
  names: KnownName[]
  /** What was waiting when it began came in no earlier than this. */
  since: string | null
}

export function storedSubject(subject: Subject, waitMs: number, suppress: boolean): string {
  return JSON.stringify({ subject, waitMs, suppress, names: [], since: null } satisfies Stored)
}

/** Runs an erasure from where it stands to its end, and returns the receipt. Whatever was done before is not done twice. */
export async function runErasure(storage: Storage, erasure: StoredErasure): Promise<ErasureReceipt> {
  const { pool, log } = storage
  const receipt = JSON.parse(erasure.receipt) as ErasureReceipt
  const stored = JSON.parse(erasure.subject!) as Stored
  const work: ErasureWork = {
    ...{ pool, log },
    tenantId: erasure.tenantId,
    erased: receipt.erased,
    save: db => saveErasure(db, erasure, JSON.stringify(receipt)),
  }
  return showingLife(
    () => keepErasure(pool, erasure),
    async () => {
      if (erasure.status === 'erasing') await erasePerson({ ...work, log }, erasure, stored, receipt)
      const since = new Date(
        Math.min(Date.parse(stored.since!), erasure.requestedAt.getTime()) - CLOCKS_APART_MS,
      )
      await eraseEffects(work, stored.names, since)
      await eraseWaiting(work, stored.names)
      // Once, when nobody writes of the person any more: no index leads to them.
      await anonymiseReceipts(pool, erasure.tenantId, valuesOf(stored.names, 'email'))
      await log.outside?.forgetRead()
      receipt.status = 'completed'
      receipt.completed_at = (await databaseNow(pool)).toISOString()
      await advanceErasure(pool, {
        ...erasure,
        status: 'completed',
        subject: null,
        receipt: JSON.stringify(receipt),
      })
      return receipt
    },
  )
}

/** What waits first: what is not there when it would be its turn cannot come back. Then what stands, then the names. */
async function erasePerson(
  work: ErasureWork & Storage,
  erasure: StoredErasure,
  stored: Stored,
  receipt: ErasureReceipt,
): Promise<void> {
  const { pool, tenantId } = work
  const at = await oldestUnapplied(work, tenantId)
  stored.since ??= (at ?? erasure.requestedAt).toISOString()
  await eraseWaiting(work, merged(stored.names, await namesOfSubject(pool, tenantId, stored.subject)))
  // What left the overflow before it could be taken out is in the log by now: it is applied, and then found.
  receipt.not_yet_processed = await untilApplied(work, tenantId, await databaseNow(pool), stored.waitMs)
  // Until no further name turns up: what is merged into the profile meanwhile belongs to the person.
  for (let known = 0; ; ) {
    stored.names = merged(stored.names, await namesOfSubject(pool, tenantId, stored.subject))
    if (stored.names.length === known) break
    known = stored.names.length
    await eraseEffects(work, stored.names, null)
  }
  await inTransaction(pool, async client => {
    // Every worker's transaction about this tenant lies wholly before this one or wholly after it. Those before are
    // committed now: the names they added are found here, and what they wrote in the second pass. Those after
    // read a newer version (holdConfigVersion) and forget the nodes they remembered: nobody writes to one that
    // is gone, and the person does not come back.
    await lockPeople(client, tenantId)
    stored.names = merged(stored.names, await namesOfSubject(client, tenantId, stored.subject))
    const deleted = await deleteNames(client, tenantId, nodesOf(stored.names))
    receipt.erased.identities += deleted.names
    receipt.erased.touches += deleted.touches
    if (stored.suppress) receipt.suppressed_names = await suppress(client, erasure, stored.names)
    await advanceErasure(client, {
      ...erasure,
      status: 'sweeping',
      subject: JSON.stringify(stored),
      receipt: JSON.stringify(receipt),
    })
  })
}

/** From the commit on, whatever comes under one of these names is not recorded. */
async function suppress(client: pg.PoolClient, erasure: StoredErasure, names: KnownName[]): Promise<number> {
  const { tenantId } = erasure
  const hashes = names.map(name => ({ kind: name.kind, hash: nameHash(tenantId, name) }))
  await holdRequests(client)
  await insertSuppressions(client, tenantId, erasure.id, hashes)
  return hashes.length
}

/** All that the person is known by; an e-mail that nobody was seen under may still stand in what waits. */
export async function namesOfSubject(
  db: pg.Pool | pg.PoolClient,
  tenantId: number,
  subject: Subject,
): Promise<KnownName[]> {
  const profile = await profileOfSubject(db, tenantId, subject)
  if (profile !== null) return namesOf(db, tenantId, profile)
  return 'email' in subject ? [{ node: null, kind: 'email', value: subject.email }] : []
}

export async function profileOfSubject(
  db: pg.Pool | pg.PoolClient,
  tenantId: number,
  subject: Subject,
): Promise<number | null> {
  if ('profile' in subject) return currentProfile(db, tenantId, subject.profile)
  const [found] = await namesLike(db, tenantId, { kinds: ['email'], values: [subject.email] })
  return found?.profile ?? null
}

function merged(some: KnownName[], more: KnownName[]): KnownName[] {
  const all = [...some, ...more].map(name => [`${name.kind} ${name.value} ${name.node}`, name] as const)
  return [...new Map(all).values()]
}

/** Goes on with what a process left behind when it ended. */
export const resumeErasures = (storage: Storage, silentS?: number): Promise<void> =>
  resume({
    take: silent => takeLeftErasure(storage.pool, silent),
    run: left => runErasure(storage, left),
    silentS,
  })
