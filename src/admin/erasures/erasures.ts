import { createHash } from 'node:crypto'
import { emailOf, publicProfileId } from '../../domain/identity/identity.ts'
import { isUuid, newEntryId } from '../../domain/ids.ts'
import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { databaseNow } from '../../postgres/clock.ts'
import { inTransaction } from '../../postgres/database.ts'
import {
  findErasure,
  insertErasure,
  listErasures,
  type StoredErasure,
} from '../../store/identity/erasures.ts'
import type { KnownName } from '../../store/identity/traces.ts'
import { type Actor, sees } from '../actor.ts'
import { recordChange } from '../audit.ts'
import { AdminError, refuse } from '../error.ts'
import { parseProfileId, unknownPerson } from '../people/names.ts'
import { tenantNamed } from '../tenants.ts'
import type { ErasurePreview, ErasureReceipt } from '../views/erasures.ts'
import { longWork, MAX_WAIT_MS, type Storage, untilApplied } from './long-work.ts'
import { countErasable, inWords, namesakesOf } from './preview.ts'
import { namesOfSubject, profileOfSubject, runErasure, type Subject, storedSubject } from './run.ts'

type ErasureQuery = {
  tenant: string
  email?: string | undefined
  profile?: string | undefined
  /** Beyond so many names somebody must have looked at them. */
  confirm?: boolean | undefined
  /** Whatever comes of the person later is not recorded. */
  suppress?: boolean | undefined
}

export type ErasureAdmin = ReturnType<typeof erasureAdmin>

const MAX_NAMES_UNCONFIRMED = 20

const NOTES = [
  'The log of raw requests keeps what is not listed here until its retention time is over (7 days unless set otherwise). Backups keep what they hold.',
  'Ids of processed events are kept as hashes, so that a late repeat does not bring an event back.',
  'What a shop or CRM sends again is stored again, unless the person is suppressed: erase them there first.',
]

type Options = Storage & { actor: Actor; waitMs?: number }

export function erasureAdmin({ pool, log, actor, waitMs = MAX_WAIT_MS }: Options) {
  const storage = { pool, log }
  /** Whom it is about, once what came in before is applied. Throws where nothing is held of anybody by that name. */
  async function find(query: ErasureQuery) {
    const subject = subjectOf(query)
    const tenantId = (await tenantNamed(pool, actor, query.tenant)).id
    const unapplied = await untilApplied(storage, tenantId, await databaseNow(pool), waitMs)
    const names = await namesOfSubject(pool, tenantId, subject)
    const isSeen = names.some(({ node }) => node !== null)
    const isHeld = isSeen || unapplied > 0 || query.suppress || (await isAnythingHeld(tenantId, names))
    if (!isHeld) throw unknownPerson(query.email ?? query.profile!)
    return { subject, tenantId, names, unapplied }
  }

  async function isAnythingHeld(tenantId: number, names: KnownName[]): Promise<boolean> {
    if (names.length === 0) return false
    return Object.values(await countErasable(storage, tenantId, names)).some(count => count > 0)
  }

  /** Writes down that somebody is to be erased: from here on it is done, whatever happens to this process. */
  async function begin(query: ErasureQuery): Promise<StoredErasure> {
    const { subject, tenantId, names, unapplied } = await find(query)
    if (names.length > MAX_NAMES_UNCONFIRMED && !query.confirm)
      throw new AdminError(
        'conflict',
        'confirmation_required',
        `This person has ${names.length} names. It would take ${inWords(await countErasable(storage, tenantId, names))}. Look at them first, then confirm.`,
      )
    const requestedAt = await databaseNow(pool)
    const hash = hashOf(tenantId, subject)
    const erasure: StoredErasure = {
      id: newEntryId(requestedAt.getTime()),
      ...{
        tenantId,
        requestedAt,
        status: 'erasing',
        subject: storedSubject(subject, waitMs, query.suppress === true),
      },
      receipt: '',
    }
    erasure.receipt = JSON.stringify(newReceipt(erasure, hash.toString('hex'), unapplied))
    await inTransaction(pool, async client => {
      await insertErasure(client, { ...erasure, subjectHash: hash })
      // The hash names nobody, and whoever knows the person can find the row again.
      const change = { action: 'person.erase', target: hash.toString('hex'), tenantId }
      await recordChange(client, actor, {
        ...change,
        after: { id: erasure.id, ...(query.suppress && { suppress: true }) },
      })
    })
    return erasure
  }

  const { finish, start } = longWork({
    begin,
    run: erasure => runErasure(storage, erasure),
    receiptNow: async ({ id }) => receiptOf((await findErasure(pool, id))!),
  })

  return {
    erase: finish,
    start,
    /** What an erasure would take, and under which names the person is known. Touches nothing. */
    async preview(query: ErasureQuery): Promise<ErasurePreview> {
      const { subject, tenantId, names, unapplied } = await find(query)
      return {
        dry_run: true,
        tenant: publicTenantId(tenantId),
        profile_id: publicProfileId(await profileOfSubject(pool, tenantId, subject)),
        names: names.map(({ kind, value }) => ({ kind, value })),
        would_erase: await countErasable(storage, tenantId, names),
        not_joined: await namesakesOf(pool, tenantId, names),
        not_yet_processed: unapplied,
        needs_confirmation: names.length > MAX_NAMES_UNCONFIRMED,
      }
    },
    async show(id: string): Promise<ErasureReceipt> {
      const erasure = isUuid(id) ? await findErasure(pool, id) : null
      if (!erasure || !sees(actor, erasure.tenantId))
        throw new AdminError('not_found', 'erasure_not_found', `There is no erasure ${JSON.stringify(id)}.`)
      return receiptOf(erasure)
    },
    /** Newest first. */
    async list(tenant: string): Promise<ErasureReceipt[]> {
      const { id } = await tenantNamed(pool, actor, tenant)
      return (await listErasures(pool, id, 100)).map(receiptOf)
    },
  }
}

function receiptOf({ status, receipt }: StoredErasure): ErasureReceipt {
  return { ...JSON.parse(receipt), status: status === 'completed' ? 'completed' : 'running' }
}

function newReceipt(
  { id, tenantId, requestedAt }: StoredErasure,
  subjectHash: string,
  unapplied: number,
): ErasureReceipt {
  return {
    id,
    tenant: publicTenantId(tenantId),
    subject_hash: subjectHash,
    status: 'running',
    requested_at: requestedAt.toISOString(),
    completed_at: null,
    erased: {
      ...{ events: 0, conversions: 0, orders: 0, contacts: 0, identities: 0, touches: 0 },
      ...{ archived: 0, dead_letters: 0, waiting: 0, log_entries: 0, billing: 0 },
    },
    not_yet_processed: unapplied,
    notes: NOTES,
  }
}

function subjectOf({ email, profile }: ErasureQuery): Subject {
  if ((email === undefined) === (profile === undefined)) {
    throw new AdminError(
      'invalid',
      'invalid_request',
      'Name the person by e-mail or by profile: one of the two.',
    )
  }
  if (email !== undefined) {
    const address = emailOf(email)
    refuse(address === null ? [{ pointer: '/email', message: 'must be an e-mail address' }] : [])
    return { email: address! }
  }
  const number = parseProfileId(profile!)
  const message = 'must be a profile id, for example prof_7'
  refuse(number === null ? [{ pointer: '/profile', message }] : [])
  return { profile: number! }
}

function hashOf(tenantId: number, subject: Subject): Buffer {
  const text = 'email' in subject ? `email ${subject.email}` : `profile ${subject.profile}`
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${text}`)
    .digest()
}
