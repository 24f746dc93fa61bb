import type { Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { keys } from '../../api/admin.ts'
import type { Key } from '../../api/types.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Ago, Day, Time } from '../../components/time.ts'
import { NONE } from '../../format.ts'
import { h, html } from '../../html.ts'
import { ownKeys } from '../../session.ts'
import { scopesInWords } from './scopes.ts'

type KeyActions = { problem: Signal<unknown>; refresh(): Promise<void> }

export function keyColumns({ problem, refresh }: KeyActions): Column<Key>[] {
  const revoke = async ({ id, hint }: Key) => {
    const title = `Revoke the key that ends in ${hint}?`
    const text = 'Whoever uses it is refused within two seconds. This cannot be undone.'
    if (!(await confirmed({ title, text, yes: 'Revoke it' }))) return
    await keys.revoke(id)
    await refresh()
  }
  return [
    { label: 'Key', cell: ({ kind, hint }) => html`<span class="whole">${kind} <code>${hint}</code></span>` },
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
    { label: 'Made', cell: ({ created_at }) => h(Day, { at: created_at }), isMinor: true },
    {
      label: 'Expires',
      cell: ({ expires_at }) => (expires_at ? h(Time, { at: expires_at }) : 'never'),
      isMinor: true,
    },
    {
      label: 'Revoke',
      cell: key =>
        key.revoked_at === null &&
        h(ActionButton, { label: 'Revoke', run: () => revoke(key), problem, kind: 'link' }),
    },
  ]
}

function stateOf(key: Key): ComponentChildren {
  if (key.revoked_at) return h(Badge, { text: 'revoked', tone: 'bad' })
  if (hasEnded(key)) return h(Badge, { text: 'expired', tone: 'bad' })
  return [
    h(Badge, { text: 'active', tone: 'good' }),
    ownKeys.value.includes(key.id) && html`<span class="reason faint">this console's own</span>`,
  ]
}

export function hasEnded({ revoked_at, expires_at }: Key): boolean {
  return revoked_at !== null || (expires_at !== null && Date.parse(expires_at) <= Date.now())
}
