import type pg from 'pg'
import { contactFacts } from '../domain/conversions/conversions.ts'
import {
  IDENTIFIER_KINDS,
  type Identifier,
  type IdentifierKind,
  parseEmail,
  publicProfileId,
} from '../domain/identity/identifiers.ts'
import { verifiedCore } from '../domain/identity/linking.ts'
import { storableText } from '../domain/json/json.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS } from '../domain/time.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { notifySaleChanges, openAudience, startSaleChanges } from '../pipeline/deliveries/notify.ts'
import { lockProfiles, mergePeople, splitPerson, verifyIdentifier } from '../pipeline/identity/merge-split.ts'
import type { Transaction } from '../pipeline/unit.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { findEvents } from '../store/events/events.ts'
import { findProfiles, loadProfileGraph } from '../store/identity/identities.ts'
import {
  type Claim,
  countProfileData,
  type FoundIdentifier,
  findCurrentProfile,
  findIdentifiers,
  listClaims,
  listIdentifiers,
  listMergedProfiles,
  listNodes,
  type ProfileIdentifier,
  readBilling,
  readListedConversions,
  readNewestEvents,
  readOwnConversions,
  readRecords,
  readTouches,
} from '../store/identity/people.ts'
import { findRecord } from '../store/records/records.ts'
import { configVersion } from '../store/tenants/config-version.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError } from './error.ts'
import {
  findEventsAbout,
  findRecordsNaming,
  findUnlinkedEventsAbout,
  nodeIds,
  searchableEmails,
  valuesOfKind,
} from './person-data.ts'
import { findScope, listUncovered, type PersonScope, withSameAddress } from './person-scope.ts'

type PersonKey = { tenant: string; id: string }
type ExportQuery = PersonKey & {
  format: ExportFormat
  /** Exports the whole profile, also if only unverified input links the identifier to it. */
  confirm_profile?: boolean | undefined
}

/** Shows the identifiers of people and why they are linked; merges, splits and exports people. */
export function peopleAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async show({ tenant, id }: PersonKey): Promise<PersonView> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const { profile } = await findPerson(pool, tenantId, id)
      return personView(pool, tenantId, profile)
    },
    /** Merges two people; `into` keeps its profile id. */
    async merge({ tenant, id, into }: PersonKey & { into: string }): Promise<PersonView> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const profile = await changeIdentities(pool, tenantId, async transaction => {
        const { client } = transaction
        const people = {
          from: await findPerson(client, tenantId, id),
          into: await findPerson(client, tenantId, into),
        }
        if (people.from.profile === people.into.profile)
          throw new AdminError(
            'conflict',
            'same_person',
            `Both are already the same person: ${publicProfileId(people.into.profile)}.`,
          )
        await mergePeople(transaction, tenantId, { from: people.from.profile, into: people.into.profile })
        const [from, target] = [people.from, people.into].map(({ profile }) => publicProfileId(profile)!)
        await recordChange(client, actor, {
          action: 'person.merge',
          target: target!,
          tenantId,
          after: { from },
        })
        return people.into.profile
      })
      return personView(pool, tenantId, profile)
    },
    /** Undoes the link between an identifier and the rest of the person. */
    async split({ tenant, id, name }: PersonKey & { name: string }): Promise<SplitPeople> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const sides = await changeIdentities(pool, tenantId, async transaction => {
        const { client } = transaction
        const person = await findPerson(client, tenantId, id)
        const node = await findNode(client, tenantId, { profile: person.profile, name })
        const from = person.node === node ? await anotherNode(client, tenantId, person) : person.node
        const sides =
          from === null ? null : await splitPerson(transaction, tenantId, { profile: person.profile, name: node, from })
        if (sides === null)
          throw new AdminError('conflict', 'not_joined', `No link is recorded between ${quote(name)} and ${quote(id)}.`)
        // The identifier is personal data and is not recorded; the profile ids are enough to find it.
        const [target, split_off] = [sides.kept, sides.splitOff].map(publicProfileId)
        const change = { action: 'person.split', target: target!, tenantId, after: { split_off } }
        await recordChange(client, actor, change)
        return sides
      })
      return {
        person: await personView(pool, tenantId, sides.kept),
        split_off: await personView(pool, tenantId, sides.splitOff),
      }
    },
    /** Confirms that an identifier belongs to the person. */
    async verify({ tenant, id, name }: PersonKey & { name: string }): Promise<PersonView> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const profile = await changeIdentities(pool, tenantId, async transaction => {
        const { client } = transaction
        const { profile } = await findPerson(client, tenantId, id)
        const node = await findNode(client, tenantId, { profile, name })
        await verifyIdentifier(transaction, tenantId, { profile, node })
        // The identifier is personal data and is not recorded.
        await recordChange(client, actor, { action: 'person.verify', target: publicProfileId(profile)!, tenantId })
        return (await findProfiles(client, [{ tenantId, node }]))[0]!.profile
      })
      return personView(pool, tenantId, profile)
    },
    /** Sales, records, billing and the newest events of a year, as JSON texts in the form of the export. */
    async timeline({ tenant, id }: PersonKey): Promise<string[]> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const { profile } = await findPerson(pool, tenantId, id)
      const nodes = await listNodes(pool, tenantId, profile)
      const names = await listIdentifiers(pool, tenantId, profile)
      const valuesOf = (kind: string) => names.filter(name => name.kind === kind).map(({ value }) => value)
      const customers = valuesOf('contact')
      const conversions = await readListedConversions(pool, tenantId, nodes)
      const orders = [...new Set(conversions.flatMap(({ orderId }) => orderId ?? []))]
      const since = new Date((await databaseNow(pool)).getTime() - TIMELINE_DAYS * DAY_MS)
      return [
        ...conversions.map(({ text }) => text),
        ...(await readRecords(pool, tenantId, 'contact', customers)),
        ...(await readRecords(pool, tenantId, 'order', orders)),
        ...(await readBilling(pool, tenantId, { nodes, customers, emails: valuesOf('email') })),
        ...(await readNewestEvents(pool, tenantId, { nodes, since, limit: MAX_TIMELINE_EVENTS })),
      ]
    },
    /** Streams all data of a person. */
    async export({ tenant, id, format, confirm_profile = false }: ExportQuery): Promise<AsyncGenerator<string>> {
      const tenantId = (await requireTenant(pool, actor, tenant)).id
      const found = await findPerson(pool, tenantId, id)
      const { profile } = found
      const scope = await findExportScope(pool, tenantId, found, confirm_profile)
      const person = await personView(pool, tenantId, profile)
      const change = { action: 'person.export', target: person.profile_id, tenantId, after: { format } }
      await recordChange(pool, actor, change)
      return formatExport(exportPerson(pool, tenantId, scope, person), format)
    },
  }
}

