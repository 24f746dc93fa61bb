import { createHash } from 'node:crypto'
import type pg from 'pg'
import { hashIdentifier } from '../domain/identity/erasure.ts'
import { IDENTIFIER_KINDS, parseEmail, publicProfileId } from '../domain/identity/identifiers.ts'
import { isUuid, newEntryId } from '../domain/ids.ts'
import { Count, NullableText, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { Log } from '../log/log.ts'
import { findBilling } from '../pipeline/billing/erasure.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import { findErasure, insertErasure, listErasures, type StoredErasure } from '../store/identity/erasures.ts'
import { findIdentifiers, listNodes } from '../store/identity/people.ts'
import { deleteSuppressed, listSuppressed, loadSuppressionCount } from '../store/identity/suppressions.ts'
import { countArchived, countContacts, countTouches, findEventsOfNodes } from '../store/identity/traces.ts'
import { type Actor, canSee, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import {
  Covers,
  Erased,
  type ErasureReceipt,
  findScopeOfSubject,
  LinkedProfile,
  Mentioned,
  NO_MENTIONS,
  NOT_COVERED,
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
  findReadEntries,
  findRecordsNaming,
  findSalesAbout,
  findUnlinkedEventsAbout,
  nodeIds,
  portions,
  searchableEmails,
  toEntryNames,
  valuesOfKind,
} from './person-data.ts'
import { listUncovered, type PersonScope, type ScopedIdentifier } from './person-scope.ts'

type ErasureQuery = {
  tenant: string
  email?: string | undefined
  profile?: string | undefined
  /** Required above 20 identifiers: confirms that the caller reviewed them. */
  confirm?: boolean | undefined
  /** Later data of the person is not recorded. */
  suppress?: boolean | undefined
  /** Covers the whole profile, also if only unverified input links the address to it. */
  confirm_profile?: boolean | undefined
}

const MAX_NAMES_UNCONFIRMED = 20

const NOTES = [
  'Raw requests that contain neither the address nor a stored event or record of the person stay in the log until its retention ends (7 days by default). Existing backups and archive files are not changed.',
  'Events of the person, and events without a person that contain the address, are deleted. Events of other people and visitors that contain the address are kept; `mentions` counts them and lists their ids. Contacts and orders of other people that contain the address are kept and not listed.',
  'The payload (values and keys), headers, metadata and ids of events are searched, in upper and lower case. The at sign may be percent-encoded once or twice, an HTML entity or `=40`, and the address may be in an encoded word of an e-mail header. Addresses in other encodings, encrypted, compressed or hashed addresses, and base64 elsewhere than in these words, are not found.',
  'Hashes of the ids of processed events are kept, so that a late duplicate does not restore an event.',
  'Data that a shop or CRM sends again is stored again, unless the person is suppressed. Erase the person there first.',
]

type Options = Storage & { actor: Actor; waitMs?: number }

export function erasureAdmin({ pool, log, actor, waitMs = MAX_WAIT_MS }: Options) {
  const storage = { pool, log }
  /** Finds the person after earlier entries are applied. Throws if there is no data about this identifier. */
  async function find(query: ErasureQuery) {
    const subject = parseSubject(query)
    const tenantId = (await requireTenant(pool, actor, query.tenant)).id
    const unapplied = await waitUntilApplied(storage, tenantId, await databaseNow(pool), waitMs)
    const scope = await findScopeOfSubject(pool, tenantId, subject, query.confirm_profile === true)
    const { names } = scope
    const isSeen = names.some(({ node }) => node !== null)
    const isHeld = isSeen || unapplied > 0 || query.suppress || (await isAnythingHeld(tenantId, scope))
    if (!isHeld) throw unknownPerson(query.email ?? query.profile!)
    return { subject, tenantId, scope, unapplied }
  }

  async function isAnythingHeld(tenantId: number, scope: PersonScope): Promise<boolean> {
    if (scope.names.length === 0) return false
    const { erased, mentions } = await countErasable(storage, tenantId, scope)
    return Object.values({ ...erased, mentions: mentions.events }).some(count => count > 0)
  }

  /** Stores the order to erase. From here on it is completed, even if this process ends. */
  async function begin(query: ErasureQuery): Promise<StoredErasure> {
    const { subject, tenantId, scope, unapplied } = await find(query)
    const { names } = scope
    if (names.length > MAX_NAMES_UNCONFIRMED && !query.confirm)
      throw new AdminError(
        'conflict',
        'confirmation_required',
        `This person has ${names.length} identifiers. The erasure would delete ${formatCounts((await countErasable(storage, tenantId, scope)).erased)}. Review the identifiers, then confirm with --yes (in the API: confirm: true).`,
      )
    const requestedAt = await databaseNow(pool)
    const hash = hashSubject(tenantId, subject)
    const erasure: StoredErasure = {
      id: newEntryId(requestedAt.getTime()),
      ...{
        tenantId,
        requestedAt,
        status: 'erasing',
        subject: serializeSubject(subject, {
          ...{ waitMs, suppress: query.suppress === true, confirmProfile: query.confirm_profile === true },
        }),
      },
      receipt: '',
    }
    const found = (await findNamesakes(pool, tenantId, names)).map(({ value: _, ...other }) => other)
    erasure.receipt = JSON.stringify(newReceipt(erasure, hash.toString('hex'), { scope, unapplied, found }))
    await inTransaction(pool, async client => {
      await insertErasure(client, { ...erasure, subjectHash: hash })
      // The hash does not reveal the person, but a caller who knows the person can find the row.
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
    /** Counts what an erasure would delete and lists the identifiers. Changes nothing. */
    async preview(query: ErasureQuery): Promise<ErasurePreview> {
      const { tenantId, scope, unapplied } = await find(query)
      const { names } = scope
      const { erased, mentions } = await countErasable(storage, tenantId, scope)
      return {
        dry_run: true,
        tenant: publicTenantId(tenantId),
        profile_id: publicProfileId(scope.profile),
        ...coverage(scope),
        not_covered: listUncovered(scope),
        names: names.map(({ kind, value, isVerified }) => ({ kind, value, verified: isVerified })),
        would_erase: erased,
        not_joined: await findNamesakes(pool, tenantId, names),
        mentions,
        not_yet_processed: unapplied,
        needs_confirmation: names.length > MAX_NAMES_UNCONFIRMED,
      }
    },
    async show(id: string): Promise<ErasureReceipt> {
      const erasure = isUuid(id) ? await findErasure(pool, id) : null
      if (!erasure || !canSee(actor, erasure.tenantId))
        throw new AdminError('not_found', 'erasure_not_found', `No such erasure: ${quote(id)}.`)
      return toReceipt(erasure)
    },
    /** Newest first. */
    async list({ tenant, ...page }: ErasurePage): Promise<ErasureReceipt[]> {
      const { id } = await requireTenant(pool, actor, tenant)
      return (await listErasures(pool, id, page)).map(toReceipt)
    },
  }
}

type ErasurePage = { tenant: string; limit: number; before?: { at: Date; id: string } | undefined }

function toReceipt({ status, receipt }: StoredErasure): ErasureReceipt {
  return { ...JSON.parse(receipt), status: status === 'completed' ? 'completed' : 'running' }
}

function newReceipt(
  { id, tenantId, requestedAt }: StoredErasure,
  subjectHash: string,
  { scope, unapplied, found }: { scope: PersonScope; unapplied: number; found: ErasureReceipt['not_joined'] },
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
    ...coverage(scope),
    not_covered: listUncovered(scope).map(({ kind }) => ({ kind })),
    not_joined: found,
    mentions: NO_MENTIONS,
    not_yet_processed: unapplied,
    notes: NOTES,
  }
}

function coverage({ profile, others }: PersonScope): Pick<ErasureReceipt, 'covers' | 'linked_profile_id'> {
  return others.length === 0
    ? { covers: 'profile', linked_profile_id: null }
    : { covers: 'identifier', linked_profile_id: publicProfileId(profile) }
}

function parseSubject({ email, profile }: ErasureQuery): Subject {
  if ((email === undefined) === (profile === undefined)) {
    throw new AdminError('invalid', 'invalid_request', 'Exactly one of `email` and `profile` is required.')
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

/** Counts what an erasure of these identifiers would delete, in the same way as its receipt. Changes nothing. */
async function countErasable(
  { pool, log }: { pool: pg.Pool; log: Pick<Log, 'findRead' | 'forget'> },
  tenantId: number,
  { names, others }: PersonScope,
): Promise<Pick<ErasureReceipt, 'erased' | 'mentions'>> {
  const nodes = nodeIds(names)
  const named = await findRecordsNaming({ pool, tenantId }, names)
  const contactIds = [...new Set([...valuesOfKind(names, 'contact'), ...named.contacts])]
  const { events, mentions } = await findEventsAbout({ pool, tenantId }, names, { others })
  const kept = { archived: 0, log_entries: 0 }
  for (const some of portions(events)) kept.archived += await countArchived(pool, tenantId, some)
  const sales = await findSalesAbout({ pool, tenantId }, { nodes, contactIds, orderIds: named.orders })
  const orderIds = sales.flatMap(({ orderId }) => orderId ?? [])
  const entries = await findReadEntries({ log, tenantId }, names, { contactIds, orderIds })
  // An entry may be found in both ways, or contain events of several batches, and counts once.
  const logged = new Map([...entries, ...toEntryNames(events)].map(entry => [entry.id, entry]))
  for (const some of portions([...logged.values()]))
    kept.log_entries += await log.forget(pool, tenantId, some, { dryRun: true })
  const items = { dead_letters: 0, parked_entries: 0, overflow: 0 }
  for (const table of ['dead_letters', 'parked_entries', 'overflow'] as const)
    for (const { items: found } of await findEntriesAbout({ pool, tenantId }, table, names))
      items[table] += found.about.length
  const erased = {
    events: events.length,
    conversions: sales.filter(({ isNamed }) => !isNamed).length,
    orders: sales.filter(({ orderId }) => orderId !== null).length,
    contacts: await countContacts(pool, tenantId, contactIds),
    identities: nodes.length,
    touches: await countTouches(pool, tenantId, nodes),
    ...kept,
    dead_letters: items.dead_letters,
    waiting: items.parked_entries + items.overflow,
    billing: await countBilling(pool, tenantId, {
      customers: contactIds,
      emails: searchableEmails(names),
    }),
  }
  return { erased, mentions }
}

// The preview lists at most this many.
const MAX_NAMESAKES = 20

/** Finds other people with an id or e-mail address of the person, and counts the events that they would keep. */
async function findNamesakes(
  pool: pg.Pool,
  tenantId: number,
  names: ScopedIdentifier[],
): Promise<ErasurePreview['not_joined']> {
  const own = new Set(nodeIds(names))
  const values = names.filter(({ kind }) => kind !== 'visitor').map(({ value }) => value)
  const wanted = values.flatMap(value => IDENTIFIER_KINDS.map(kind => ({ kind, value })))
  const found = await findIdentifiers(pool, tenantId, {
    kinds: wanted.map(({ kind }) => kind),
    values: wanted.map(({ value }) => value),
  })
  const others = new Map(found.filter(({ node }) => !own.has(node)).map(name => [name.profile, name] as const))
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

const MOST = 1_000

export function suppressionAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    /** Newest first, at most 1,000. */
    async list(tenant: string): Promise<SuppressionList> {
      const { id } = await requireTenant(pool, actor, tenant)
      const [people, count] = await Promise.all([listSuppressed(pool, id, MOST), loadSuppressionCount(pool, id)])
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
    /** Selects by erasure id, e-mail address or hash of an identifier. All identifiers of that person are removed. */
    async remove({ tenant, id: who }: { tenant: string; id: string }): Promise<RemovedSuppression> {
      const { id: tenantId } = await requireTenant(pool, actor, tenant)
      const email = parseEmail(who)
      const hash = /^[\da-f]{64}$/i.test(who)
        ? Buffer.from(who, 'hex')
        : email && hashIdentifier(tenantId, { kind: 'email', value: email })
      return inTransaction(pool, async client => {
        const key = { erasureId: isUuid(who) ? who : null, hash: hash || null }
        // A worker that is adding an identifier of the person commits before this, so that it is removed with the others.
        await lockPeople(client, tenantId)
        const removed = await deleteSuppressed(client, tenantId, key)
        if (removed === null)
          throw new AdminError(
            'not_found',
            'suppression_not_found',
            'No matching suppression. Use an id that `kontor suppress list` shows, or the e-mail address of the person.',
          )
        const after = { names: removed.names }
        const change = { action: 'suppression.remove', target: removed.erasureId, tenantId, after }
        await recordChange(client, actor, change)
        return { id: removed.erasureId, tenant: publicTenantId(tenantId), names: removed.names }
      })
    },
  }
}

/** An erased person whose data is not recorded again. */
const SuppressionView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the erasure' }),
    tenant: Type.String(),
    suppressed_at: Timestamp,
    names: Type.Array(
      Type.Object({
        kind: Type.Enum([...IDENTIFIER_KINDS]),
        hash: Type.String(),
        unverified_only: Type.Boolean({
          description:
            'true: only unverified input (a public tracking key) links the identifier to the person. Kontor then suppresses only unverified input with the identifier, and records verified input',
        }),
      }),
      { description: 'SHA-256 of "<tenant id> <kind> <value>", in hex. No identifier is stored' },
    ),
  },
  { title: 'Suppression', description: 'An erased person whose data is not recorded again' },
)

export const SuppressionList = Type.Object(
  {
    results: Type.Array(SuppressionView),
    next_cursor: Type.Null(),
    not_recorded: Type.Object(
      { events: Count, records: Count, last_at: NullableTimestamp },
      { description: 'Items of suppressed people that were not recorded, since the first suppression' },
    ),
  },
  { title: 'SuppressionList', description: 'Suppressed people, and the number of items that were not recorded' },
)
export type SuppressionList = Static<typeof SuppressionList>

export const RemovedSuppression = Type.Object(
  { id: Uuid, tenant: Type.String(), names: Count },
  { title: 'RemovedSuppression', description: 'A suppression that was removed' },
)
export type RemovedSuppression = Static<typeof RemovedSuppression>

/** What an erasure would delete. */
export const ErasurePreview = Type.Object(
  {
    dry_run: Type.Literal(true),
    tenant: Type.String(),
    profile_id: NullableText,
    covers: Covers,
    linked_profile_id: LinkedProfile,
    not_covered: Type.Array(Type.Object({ kind: Type.Enum([...IDENTIFIER_KINDS]), value: Type.String() }), NOT_COVERED),
    names: Type.Array(
      Type.Object({ kind: Type.Enum([...IDENTIFIER_KINDS]), value: Type.String(), verified: Type.Boolean() }),
      { description: 'The identifiers to erase, and whether verified input links them to the person' },
    ),
    would_erase: Erased,
    not_joined: Type.Array(
      Type.Object({
        profile_id: Type.String(),
        kind: Type.Enum([...IDENTIFIER_KINDS]),
        value: Type.String(),
        remaining_events: Type.Integer({
          minimum: 0,
          description: 'Events that this erasure would not delete',
        }),
      }),
      {
        description:
          'Other people with an id or e-mail address of this person as another kind of identifier. They are not erased. If one of them is the same person, merge them first. At most 20',
      },
    ),
    mentions: Mentioned,
    not_yet_processed: Count,
    needs_confirmation: Type.Boolean({
      description: 'The person has more than 20 identifiers: send confirm: true',
    }),
  },
  { title: 'ErasurePreview', description: 'What an erasure would delete' },
)
export type ErasurePreview = Static<typeof ErasurePreview>
