import type pg from 'pg'
import { IDENTITY_KINDS, publicProfileId } from '../../domain/identity/identity.ts'
import type { Log } from '../../log/log.ts'
import { billingOf } from '../../pipeline/billing/erasure.ts'
import { namesLike, nodesOfProfile } from '../../store/identity/people.ts'
import {
  countArchivedOf,
  countContacts,
  countTouches,
  findEventsOf,
  type KnownName,
} from '../../store/identity/traces.ts'
import type { ErasurePreview, ErasureReceipt } from '../views/erasures.ts'
import { recordsNaming } from './search.ts'
import {
  entriesAbout,
  entriesOf,
  eventsOf,
  nodesOf,
  portions,
  salesOf,
  unjoinedEventsAbout,
  valuesOf,
} from './steps.ts'

/** What an erasure of these names would take, counted as its receipt counts. Touches nothing. */
export async function countErasable(
  { pool, log }: { pool: pg.Pool; log: Pick<Log, 'countRead'> },
  tenantId: number,
  names: KnownName[],
): Promise<ErasureReceipt['erased']> {
  const nodes = nodesOf(names)
  const named = await recordsNaming({ pool, tenantId }, names)
  const contactIds = [...new Set([...valuesOf(names, 'contact'), ...named.contacts])]
  const events = await eventsOf({ pool, tenantId }, names, null)
  const kept = { archived: 0, log_entries: 0 }
  for (const some of portions(events)) kept.archived += await countArchivedOf(pool, tenantId, some)
  // A request may have brought events of several portions: it goes once.
  for (const some of portions(entriesOf(events))) kept.log_entries += await log.countRead(tenantId, some)
  const sales = await salesOf({ pool, tenantId }, { nodes, contactIds, orderIds: named.orders })
  const items = { dead_letters: 0, parked_entries: 0, overflow: 0 }
  for (const table of ['dead_letters', 'parked_entries', 'overflow'] as const)
    for (const { items: found } of await entriesAbout({ pool, tenantId }, table, names))
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
      emails: valuesOf(names, 'email'),
    }),
  }
}

// More than so many by one id are no person to look through.
const MAX_NAMESAKES = 20

/** Who else goes by an id or e-mail of the person, and what would be left of them. */
export async function namesakesOf(
  pool: pg.Pool,
  tenantId: number,
  names: KnownName[],
): Promise<ErasurePreview['not_joined']> {
  const own = new Set(nodesOf(names))
  const values = names.filter(({ kind }) => kind !== 'visitor').map(({ value }) => value)
  const wanted = values.flatMap(value => IDENTITY_KINDS.map(kind => ({ kind, value })))
  const found = await namesLike(pool, tenantId, {
    kinds: wanted.map(({ kind }) => kind),
    values: wanted.map(({ value }) => value),
  })
  const others = new Map(
    found.filter(({ node }) => !own.has(node)).map(name => [name.profile, name] as const),
  )
  if (others.size === 0) return []
  const taken = new Set((await unjoinedEventsAbout({ pool, tenantId }, names)).map(({ id }) => id))
  const namesakes: ErasurePreview['not_joined'] = []
  for (const { profile, kind, value } of [...others.values()].slice(0, MAX_NAMESAKES)) {
    const events = await findEventsOf(pool, tenantId, await nodesOfProfile(pool, tenantId, profile), null)
    const remaining_events = events.filter(({ id }) => !taken.has(id)).length
    namesakes.push({ profile_id: publicProfileId(profile)!, kind, value, remaining_events })
  }
  return namesakes
}

async function countBilling(...[pool, tenantId, named]: Parameters<typeof billingOf>): Promise<number> {
  const { accounts, invoices } = await billingOf(pool, tenantId, named)
  return accounts.length + invoices.length
}

export function inWords(counts: ErasureReceipt['erased']): string {
  const words = Object.entries(counts).flatMap(([name, count]) =>
    count > 0 ? [`${count} ${name.replaceAll('_', ' ')}`] : [],
  )
  return words.length > 0 ? words.join(', ') : 'nothing else'
}