const TIMELINE_DAYS = 365
const MAX_TIMELINE_EVENTS = 500

/** Takes the profile lock: one change at a time, and no worker applies events of this tenant meanwhile. */
export function changeIdentities<T>(
  pool: pg.Pool,
  tenantId: number,
  change: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return withSaleChanges(pool, async transaction => {
    await lockProfiles(transaction, tenantId)
    return change(transaction)
  })
}

/** Notifies destinations of the sales that changed. */
export function withSaleChanges<T>(pool: pg.Pool, change: (transaction: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(pool, async client => {
    const transaction: Transaction = {
      client,
      now: await databaseNow(client),
      configVersion: await configVersion(client),
    }
    const audience = await openAudience()(transaction)
    startSaleChanges(transaction, audience)
    const result = await change(transaction)
    await notifySaleChanges(transaction, audience)
    return result
  })
}

/** Finds the node of an identifier of the person. */
async function findNode(
  db: Db,
  tenantId: number,
  { profile, name }: { profile: number; name: string },
): Promise<number> {
  const all = await findNames(db, tenantId, name)
  const own = all.filter(found => found.profile === profile)
  if (own.length > 1) throw ambiguousPerson(name, own)
  if (own.length === 1) return own[0]!.node
  if (all.length === 0) throw unknownPerson(name)
  throw new AdminError(
    'conflict',
    'not_joined',
    `${JSON.stringify(name)} is not an identifier of ${publicProfileId(profile)}.`,
  )
}

/** When a person is split from the identifier that selected them: the node of the identifier that was linked last. */
async function anotherNode(
  db: Db,
  tenantId: number,
  { profile, node }: { profile: number; node: number },
): Promise<number | null> {
  const names = await listIdentifiers(db, tenantId, profile)
  const own = names.find(name => name.node === node)!
  const isOther = ({ kind, value, cause }: ProfileIdentifier) =>
    (kind !== own.kind || value !== own.value) && cause !== null
  return names.findLast(isOther)?.node ?? null
}

async function personView(pool: pg.Pool, tenantId: number, profile: number): Promise<PersonView> {
  const names = await listIdentifiers(pool, tenantId, profile)
  const { nodes, links } = await loadProfileGraph(pool, tenantId, profile)
  const core = verifiedCore(nodes, links)
  const searched = names.map(name => ({ ...name, isUnverifiedLink: core.size > 0 && !core.has(name.node) }))
  return {
    profile_id: publicProfileId(profile)!,
    tenant: publicTenantId(tenantId),
    names: [...Map.groupBy(names, ({ kind, value }) => `${kind} ${value}`).values()].map(own =>
      identifierView(
        combineNodes(own),
        own.some(({ node }) => core.has(node)),
      ),
    ),
    claims: (await listClaims(pool, tenantId, profile)).map(claimView),
    contact: await findContact(pool, tenantId, names),
    merged_profiles: (await listMergedProfiles(pool, tenantId, profile)).map(id => publicProfileId(id)!),
    ...(await countProfileData(pool, tenantId, nodeIds(names))),
    events_of_others: (await findUnlinkedEventsAbout({ pool, tenantId }, searched)).length,
  }
}

/** A visitor id may have several nodes in a profile. */
function combineNodes(nodes: ProfileIdentifier[]): ProfileIdentifier {
  const earliest = nodes.toSorted((x, y) => x.firstSeenAt.getTime() - y.firstSeenAt.getTime())[0]!
  const linked = nodes
    .filter(({ linkedAt }) => linkedAt !== null)
    .toSorted((x, y) => x.linkedAt!.getTime() - y.linkedAt!.getTime())[0]
  const retiredAt = nodes.some(own => own.retiredAt === null)
    ? null
    : new Date(Math.max(...nodes.map(own => own.retiredAt!.getTime())))
  const { linkedAt, cause } = linked ?? earliest
  return { ...earliest, linkedAt, cause, retiredAt }
}

function claimView({ own, other, cause, linkedAt }: Claim) {
  return {
    name: own,
    other: { kind: other.kind, value: other.value, profile_id: publicProfileId(other.profile)! },
    cause,
    at: linkedAt.toISOString(),
  }
}

function identifierView(
  { kind, value, firstSeenAt, retiredAt, linkedAt, cause }: ProfileIdentifier,
  isVerified: boolean,
) {
  return {
    kind,
    value,
    verified: isVerified,
    first_seen_at: firstSeenAt.toISOString(),
    moved_on_at: retiredAt?.toISOString() ?? null,
    joined_at: linkedAt?.toISOString() ?? null,
    cause,
  }
}

async function findContact(db: Db, tenantId: number, names: ProfileIdentifier[]): Promise<PersonView['contact']> {
  for (const { kind, value, retiredAt } of names) {
    if (kind !== 'contact' || retiredAt !== null) continue
    const record = await findRecord(db, tenantId, 'contact', value)
    if (record?.data) return { id: value, ...contactFacts(JSON.parse(record.data)) }
  }
  return null
}

/**
 * A person, and the identifier that selected them with its node. For a profile id, `identifier` is null and `node` is its
 * first one.
 */
type FoundPerson = { profile: number; node: number; identifier: Identifier | null }

const KINDS: readonly IdentifierKind[] = ['user', 'contact', 'visitor', 'email']

export function parseProfileId(text: string): number | null {
  const digits = /^prof_([1-9]\d{0,15})$/.exec(text)?.[1]
  return digits === undefined ? null : Number(digits)
}

/**
 * Finds a person by profile id, e-mail address, user id, contact id or visitor id. A prefix (`user:…`, `contact:…`,
 * `visitor:…`, `email:…`) selects the kind. Throws if no person matches, or several do.
 */
async function findPerson(db: Db, tenantId: number, id: string): Promise<FoundPerson> {
  const number = parseProfileId(id.trim())
  if (number !== null) {
    const profile = await findCurrentProfile(db, tenantId, number)
    if (profile === null) throw unknownPerson(id)
    const nodes = await listNodes(db, tenantId, profile)
    return { profile, node: nodes.includes(profile) ? profile : nodes[0]!, identifier: null }
  }
  const all = await findNames(db, tenantId, id)
  if (all.length === 0) throw unknownPerson(id)
  // Anyone can use a customer's address as a visitor id or user id. The address itself is meant.
  const addresses = all.filter(({ kind }) => kind === 'email')
  const found = addresses.length > 0 ? addresses : all
  if (new Set(found.map(({ profile }) => profile)).size > 1) throw ambiguousPerson(id, found)
  const { profile, node, kind, value } = found[0]!
  return { profile, node, identifier: { kind, value } }
}

/** What an export covers. From an e-mail address, this is the same data as in an erasure (`findScopeOfAddress`). */
async function findExportScope(
  db: Db,
  tenantId: number,
  { profile, node, identifier }: FoundPerson,
  confirmProfile: boolean,
): Promise<PersonScope> {
  const start = { profile, node: identifier && node }
  const scope = await findScope(db, tenantId, start, { isExport: true, confirmProfile })
  const email = identifier === null || identifier.kind === 'visitor' ? null : parseEmail(identifier.value)
  if (email === null) return scope
  if (identifier!.kind === 'email') return withSameAddress(db, tenantId, scope, { email, node })
  // The address is only a user id or contact id. Events without a person may contain it.
  const addresses = await findIdentifiers(db, tenantId, { kinds: ['email'], values: [email] })
  if (addresses.length > 0) return scope
  const name = { node: null, kind: 'email', value: email, isVerified: false, isUnverifiedLink: false } as const
  return { ...scope, names: [...scope.names, name] }
}

/** Finds all people with this identifier, of the given kind if it has a prefix. */
async function findNames(db: Db, tenantId: number, text: string): Promise<FoundIdentifier[]> {
  const wanted = parseIdentifiers(storableText(text))
  return findIdentifiers(db, tenantId, {
    kinds: wanted.map(({ kind }) => kind),
    values: wanted.map(({ value }) => value),
  })
}

function parseIdentifiers(text: string): Identifier[] {
  const [, kind, value] = /^(user|contact|visitor|email):(.+)$/s.exec(text) ?? []
  const names = KINDS.map(kind => ({ kind, value: normalizeValue(kind, text) }))
  return kind === undefined
    ? names
    : [...names, { kind: kind as IdentifierKind, value: normalizeValue(kind as IdentifierKind, value!) }]
}

function normalizeValue(kind: IdentifierKind, text: string): string {
  return (kind === 'email' ? parseEmail(text) : null) ?? text.trim()
}

export function unknownPerson(id: string): AdminError {
  return new AdminError('not_found', 'person_not_found', `No matching person: ${quote(id)}.`)
}

function ambiguousPerson(id: string, found: FoundIdentifier[]): AdminError {
  const choices = found.map(({ kind, value, profile }) => ({
    name: `${kind}:${value}`,
    profile_id: publicProfileId(profile)!,
  }))
  const names = choices.map(({ name, profile_id }) => `${name} (${profile_id})`)
  const detail = `${JSON.stringify(id)} matches several people: ${names.join(', ')}. Add the kind, for example ${choices[0]!.name}.`
  return new AdminError('conflict', 'person_ambiguous', detail, [], choices)
}

const AT_A_TIME = 1_000

/** One object per line, or an array of objects. */
type ExportFormat = 'ndjson' | 'json'

async function* formatExport(texts: AsyncGenerator<string>, format: ExportFormat): AsyncGenerator<string> {
  let before = '['
  for await (const text of texts) {
    yield format === 'json' ? before + text : `${text}\n`
    before = ',\n'
  }
  if (format === 'json') yield ']\n'
}

/** All data of a person, for a data subject request: one JSON object per item, with its `type`. */
async function* exportPerson(
  pool: pg.Pool,
  tenantId: number,
  { names, others }: PersonScope,
  person: PersonView,
): AsyncGenerator<string> {
  const nodes = nodeIds(names)
  const named = await findRecordsNaming({ pool, tenantId }, names)
  const contactIds = [...new Set([...valuesOfKind(names, 'contact'), ...named.contacts])]
  if (others.length === 0) yield JSON.stringify({ type: 'person', ...person })
  else yield JSON.stringify({ type: 'identifier', ...partialView(person, { names, others }) })
  yield* await readTouches(pool, tenantId, nodes)
  yield* await readRecords(pool, tenantId, 'contact', contactIds)
  const conversions = await readOwnConversions(pool, tenantId, nodes, contactIds)
  for (const { text } of conversions) yield text
  const orderIds = new Set([...conversions.flatMap(({ orderId }) => orderId ?? []), ...named.orders])
  yield* await readRecords(pool, tenantId, 'order', [...orderIds])
  yield* await readBilling(pool, tenantId, {
    nodes,
    customers: contactIds,
    emails: searchableEmails(names),
  })
  const { events } = await findEventsAbout({ pool, tenantId }, names, { others })
  const ids = events.map(({ id }) => id).sort()
  for (let from = 0; from < ids.length; from += AT_A_TIME)
    yield* (await findEvents(pool, tenantId, ids.slice(from, from + AT_A_TIME))).map(eventText)
}

/** Names the profile of the identifiers that are not covered and their kinds, and nothing else of them. */
function partialView(person: PersonView, { names, others }: Pick<PersonScope, 'names' | 'others'>) {
  const own = new Set(names.map(({ kind, value }) => `${kind} ${value}`))
  return {
    covers: 'identifier',
    linked_profile_id: person.profile_id,
    tenant: person.tenant,
    names: person.names.filter(({ kind, value }) => own.has(`${kind} ${value}`)),
    not_covered: listUncovered({ others }).map(({ kind }) => ({ kind })),
    note: 'Only unverified input links the identifiers in not_covered with those in names. Their data is not exported.',
  }
}

/** Payload and meta are written as stored: parsing them would lose exact digits. */
function eventText(event: Awaited<ReturnType<typeof findEvents>>[number]): string {
  const facts = JSON.stringify({
    type: 'event',
    id: event.id,
    event_type: event.eventType,
    occurred_at: event.occurredAt,
    received_at: event.receivedAt,
    source: event.source,
    source_config_id: event.sourceConfigId,
    visitor: event.visitor,
    session_id: event.sessionId,
  })
  return `${facts.slice(0, -1)},"payload":${event.payload},"headers":${event.headers ?? '{}'},"meta":${event.meta ?? '{}'}}`
}

const LinkCause = Type.Object(
  { kind: Type.Enum(['event', 'record', 'sale', 'command']), id: Type.String() },
  {
    title: 'LinkCause',
    description: 'What linked the identifier: an event, a record (contact/…, order/…), a sale or a command',
  },
)
const NamedIdentifier = Type.Object(
  { kind: Type.Enum([...IDENTIFIER_KINDS]), value: Type.String() },
  { title: 'Identifier', description: 'An identifier of a person' },
)

/** A person with all identifiers. */
export const PersonView = Type.Object(
  {
    profile_id: Type.String(),
    tenant: Type.String(),
    names: Type.Array(
      Type.Object({
        kind: Type.Enum([...IDENTIFIER_KINDS]),
        value: Type.String(),
        verified: Type.Boolean({
          description:
            'Whether a record, a source or a server key reported its link to the person, or a user created the link (merge, verify)',
        }),
        first_seen_at: Timestamp,
        /** Set if the identifier now belongs to another person. Earlier events with it remain here. */
        moved_on_at: NullableTimestamp,
        /** null: it is linked to no other identifier */
        joined_at: NullableTimestamp,
        cause: Nullable(LinkCause),
      }),
      { description: 'The identifiers of the person' },
    ),
    claims: Type.Array(
      Type.Object({
        name: NamedIdentifier,
        other: Type.Object(
          { ...NamedIdentifier.properties, profile_id: Type.String() },
          { description: 'The identifier of the other person' },
        ),
        cause: LinkCause,
        at: Timestamp,
      }),
      {
        description:
          'Identifiers of other people that were sent together with an identifier of this person, but are not linked. At most 100',
      },
    ),
    contact: Nullable(
      Type.Object(
        { id: Type.String(), name: NullableText, email: NullableText, company: NullableText },
        { description: 'The contact of the person' },
      ),
    ),
    merged_profiles: Type.Array(Type.String(), { description: 'Profiles merged into this one' }),
    events: Type.Integer({ minimum: 0, description: 'Events with one of the identifiers' }),
    events_of_others: Type.Integer({
      minimum: 0,
      description:
        'Events of other people that mention this person and are not linked. Exports and erasures include them',
    }),
    conversions: Type.Integer({
      minimum: 0,
      description: 'Conversions with this profile_id, as in GET /v1/conversions',
    }),
  },
  {
    title: 'Person',
    description: 'A person with all identifiers',
    examples: [
      {
        profile_id: 'prof_17',
        tenant: 'ten_1',
        names: [
          {
            ...{
              kind: 'user',
              value: 'ada',
              verified: true,
              first_seen_at: '2026-01-31T09:30:00.000Z',
              moved_on_at: null,
            },
            ...{ joined_at: null, cause: null },
          },
        ],
        claims: [],
        contact: null,
        merged_profiles: [],
        events: 12,
        events_of_others: 0,
        conversions: 1,
      },
    ],
  },
)
export type PersonView = Static<typeof PersonView>

export const SplitPeople = Type.Object(
  { person: PersonView, split_off: PersonView },
  { title: 'SplitPeople', description: 'Both people after a split' },
)
export type SplitPeople = Static<typeof SplitPeople>
