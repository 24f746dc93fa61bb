import { createHash } from 'node:crypto'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { hashIdentifier } from '../domain/identity/erasure.ts'
import { IDENTIFIER_KINDS, parseEmail, publicProfileId } from '../domain/identity/identity.ts'
import { isUuid, newEntryId } from '../domain/ids.ts'
import { Count, NullableText, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Log } from '../log/log.ts'
import { findBilling } from '../pipeline/billing/erasure.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import { findErasure, insertErasure, listErasures, type StoredErasure } from '../store/identity/erasures.ts'
import { findIdentifiers, listNodes } from '../store/identity/people.ts'
import { deleteSuppressed, listSuppressed, loadSuppressionCount } from '../store/identity/suppressions.ts'
import {
  countArchivedOf,
  countContacts,
  countTouches,
  findEventsOfNodes,
  type TracedIdentifier,
} from '../store/identity/traces.ts'
import { type Actor, canSee, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import {
  Erased,
  type ErasureReceipt,
  findNamesOfSubject,
  findProfileOfSubject,
  runErasure,
  type Subject,
  serializeSubject,
} from './erasure-run.ts'
import { AdminError, throwIfInvalid } from './error.ts'
import { longWork, MAX_WAIT_MS, type Storage, waitUntilApplied } from './long-work.ts'
import { parseProfileId, unknownPerson } from './people.ts'
import {
  findEntriesAbout,
  findEventsAbout,
  findRecordsNaming,
  findSalesAbout,
  findUnlinkedEventsAbout,
  nodeIds,
  portions,
  toEntryNames,
  valuesOfKind,
} from './person-data.ts'

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
    const subject = parseSubject(query)
    const tenantId = (await requireTenant(pool, actor, query.tenant)).id
    const unapplied = await waitUntilApplied(storage, tenantId, await databaseNow(pool), waitMs)
    const names = await findNamesOfSubject(pool, tenantId, subject)
    const isSeen = names.some(({ node }) => node !== null)
    const isHeld = isSeen || unapplied > 0 || query.suppress || (await isAnythingHeld(tenantId, names))
    if (!isHeld) throw unknownPerson(query.email ?? query.profile!)
    return { subject, tenantId, names, unapplied }
  }

  async function isAnythingHeld(tenantId: number, names: TracedIdentifier[]): Promise<boolean> {
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
        `This person has ${names.length} names. It would take ${formatCounts(await countErasable(storage, tenantId, names))}. Look at them first, then confirm.`,
      )
    const requestedAt = await databaseNow(pool)
    const hash = hashSubject(tenantId, subject)
    const erasure: StoredErasure = {
      id: newEntryId(requestedAt.getTime()),
      ...{
        tenantId,
        requestedAt,
        status: 'erasing',
        subject: serializeSubject(subject, waitMs, query.suppress === true),
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
    receiptNow: async ({ id }) => toReceipt((await findErasure(pool, id))!),
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
        profile_id: publicProfileId(await findProfileOfSubject(pool, tenantId, subject)),
        names: names.map(({ kind, value }) => ({ kind, value })),
        would_erase: await countErasable(storage, tenantId, names),
        not_joined: await findNamesakes(pool, tenantId, names),
        not_yet_processed: unapplied,
        needs_confirmation: names.length > MAX_NAMES_UNCONFIRMED,
      }
    },
    async show(id: string): Promise<ErasureReceipt> {
      const erasure = isUuid(id) ? await findErasure(pool, id) : null
      if (!erasure || !canSee(actor, erasure.tenantId))
        throw new AdminError('not_found', 'erasure_not_found', `There is no erasure ${JSON.stringify(id)}.`)
      return toReceipt(erasure)
    },
    /** Newest first. */
    async list(tenant: string): Promise<ErasureReceipt[]> {
      const { id } = await requireTenant(pool, actor, tenant)
      return (await listErasures(pool, id, 100)).map(toReceipt)
    },
  }
}

