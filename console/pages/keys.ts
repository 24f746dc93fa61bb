import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { keys } from '../api/admin.ts'
import type { CreatedKey, Key, KeyKind, NewKey, RevokedKey, Role } from '../api/types.ts'
import { askConfirmation } from '../components/dialog.ts'
import { ActionButton, Form, SelectField, TextField } from '../components/form.ts'
import { Badge, EmptyState, ProblemArea, ShownOnce } from '../components/notice.ts'
import { Page, Section } from '../components/page.ts'
import { type Column, Table } from '../components/table.ts'
import { Actor, Copyable, type Hints, keyName } from '../components/text.ts'
import { Ago, Day } from '../components/time.ts'
import { DAY_MS, NONE, plural } from '../format.ts'
import { h, html } from '../html.ts'
import { definePage } from '../page-definition.ts'
import { REACH, ROLES } from '../roles.ts'
import { link } from '../router.ts'
import { recordCommand, trackCommand } from '../samples.ts'
import { hasRole, person, tenant } from '../session.ts'
export const keysPage = definePage(
  'keys',
  async ({ signal }) => {
    const [own, admins] = await Promise.all([keys.list(tenant.peek(), signal), keys.list(null, signal)])
    return { own: own.results.filter(({ kind }) => kind !== 'admin'), admins: admins.results }
  },
  ({ data: { own, admins }, route: { query }, refresh }) => {
    const created = useSignal<CreatedKey | null>(null)
    const problem = useSignal<unknown>(null)
    const rotate = async (key: Key) => {
      const title = `Rotate ${keyName(key)}?`
      const text = 'A new key with the same settings is created and shown once. This key remains valid for 24 hours.'
      if (!(await askConfirmation({ title, text, yes: 'Rotate' }))) return
      created.value = await keys.rotate(key.id)
      await refresh()
    }
    const hints = new Map([...own, ...admins].map(key => [key.id, keyName(key)]))
    const columns = keyColumns({ problem, refresh, rotate, hints })
    const withEnded = query.get('ended') === 'yes'
    const list = (caption: string, all: Key[], of: string | null) =>
      h(Table<Key>, {
        csv: { api: 'admin', path: '/keys', query: { tenant: of }, name: 'keys' },
        caption,
        columns,
        rowKey: ({ id }) => id,
        rows: sorted(withEnded ? all : all.filter(key => !isInactive(key))),
      })
    const ended = [...own, ...admins].filter(isInactive).length
    const create = async (key: Parameters<typeof keys.create>[0]) => {
      created.value = await keys.create(key)
      await refresh()
    }
    const endingSoon = [...own, ...admins].filter(key => key.expires_soon).length
    return h(
      Page,
      {
        title: 'Keys',
        lead: 'A key is shown only once, when it is created. The list shows its name (or its kind) and last four characters.',
      },
      created.value && h(CreatedKeyNotice, { key: created.value.id, created: created.value }),
      endingSoon > 0 &&
        html`<p class="notice">${plural(endingSoon, 'key expires', 'keys expire')} within 14 days. Rotate ${endingSoon === 1 ? 'it' : 'them'} before then.</p>`,
      h(ProblemArea, { problem }),
      h(Section, { title: 'Tenant keys' }, own.length > 0 ? list('Tenant keys', own, tenant.peek()) : h(NoKeys, {})),
      h(Section, { title: 'Admin keys' }, list('Admin keys', admins, null)),
      ended > 0 &&
        !withEnded &&
        html`<p><a href=${link('keys', { ended: 'yes' })}>Show ${plural(ended, 'revoked or expired key')}</a></p>`,
      h(
        Section,
        { title: 'New key' },
        h(KeyForm, { key: query.get('kind') ?? '', kind: query.get('kind') ?? '', create }),
      ),
    )
  },
)

function NoKeys(): VNode {
  return h(EmptyState, {
    title: 'No keys yet.',
    text: 'Create one below, or on the command line:',
    command: `npm run kontor -- key create --tenant ${tenant.value} --kind private`,
  })
}

