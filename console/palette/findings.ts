import { destinations, people, sources } from '../api/admin.ts'
import { events, records } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { RecordType } from '../api/types.ts'
import { ADMINISTRATION, DATA } from '../menu.ts'
import { link } from '../router.ts'
import { isAdmin, tenant } from '../session.ts'

/** Somewhere to go. */
export type Finding = { kind: string; title: string; note: string; href: string }

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const MORE_PAGES = [
  { title: 'Contacts', href: link('records', { type: 'contacts' }) },
  { title: 'Orders', href: link('records', { type: 'orders' }) },
  { title: 'Products', href: link('records', { type: 'products' }) },
  { title: 'Payments that failed, renewals, cancellations', href: link('attention') },
  { title: 'Movements: how MRR changed this month, and because of whom', href: link('movements') },
  { title: 'Acquisition', href: link('acquisition') },
  { title: 'Cohorts and retention', href: link('cohorts') },
  { title: 'What MRR leaves out', href: link('excluded') },
  { title: 'What happened to an event', href: link('eventLookup') },
]
const ADMIN_PAGES = [
  { title: 'New source', href: link('newSource') },
  { title: 'New destination', href: link('newDestination') },
  { title: 'Connect Stripe', href: link('connect', { sender: 'stripe' }) },
  { title: 'Connect Shopify', href: link('connect', { sender: 'shopify' }) },
]

/** Pages whose title has all the words, known without asking anybody. */
export function pagesNamed(text: string): Finding[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = [...DATA, ...MORE_PAGES, ...(isAdmin.peek() ? [...ADMINISTRATION, ...ADMIN_PAGES] : [])]
  return all
    .filter(({ title }) => words.every(word => title.toLowerCase().includes(word)))
    .map(({ title, href }) => ({ kind: 'Page', title, note: '', href }))
}

/** What goes by this id or name: records, an event, a person, a source, a destination. What cannot be read is left out. */
export async function thingsNamed(text: string, signal: AbortSignal): Promise<Finding[]> {
  const admin = isAdmin.peek() ? [personNamed(text, signal), configuredAs(text, signal)] : []
  const found = await Promise.allSettled([
    ...(['contacts', 'orders', 'products'] as const).map(type => recordNamed(type, text, signal)),
    eventNamed(text, signal),
    ...admin,
  ])
  return found.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
}

const KINDS: Record<RecordType, string> = { products: 'Product', contacts: 'Contact', orders: 'Order' }

async function recordNamed(type: RecordType, id: string, signal: AbortSignal): Promise<Finding[]> {
  const record = await nullOn(404, records.find(type, id, signal))
  if (!record) return []
  const { name, email } = record.data ?? {}
  const note = [name, email].filter(value => typeof value === 'string').join(', ')
  const finding = { kind: KINDS[type], title: record.id, note, href: link('record', { type, id }) }
  const account = { kind: 'Account', title: record.id, note, href: link('account', { customer: record.id }) }
  return type === 'contacts' ? [finding, account] : [finding]
}

async function eventNamed(id: string, signal: AbortSignal): Promise<Finding[]> {
  const asked = UUID.test(id)
    ? events.find(id, signal)
    : events.lookup({ event_id: id, source_config_id: '' }, signal)
  const outcome = await nullOn(404, asked)
  if (!outcome) return []
  const title = outcome.event?.event_type ?? outcome.id
  return [{ kind: 'Event', title, note: outcome.status, href: link('event', { id: outcome.id }) }]
}

async function personNamed(name: string, signal: AbortSignal): Promise<Finding[]> {
  const person = await nullOn(404, people.show(tenant.peek() ?? '', name, signal))
  if (!person) return []
  const { profile_id: id, contact } = person
  const note = contact?.name ?? contact?.email ?? id
  const finding = { kind: 'Person', title: name, note, href: link('person', { id }) }
  if (!contact) return [finding]
  const href = link('account', { customer: contact.id })
  return [finding, { kind: 'Account', title: contact.name ?? contact.id, note: contact.id, href }]
}

async function configuredAs(text: string, signal: AbortSignal): Promise<Finding[]> {
  const wanted = text.toLowerCase()
  const isNamed = ({ id, name }: { id: string; name: string }) =>
    id === text || name.toLowerCase().includes(wanted)
  const id = tenant.peek() ?? ''
  const [from, to] = await Promise.all([sources.list(id, signal), destinations.list(id, signal)])
  return [
    ...from.results.filter(isNamed).map(source => ({
      ...{ kind: 'Source', title: source.name, note: source.id, href: link('source', { id: source.id }) },
    })),
    ...to.results.filter(isNamed).map(destination => ({
      ...{ kind: 'Destination', title: destination.name, note: destination.url },
      href: link('destination', { id: destination.id }),
    })),
  ]
}