function toReceipt({ status, receipt }: StoredErasure): ErasureReceipt {
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

function parseSubject({ email, profile }: ErasureQuery): Subject {
  if ((email === undefined) === (profile === undefined)) {
    throw new AdminError(
      'invalid',
      'invalid_request',
      'Name the person by e-mail or by profile: one of the two.',
    )
  }
  if (email !== undefined) {
    const address = parseEmail(email)
    throwIfInvalid(address === null ? [{ pointer: '/email', message: 'must be an e-mail address' }] : [])
    return { email: address! }
  }
  const number = parseProfileId(profile!)
  const message = 'must be a profile id, for example prof_7'
  throwIfInvalid(number === null ? [{ pointer: '/profile', message }] : [])
  return { profile: number! }
}

function hashSubject(tenantId: number, subject: Subject): Buffer {
  const text = 'email' in subject ? `email ${subject.email}` : `profile ${subject.profile}`
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${text}`)
    .digest()
}

/** What an erasure of these names would take, counted as its receipt counts. Touches nothing. */
async function countErasable(
  { pool, log }: { pool: pg.Pool; log: Pick<Log, 'forget'> },
  tenantId: number,
  names: TracedIdentifier[],
): Promise<ErasureReceipt['erased']> {
  const nodes = nodeIds(names)
  const named = await findRecordsNaming({ pool, tenantId }, names)
  const contactIds = [...new Set([...valuesOfKind(names, 'contact'), ...named.contacts])]
  const events = await findEventsAbout({ pool, tenantId }, names, null)
  const kept = { archived: 0, log_entries: 0 }
  for (const some of portions(events)) kept.archived += await countArchivedOf(pool, tenantId, some)
  // A request may have brought events of several portions: it goes once.
  for (const some of portions(toEntryNames(events)))
    kept.log_entries += await log.forget(pool, tenantId, some, { dryRun: true })
  const sales = await findSalesAbout({ pool, tenantId }, { nodes, contactIds, orderIds: named.orders })
  const items = { dead_letters: 0, parked_entries: 0, overflow: 0 }
  for (const table of ['dead_letters', 'parked_entries', 'overflow'] as const)
    for (const { items: found } of await findEntriesAbout({ pool, tenantId }, table, names))
      items[table] += found.about.length
  return {
    events: events.length,
    conversions: sales.length,
    orders: sales.filter(({ orderId }) => orderId !== null).length,
    contacts: await countContacts(pool, tenantId, contactIds),
    identities: nodes.length,
    touches: await countTouches(pool, tenantId, nodes),
    ...kept,
    dead_letters: items.dead_letters,
    waiting: items.parked_entries + items.overflow,
    billing: await countBilling(pool, tenantId, {
      customers: contactIds,
      emails: valuesOfKind(names, 'email'),
    }),
  }
}

// More than so many by one id are no person to look through.
const MAX_NAMESAKES = 20

/** Who else goes by an id or e-mail of the person, and what would be left of them. */
async function findNamesakes(
  pool: pg.Pool,
  tenantId: number,
  names: TracedIdentifier[],
): Promise<ErasurePreview['not_joined']> {
  const own = new Set(nodeIds(names))
  const values = names.filter(({ kind }) => kind !== 'visitor').map(({ value }) => value)
  const wanted = values.flatMap(value => IDENTIFIER_KINDS.map(kind => ({ kind, value })))
  const found = await findIdentifiers(pool, tenantId, {
    kinds: wanted.map(({ kind }) => kind),
    values: wanted.map(({ value }) => value),
  })
  const others = new Map(
    found.filter(({ node }) => !own.has(node)).map(name => [name.profile, name] as const),
  )
  if (others.size === 0) return []
  const taken = new Set((await findUnlinkedEventsAbout({ pool, tenantId }, names)).map(({ id }) => id))
  const namesakes: ErasurePreview['not_joined'] = []
  for (const { profile, kind, value } of [...others.values()].slice(0, MAX_NAMESAKES)) {
    const events = await findEventsOfNodes(pool, tenantId, await listNodes(pool, tenantId, profile), null)
    const remaining_events = events.filter(({ id }) => !taken.has(id)).length
    namesakes.push({ profile_id: publicProfileId(profile)!, kind, value, remaining_events })
  }
  return namesakes
}

async function countBilling(...[pool, tenantId, named]: Parameters<typeof findBilling>): Promise<number> {
  const { accounts, invoices } = await findBilling(pool, tenantId, named)
  return accounts.length + invoices.length
}

function formatCounts(counts: ErasureReceipt['erased']): string {
  const words = Object.entries(counts).flatMap(([name, count]) =>
    count > 0 ? [`${count} ${name.replaceAll('_', ' ')}`] : [],
  )
  return words.length > 0 ? words.join(', ') : 'nothing else'
}

export type SuppressionAdmin = ReturnType<typeof suppressionAdmin>

const MOST = 1_000

export function suppressionAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Newest first: the last thousand. */
    async list(tenant: string): Promise<SuppressionList> {
      const { id } = await requireTenant(pool, actor, tenant)
      const [people, count] = await Promise.all([
        listSuppressed(pool, id, MOST),
        loadSuppressionCount(pool, id),
      ])
      return {
        results: people.map(({ erasureId, suppressedAt, names }) => ({
          id: erasureId,
          tenant: publicTenantId(id),
          suppressed_at: suppressedAt.toISOString(),
          names,
        })),
        next_cursor: null,
        not_recorded: {
          events: count?.events ?? 0,
          records: count?.records ?? 0,
          last_at: count?.lastAt.toISOString() ?? null,
        },
      }
    },
    /** By the id of the list, an e-mail address, or the hash of a name: all names of that person are recorded again. */
    async remove({ tenant, id: who }: { tenant: string; id: string }): Promise<RemovedSuppression> {
      const { id: tenantId } = await requireTenant(pool, actor, tenant)
      const email = parseEmail(who)
      const hash = /^[\da-f]{64}$/i.test(who)
        ? Buffer.from(who, 'hex')
        : email && hashIdentifier(tenantId, { kind: 'email', value: email })
      return inTransaction(pool, async client => {
        const key = { erasureId: isUuid(who) ? who : null, hash: hash || null }
        // Whoever adds a name of theirs at this moment has added it, and it goes with the others.
        await lockPeople(client, tenantId)
        const removed = await deleteSuppressed(client, tenantId, key)
        if (removed === null)
          throw new AdminError('not_found', 'suppression_not_found', 'Nobody of this name is suppressed.')
        const after = { names: removed.names }
        const change = { action: 'suppression.remove', target: removed.erasureId, tenantId, after }
        await recordChange(client, actor, change)
        return { id: removed.erasureId, tenant: publicTenantId(tenantId), names: removed.names }
      })
    },
  }
}

/** Somebody who was erased, and is not recorded again. */
const SuppressionView = Type.Object({
  id: Type.String({ format: 'uuid', description: 'Of the erasure that it came with' }),
  tenant: Type.String(),
  suppressed_at: Timestamp,
  names: Type.Array(Type.Object({ kind: Type.Enum([...IDENTIFIER_KINDS]), hash: Type.String() }), {
    description: 'SHA-256 of "<tenant id> <kind> <value>", in hex: nothing else is kept',
  }),
})

export const SuppressionList = Type.Object({
  results: Type.Array(SuppressionView),
  next_cursor: Type.Null(),
  not_recorded: Type.Object(
    { events: Count, records: Count, last_at: NullableTimestamp },
    { description: 'How much came of these people and was not recorded, since the first of them' },
  ),
})
export type SuppressionList = Static<typeof SuppressionList>

export const RemovedSuppression = Type.Object({ id: Uuid, tenant: Type.String(), names: Count })
export type RemovedSuppression = Static<typeof RemovedSuppression>

/** What an erasure would take. */
export const ErasurePreview = Type.Object({
  dry_run: Type.Literal(true),
  tenant: Type.String(),
  profile_id: NullableText,
  names: Type.Array(Type.Object({ kind: Type.Enum([...IDENTIFIER_KINDS]), value: Type.String() }), {
    description: 'All that the person is known by',
  }),
  would_erase: Erased,
  not_joined: Type.Array(
    Type.Object({
      profile_id: Type.String(),
      kind: Type.Enum([...IDENTIFIER_KINDS]),
      value: Type.String(),
      remaining_events: Type.Integer({ minimum: 0, description: 'Those that this erasure would leave' }),
    }),
    {
      description:
        'Others who go by the same id or e-mail under another kind of name and are no part of this: merge them first where they are the same person. At most 20',
    },
  ),
  not_yet_processed: Count,
  needs_confirmation: Type.Boolean({ description: 'With more than 20 names: send confirm: true' }),
})
export type ErasurePreview = Static<typeof ErasurePreview>