function CreatedKeyNotice({ created: { kind, key } }: { created: CreatedKey }): VNode {
  const command = kind === 'tracking' ? trackCommand(key) : kind === 'private' ? recordCommand('contacts', key) : null
  return h(
    ShownOnce,
    { title: `New ${kind} key` },
    html`<p>The key is shown only once. Save it now.</p>`,
    h(Copyable, { text: key, label: 'Copy the key' }),
    command && [html`<p>Try it:</p>`, h(Copyable, { text: command, label: 'Copy the command' })],
  )
}

/** Valid keys first, then the newest. */
function sorted(list: Key[]): Key[] {
  return list.toSorted(
    (a, b) => Number(isInactive(a)) - Number(isInactive(b)) || b.created_at.localeCompare(a.created_at),
  )
}

type KeyActions = {
  problem: Signal<unknown>
  refresh(): Promise<void>
  rotate(key: Key): Promise<void>
  hints: Hints
}

function keyColumns({ problem, refresh, rotate, hints }: KeyActions): Column<Key>[] {
  const revoke = async (key: Key) => {
    const { id } = key
    const title = `Revoke ${keyName(key)}?`
    const text = 'Requests with this key are rejected within two seconds. This cannot be undone.'
    if (!(await askConfirmation({ title, text, yes: 'Revoke' }))) return
    const { made } = await keys.revoke(id)
    await offerToRevokeCreated(id, made)
    await refresh()
  }
  return [
    {
      label: 'Key',
      cell: ({ kind, role, hint, name }) => {
        const what = html`<span class="whole">${role && role !== 'admin' ? `${kind} (${role})` : kind} <code>${hint}</code></span>`
        return name === null ? what : html`${name}<span class="reason faint">${what}</span>`
      },
    },
    { label: 'Status', cell: stateCell },
    {
      label: 'Scopes',
      cell: ({ kind, scopes }) => (kind === 'private' ? describeScopes(scopes) : NONE),
    },
    {
      label: 'Last used',
      cell: ({ last_used_at }) => (last_used_at ? h(Ago, { at: last_used_at }) : 'never'),
    },
    {
      label: 'Created',
      cell: ({ created_at }) => h(Day, { at: created_at }),
    },
    { label: 'Created by', cell: ({ created_by: actor }) => (actor ? h(Actor, { actor, hints }) : NONE), kind: 'long' },
    {
      label: 'Expires',
      cell: ({ expires_at }) => (expires_at ? h(Day, { at: expires_at }) : 'never'),
    },
    {
      label: 'Actions',
      cell: key =>
        key.revoked_at === null && [
          !isInactive(key) &&
            h(ActionButton, { label: 'Rotate', needs: 'admin', run: () => rotate(key), problem, kind: 'link' }),
          ' ',
          h(ActionButton, {
            ...{ label: 'Revoke', run: () => revoke(key), problem, kind: 'link' },
            needs: key.created_by === person.peek()?.actor ? 'viewer' : 'admin',
          }),
        ],
    },
  ]
}

/** A compromised key may have created others. */
async function offerToRevokeCreated(id: string, made: RevokedKey['made']): Promise<void> {
  const what = [
    made.keys.length > 0 && plural(made.keys.length, 'key'),
    made.sources.length > 0 && plural(made.sources.length, 'source'),
  ].filter(Boolean)
  if (what.length === 0) return
  const title = `This key created ${what.join(' and ')}. Revoke those too?`
  const text = 'Do this if the key was compromised. Keys are revoked, and sources are disabled.'
  if (await askConfirmation({ title, text, yes: 'Revoke all' })) await keys.revoke(id, true)
}

function stateCell(key: Key): ComponentChildren {
  if (key.revoked_at) return h(Badge, { text: 'revoked', tone: 'bad' })
  if (isInactive(key)) return h(Badge, { text: 'expired', tone: 'bad' })
  return key.expires_soon ? h(Badge, { text: 'expires soon', tone: 'bad' }) : h(Badge, { text: 'active', tone: 'good' })
}

