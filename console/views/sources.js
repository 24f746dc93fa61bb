import { admin } from '../api.js'
import { h } from '../dom.js'
import { day } from '../format.js'
import { badge, emptyState } from '../parts/notices.js'
import { page } from '../parts/page.js'
import { table } from '../parts/table.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { webhookLine } from './samples.js'

export async function view({ signal }) {
  const { results } = await admin('/sources', { query: { tenant: session.tenant }, signal })
  const create = h('a', { class: 'button main', href: link(['sources', 'new']) }, 'New source')
  return page(
    'Sources',
    { actions: [create], lead: 'Each one is an address that an external system posts its events to.' },
    results.length > 0
      ? table({ caption: 'Sources', columns, rows: results })
      : emptyState({
          title: 'No sources yet.',
          text: 'Make one, and post to it with its token:',
          curl: webhookLine(),
          action: h('a', { href: link(['sources', 'new']) }, 'Make the first source'),
        }),
  )
}

const columns = [
  { label: 'Name', cell: ({ id, name }) => h('a', { href: link(['sources', id]) }, name), long: true },
  { label: 'State', cell: stateOf },
  { label: 'Type', cell: ({ type, preset }) => (preset ? `${type}, ${preset}` : type) },
  {
    label: 'Signed',
    cell: ({ signing_secrets }) => (signing_secrets.length > 0 ? 'yes' : 'no'),
    minor: true,
  },
  { label: 'Id', cell: ({ id }) => h('code', {}, id), minor: true },
  { label: 'Made', cell: ({ created_at }) => day(created_at), minor: true },
]

export function stateOf({ enabled }) {
  return enabled ? badge('enabled', 'good') : badge('disabled', 'bad')
}
