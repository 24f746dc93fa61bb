import { admin } from '../api.js'
import { h } from '../dom.js'
import { ago, day, NONE, plural, time } from '../format.js'
import { copyable } from '../parts/copyable.js'
import { confirmed } from '../parts/dialog.js'
import { action, choice, field, form } from '../parts/forms.js'
import { badge, emptyState } from '../parts/notices.js'
import { page, section } from '../parts/page.js'
import { table } from '../parts/table.js'
import { link } from '../routes.js'
import { session } from '../session.js'
import { recordLine, trackLine } from './samples.js'

const KINDS = [
  ['private', 'Private: reads and writes data'],
  ['tracking', 'Tracking: sends events'],
  ['admin', 'Admin: everything, all tenants'],
]
const SCOPES = [
  'products:read',
  'products:write',
  'contacts:read',
  'contacts:write',
  'orders:read',
  'orders:write',
  'events:read',
  'conversions:read',
  'subscriptions:read',
]

export async function view({ query, signal, refresh }) {
  const [own, admins] = await Promise.all([
    admin('/keys', { query: { tenant: session.tenant }, signal }),
    admin('/keys', { signal }),
  ])
  const created = h('div', { class: 'aside' })
  const trouble = h('div', { class: 'aside' })
  const withEnded = query.get('ended') === 'yes'
  const columns = columnsOf({ trouble, refresh })
  const list = (caption, keys) =>
    table({ caption, columns, rows: sorted(withEnded ? keys : keys.filter(key => !hasEnded(key))) })
  const ended = [...own.results, ...admins.results].filter(hasEnded).length
  return page(
    'Keys',
    { lead: 'Keys themselves are never shown again: only how they end.' },
    created,
    section('New key', keyForm(query.get('kind') ?? 'private', created)),
    trouble,
    section('Of this tenant', own.results.length > 0 ? list('Keys of this tenant', own.results) : noKeys()),
    section('Admin keys', list('Admin keys', admins.results)),
    ended > 0 && !withEnded && h('p', {}, endedLink(ended)),
  )
}

function noKeys() {
  return emptyState({
    title: 'No keys yet.',
    text: 'Make one above, or on the command line:',
    curl: `npm run kontor -- key create --tenant ${session.tenant} --kind private`,
  })
}

function endedLink(count) {
  return h('a', { href: link(['keys'], { ended: 'yes' }) }, `Show ${plural(count, 'key')} revoked or expired`)
}

function keyForm(kind, created) {
  const kinds = choice('kind', KINDS, KINDS.some(([name]) => name === kind) ? kind : 'private')
  const boxes = SCOPES.map(scope =>
    h(
      'label',
      { class: 'check' },
      h('input', { type: 'checkbox', name: 'scope', value: scope, checked: true }),
      scope,
    ),
  )
  const scopes = h('fieldset', {}, h('legend', {}, 'Scopes'), boxes)
  const fit = () => {
    scopes.hidden = kinds.value !== 'private'
  }
  kinds.addEventListener('change', fit)
  fit()
  return form(
    {
      submit: 'Make the key',
      class: 'stacked',
      run: async ({ kind: chosen, days }, element) => {
        const body = bodyOf(chosen, days, new FormData(element).getAll('scope'))
        created.replaceChildren(made(await admin('/keys', { method: 'POST', body })))
      },
    },
    field('Kind', kinds),
    scopes,
    field(
      'Expires',
      choice('days', [
        ['', 'Never'],
        ['1', 'In a day'],
        ['30', 'In 30 days'],
        ['365', 'In a year'],
      ]),
    ),
  )
}

function bodyOf(kind, days, scopes) {
  return {
    kind,
    ...(kind !== 'admin' && { tenant: session.tenant }),
    ...(kind === 'private' && { scopes }),
    ...(days && { expires_at: new Date(Date.now() + days * 86_400_000).toISOString() }),
  }
}

function made({ kind, key }) {
  const line = { tracking: trackLine, private: secret => recordLine('contact', secret) }[kind]
  const heading = h('h2', { tabindex: -1 }, `The ${kind} key`)
  queueMicrotask(() => heading.focus())
  return h('div', { class: 'once' }, [
    heading,
    h('p', {}, 'Shown only this once: keep it now.'),
    copyable(key, 'Copy the key'),
    line && [h('p', {}, 'Try it:'), copyable(line(key), 'Copy the command')],
  ])
}

function columnsOf({ trouble, refresh }) {
  const revoke = async ({ id, hint }) => {
    const text = 'Whoever uses it is refused within two seconds. This cannot be undone.'
    if (!(await confirmed({ title: `Revoke the key that ends in ${hint}?`, text, yes: 'Revoke it' }))) return
    await admin(`/keys/${id}/revoke`, { method: 'POST' })
    await refresh()
  }
  return [
    { label: 'Key', cell: ({ kind, hint }) => [kind, ' ', h('code', {}, hint)] },
    { label: 'State', cell: stateOf },
    { label: 'Scopes', cell: ({ kind, scopes }) => scopesOf(kind, scopes), minor: true },
    {
      label: 'Last used',
      cell: ({ last_used_at }) => (last_used_at ? ago(last_used_at) : 'never'),
      minor: true,
    },
    { label: 'Made', cell: ({ created_at }) => day(created_at), minor: true },
    { label: 'Expires', cell: ({ expires_at }) => (expires_at ? time(expires_at) : 'never'), minor: true },
    {
      label: 'Revoke',
      cell: key => !key.revoked_at && action('Revoke', () => revoke(key), { trouble, class: 'link' }),
    },
  ]
}

function stateOf(key) {
  if (key.revoked_at) return badge('revoked', 'bad')
  if (hasEnded(key)) return badge('expired', 'bad')
  return [badge('active', 'good'), session.madeKeys.includes(key.id) && " this console's own"]
}

function scopesOf(kind, scopes) {
  if (kind !== 'private') return NONE
  if (scopes.length === SCOPES.length) return 'all'
  return scopes.every(scope => scope.endsWith(':read')) && scopes.length === 6
    ? 'all :read'
    : scopes.join(', ')
}

/** Those that are good first, and of those the newest. */
function sorted(keys) {
  return keys.toSorted((a, b) => hasEnded(a) - hasEnded(b) || b.created_at.localeCompare(a.created_at))
}

function hasEnded({ revoked_at, expires_at }) {
  return revoked_at !== null || (expires_at !== null && Date.parse(expires_at) <= Date.now())
}
