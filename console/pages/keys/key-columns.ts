import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { keys } from '../../api/admin.ts'
import type { Key, RevokedKey } from '../../api/types.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Ago, Day } from '../../components/time.ts'
import { NONE, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { ownKeys } from '../../session.ts'
import { scopesInWords } from './scopes.ts'

type KeyActions = { problem: Signal<unknown>; refresh(): Promise<void>; rotate(key: Key): Promise<void> }

export function keyColumns({ problem, refresh, rotate }: KeyActions): Column<Key>[] {
  const revoke = async ({ id, hint }: Key) => {
    const title = `Revoke key ${hint}?`
    const text = 'Requests with this key are rejected within two seconds. This cannot be undone.'
    if (!(await confirmed({ title, text, yes: 'Revoke' }))) return
    const { made } = await keys.revoke(id)
    await offerToEnd(id, made)
    await refresh()
  }
  return [
    {
      label: 'Key',
      cell: ({ kind, role, hint }) =>
        html`<span class="whole">${role && role !== 'admin' ? `${kind} (${role})` : kind} <code>${hint}</code></span>`,
    },
    { label: 'State', cell: stateOf },
    {
      label: 'Scopes',
      cell: ({ kind, scopes }) => (kind === 'private' ? scopesInWords(scopes) : NONE),
      isMinor: true,
    },
    {
      label: 'Last used',
      cell: ({ last_used_at }) => (last_used_at ? h(Ago, { at: last_used_at }) : 'never'),
      isMinor: true,
    },
    {
      label: 'Created',
      cell: ({ created_at, created_by }) => [
        h(Day, { at: created_at }),
        created_by && html`<span class="reason faint">by ${created_by}</span>`,
      ],
      isMinor: true,
    },
    {
      label: 'Expires',
      cell: ({ expires_at }) => (expires_at ? h(Day, { at: expires_at }) : 'never'),
      isMinor: true,
    },
    {
      label: 'Actions',
      cell: key =>
        key.revoked_at === null && [
          !hasEnded(key) &&
            h(ActionButton, { label: 'Rotate', run: () => rotate(key), problem, kind: 'link' }),
          ' ',
          h(ActionButton, { label: 'Revoke', run: () => revoke(key), problem, kind: 'link' }),
        ],
    },
  ]
}

/** A key that was in wrong hands may have made others. */
async function offerToEnd(id: string, made: RevokedKey['made']): Promise<void> {
  const what = [
    made.keys.length > 0 && plural(made.keys.length, 'key'),
    made.sources.length > 0 && plural(made.sources.length, 'source'),
  ].filter(Boolean)
  if (what.length === 0) return
  const title = `This key created ${what.join(' and ')}. Revoke those too?`
  const text = 'Do this if the key was compromised. Keys are revoked, and sources are disabled.'
  if (await confirmed({ title, text, yes: 'Revoke all' })) await keys.revoke(id, true)
}

function stateOf(key: Key): ComponentChildren {
  if (key.revoked_at) return h(Badge, { text: 'revoked', tone: 'bad' })
  if (hasEnded(key)) return h(Badge, { text: 'expired', tone: 'bad' })
  return [
    key.expires_soon
      ? h(Badge, { text: 'expires soon', tone: 'bad' })
      : h(Badge, { text: 'active', tone: 'good' }),
    ownKeys.value.includes(key.id) && html`<span class="reason faint">created by this console</span>`,
  ]
}

export function hasEnded({ revoked_at, expires_at }: Key): boolean {
  return revoked_at !== null || (expires_at !== null && Date.parse(expires_at) <= Date.now())
}
