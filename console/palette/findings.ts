import { destinations, sources } from '../api/admin.ts'
import { search } from '../api/data.ts'
import type { Found } from '../api/types.ts'
import { ADMINISTRATION, DATA } from '../menu.ts'
import { link } from '../router.ts'
import { isAdmin, tenant } from '../session.ts'

/** Somewhere to go. */
export type Finding = { kind: string; title: string; note: string; href: string }

const MORE_PAGES = [
  { title: 'Contacts', href: link('records', { type: 'contacts' }) },
  { title: 'Orders', href: link('records', { type: 'orders' }) },
  { title: 'Products', href: link('records', { type: 'products' }) },
  { title: 'Attention: payment issues, renewals, cancellations', href: link('attention') },
  { title: 'Movements: MRR changes by month and account', href: link('movements') },
  { title: 'Acquisition', href: link('acquisition') },
  { title: 'Cohorts and retention', href: link('cohorts') },
  { title: 'Items excluded from MRR', href: link('excluded') },
  { title: 'Event lookup', href: link('eventLookup') },
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
  const found = await Promise.allSettled([
    search(text, signal).then(({ results }) => results.flatMap(findingsOf)),
    ...(isAdmin.peek() ? [configuredAs(text, signal)] : []),
  ])
  return found.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
}

function findingsOf({ kind, id, title, note: given }: Found): Finding[] {
  const note = given ?? ''
  switch (kind) {
    case 'person':
      return isAdmin.peek() ? [{ kind: 'Person', title, note, href: link('person', { id }) }] : []
    case 'event':
      return [{ kind: 'Event', title, note, href: link('event', { id }) }]
    case 'contact': {
      const account = { kind: 'Account', title, note, href: link('account', { customer: id }) }
      return [{ kind: 'Contact', title, note, href: link('record', { type: 'contacts', id }) }, account]
    }
    default: {
      const href = link('record', { type: `${kind}s`, id })
      return [{ kind: kind === 'order' ? 'Order' : 'Product', title, note, href }]
    }
  }
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
