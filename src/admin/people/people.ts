import type pg from 'pg'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { publicProfileId } from '../../domain/identity/identity.ts'
import { MAX_NAMES } from '../../domain/identity/joining.ts'
import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { openAudience } from '../../pipeline/deliveries/audience.ts'
import { openSaleChanges } from '../../pipeline/deliveries/sales.ts'
import { lockWhoIsWho, mergePeople, splitPerson } from '../../pipeline/identity/people-changes.ts'
import type { Transaction } from '../../pipeline/unit.ts'
import { databaseNow } from '../../postgres/clock.ts'
import { type Db, inTransaction } from '../../postgres/database.ts'
import {
  countOfPerson,
  mergedProfiles,
  namesOfProfile,
  type PersonName,
} from '../../store/identity/people.ts'
import { findRecord } from '../../store/records/records.ts'
import { configVersion } from '../../store/tenants/config-version.ts'
import type { Actor } from '../actor.ts'
import { recordChange } from '../audit.ts'
import { nodesOf, unjoinedEventsAbout, valuesOf } from '../erasures/steps.ts'
import { AdminError } from '../error.ts'
import { tenantNamed } from '../tenants.ts'
import type { PersonView, SplitPeople } from '../views/people.ts'
import { type ExportFormat, exportPerson, formatted } from './export.ts'
import { ambiguous, findNames, findPerson, unknownPerson } from './names.ts'

type PersonKey = { tenant: string; id: string }

export type PeopleAdmin = ReturnType<typeof peopleAdmin>

/** Who people are: what they are known by and why, and the means to correct it. */
export function peopleAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async show({ tenant, id }: PersonKey): Promise<PersonView> {
      const tenantId = (await tenantNamed(pool, actor, tenant)).id
      const { profile } = await findPerson(pool, tenantId, id)
      return personView(pool, tenantId, profile)
    },
    /** Makes two people one; `into` keeps its profile id. */
    async merge({ tenant, id, into }: PersonKey & { into: string }): Promise<PersonView> {
      const tenantId = (await tenantNamed(pool, actor, tenant)).id
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
            `They are one person already: ${publicProfileId(people.into.profile)}.`,
          )
        if (!(await mergePeople(transaction, tenantId, people)))
          throw new AdminError(
            'conflict',
            'too_many_names',
            `Together they would have more than ${MAX_NAMES} names, which is more than one person has.`,
          )
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
    /** Undoes the join that brought a name of a person together with the rest of them. */
    async split({ tenant, id, name }: PersonKey & { name: string }): Promise<SplitPeople> {
      const tenantId = (await tenantNamed(pool, actor, tenant)).id
      const sides = await changeIdentities(pool, tenantId, async transaction => {
        const { client } = transaction
        const person = await findPerson(client, tenantId, id)
        const node = await nodeOfName(client, tenantId, { profile: person.profile, name })
        const from = person.node === node ? await anotherNode(client, tenantId, person) : person.node
        const sides =
          from === null
            ? null
            : await splitPerson(transaction, tenantId, { profile: person.profile, name: node, from })
        if (sides === null)
          throw new AdminError(
            'conflict',
            'not_joined',
            `No join is known that brought ${JSON.stringify(name)} together with ${JSON.stringify(id)}.`,
          )
        // The name itself is the person's; the profiles are enough to find it again.
        const [target, split_off] = [sides.kept, sides.parted].map(publicProfileId)
        const change = { action: 'person.split', target: target!, tenantId, after: { split_off } }
        await recordChange(client, actor, change)
        return sides
      })
      return {
        person: await personView(pool, tenantId, sides.kept),
        split_off: await personView(pool, tenantId, sides.parted),
      }
    },
    /** Everything that is held of a person, as text that comes in parts. */
    async export({
      tenant,
      id,
      format,
    }: PersonKey & { format: ExportFormat }): Promise<AsyncGenerator<string>> {
      const tenantId = (await tenantNamed(pool, actor, tenant)).id
      const { profile } = await findPerson(pool, tenantId, id)
      const person = await personView(pool, tenantId, profile)
      const change = { action: 'person.export', target: person.profile_id, tenantId, after: { format } }
      await recordChange(pool, actor, change)
      return formatted(exportPerson(pool, tenantId, profile, person), format)
    },
  }
}

/** One change at a time, and no worker in the middle of this tenant's events. */
export function changeIdentities<T>(
  pool: pg.Pool,
  tenantId: number,
  change: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return tellingSales(pool, async transaction => {
    await lockWhoIsWho(transaction, tenantId)
    return change(transaction)
  })
}

/** Destinations are told which sales are others afterwards. */
export function tellingSales<T>(pool: pg.Pool, change: (transaction: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(pool, async client => {
    const transaction: Transaction = {
      client,
      now: await databaseNow(client),
      configVersion: await configVersion(client),
      // nothing is remembered beyond it
      afterCommit: () => {},
    }
    const changes = openSaleChanges(openAudience())
    changes.begin(transaction)
    const result = await change(transaction)
    await changes.end(transaction)
    return result
  })
}

/** The node of one of the person's names. */
async function nodeOfName(
  db: Db,
  tenantId: number,
  { profile, name }: { profile: number; name: string },
): Promise<number> {
  const all = await findNames(db, tenantId, name)
  const own = all.filter(found => found.profile === profile)
  if (own.length > 1) throw ambiguous(name, own)
  if (own.length === 1) return own[0]!.node
  if (all.length === 0) throw unknownPerson(name)
  throw new AdminError(
    'conflict',
    'not_joined',
    `${JSON.stringify(name)} is no name of ${publicProfileId(profile)}.`,
  )
}

/** Of whoever is to be parted from themselves: the name that came to it last. */
async function anotherNode(
  db: Db,
  tenantId: number,
  { profile, node }: { profile: number; node: number },
): Promise<number | null> {
  const names = await namesOfProfile(db, tenantId, profile)
  return names.findLast(name => name.node !== node && name.cause !== null)?.node ?? null
}

async function personView(pool: pg.Pool, tenantId: number, profile: number): Promise<PersonView> {
  const names = await namesOfProfile(pool, tenantId, profile)
  return {
    profile_id: publicProfileId(profile)!,
    tenant: publicTenantId(tenantId),
    names: names.map(nameView),
    contact: await contactOf(pool, tenantId, names),
    merged_profiles: (await mergedProfiles(pool, tenantId, profile)).map(id => publicProfileId(id)!),
    ...(await countOfPerson(pool, tenantId, nodesOf(names), valuesOf(names, 'contact'))),
    events_of_others: (await unjoinedEventsAbout({ pool, tenantId }, names)).length,
  }
}

function nameView({ kind, value, firstSeenAt, retiredAt, joinedAt, cause }: PersonName) {
  return {
    kind,
    value,
    first_seen_at: firstSeenAt.toISOString(),
    moved_on_at: retiredAt?.toISOString() ?? null,
    joined_at: joinedAt?.toISOString() ?? null,
    cause,
  }
}

async function contactOf(db: Db, tenantId: number, names: PersonName[]): Promise<PersonView['contact']> {
  for (const { kind, value, retiredAt } of names) {
    if (kind !== 'contact' || retiredAt !== null) continue
    const record = await findRecord(db, tenantId, 'contact', value)
    if (record?.data) return { id: value, ...contactFacts(JSON.parse(record.data)) }
  }
  return null
}