function isInactive({ revoked_at, expires_at }: Key): boolean {
  return revoked_at !== null || (expires_at !== null && Date.parse(expires_at) <= Date.now())
}

const KINDS = [
  ['private', 'Private: reads and writes data'],
  ['tracking', 'Tracking: sends events'],
  ['admin', 'Admin: manages Kontor'],
] as const
const LIFETIMES = [
  ['1', 'In 1 day'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In 1 year'],
  ['', 'Never'],
] as const
const DEFAULT_DAYS = '90'
/** The form's values. Each kind of key has only some of the fields. */
type Filled = { kind: KeyKind; key_name: string; days: string; role?: Role; reach?: string; addresses?: string }

type KeyFormProps = { kind: string; create(key: NewKey): Promise<void> }

function KeyForm({ kind, create }: KeyFormProps): VNode {
  const isKind = KINDS.some(([name]) => name === kind)
  const chosen = useSignal(isKind ? kind : 'private')
  return h(
    Form<keyof Filled>,
    {
      submit: 'Create key',
      layout: 'stacked',
      aside:
        !hasRole('admin') &&
        html`<span class="faint">Your role can create private keys that have only read scopes and expire in one day.</span>`,
      run: (values, all) => create(newKey(values as Filled, all.getAll('scope') as string[])),
    },
    h(SelectField, {
      id: 'kind',
      label: 'Kind',
      options: KINDS,
      value: chosen.value,
      onChange: name => {
        chosen.value = name
      },
    }),
    h(TextField, {
      ...{ id: 'key_name', label: 'Name', placeholder: 'Warehouse export' },
      hint: 'What the key is for. Shown in the list.',
    }),
    h(ScopeBoxes, { isHidden: chosen.value !== 'private' }),
    chosen.value === 'admin' && h(SelectField, { id: 'role', label: 'Role', options: ROLES, value: 'admin' }),
    chosen.value === 'admin' && h(SelectField, { id: 'reach', label: 'Tenants', options: REACH }),
    chosen.value !== 'tracking' &&
      h(TextField, {
        id: 'addresses',
        label: 'Allowed IP addresses',
        hint: 'IP addresses or networks, for example 10.0.0.0/8, 203.0.113.7. Leave empty to allow all.',
      }),
    h(SelectField, { id: 'days', label: 'Expires', options: LIFETIMES, value: DEFAULT_DAYS }),
  )
}

/** Only private keys have scopes. The hidden boxes keep their state. */
function ScopeBoxes({ isHidden }: { isHidden: boolean }): VNode {
  return html`
    <fieldset hidden=${isHidden}>
      <legend>Scopes</legend>
      ${SCOPES.map(
        scope => html`
          <label class="check">
            <input type="checkbox" name="scope" value=${scope} defaultChecked=${true} />${scope}
          </label>
        `,
      )}
    </fieldset>
  `
}

function newKey({ kind, key_name: name, days, role, reach, addresses = '' }: Filled, scopes: string[]): NewKey {
  const networks = addresses.split(/[\s,]+/).filter(Boolean)
  return {
    kind,
    ...(name.trim() !== '' && { name: name.trim() }),
    ...((kind !== 'admin' || reach === 'this') && { tenant: tenant.peek() }),
    ...(kind === 'private' && { scopes }),
    ...(role && { role }),
    ...(networks.length > 0 && { allowed_addresses: networks }),
    ...(days && { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
  }
}

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

const READ_SCOPES = SCOPES.filter(scope => scope.endsWith(':read'))

/** Describes the scopes briefly. */
function describeScopes(scopes: string[]): string {
  if (SCOPES.every(scope => scopes.includes(scope))) return 'all'
  const isAllReading = scopes.length === READ_SCOPES.length && READ_SCOPES.every(scope => scopes.includes(scope))
  return isAllReading ? 'read only' : scopes.join(', ')
}
