import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { keys } from '../../api/admin.ts'
import type { CreatedKey, Key } from '../../api/types.ts'
import { Copyable } from '../../components/copyable.ts'
import { confirmed } from '../../components/dialog.ts'
import { EmptyState, ProblemArea } from '../../components/notice.ts'
import { ShownOnce } from '../../components/once.ts'
import { Page, Section } from '../../components/page.ts'
import { Table } from '../../components/table.ts'
import { plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { recordCommand, trackCommand } from '../../samples.ts'
import { tenant } from '../../session.ts'
import { hasEnded, keyColumns } from './key-columns.ts'
import { KeyForm } from './key-form.ts'

export const page = definePage(
  'keys',
  async ({ signal }) => {
    const [own, admins] = await Promise.all([keys.list(tenant.peek(), signal), keys.list(null, signal)])
    return { own: own.results.filter(({ kind }) => kind !== 'admin'), admins: admins.results }
  },
  ({ data: { own, admins }, route: { query }, refresh }) => {
    const created = useSignal<CreatedKey | null>(null)
    const problem = useSignal<unknown>(null)
    const rotate = async ({ id, hint }: Key) => {
      const title = `Rotate key ${hint}?`
      const text =
        'A new key with the same settings is created and shown once. This key remains valid for 24 hours.'
      if (!(await confirmed({ title, text, yes: 'Rotate' }))) return
      created.value = await keys.rotate(id)
      await refresh()
    }
    const columns = keyColumns({ problem, refresh, rotate })
    const withEnded = query.get('ended') === 'yes'
    const list = (caption: string, all: Key[], of: string | null) =>
      h(Table<Key>, {
        csv: { api: 'admin', path: '/keys', query: { tenant: of }, name: 'keys' },
        caption,
        columns,
        keyOf: ({ id }) => id,
        rows: sorted(withEnded ? all : all.filter(key => !hasEnded(key))),
      })
    const ended = [...own, ...admins].filter(hasEnded).length
    const create = async (key: Parameters<typeof keys.create>[0]) => {
      created.value = await keys.create(key)
      await refresh()
    }
    const endingSoon = [...own, ...admins].filter(key => key.expires_soon).length
    return h(
      Page,
      {
        title: 'Keys',
        lead: 'A key is shown only once, when it is created. The lists show the last four characters.',
      },
      created.value && h(CreatedKeyNotice, { key: created.value.id, created: created.value }),
      h(
        Section,
        { title: 'New key' },
        h(KeyForm, { key: query.get('kind') ?? '', kind: query.get('kind') ?? '', create }),
      ),
      endingSoon > 0 &&
        html`<p class="notice">${plural(endingSoon, 'key expires', 'keys expire')} within 14 days. Rotate before then.</p>`,
      h(ProblemArea, { problem }),
      h(
        Section,
        { title: 'Tenant keys' },
        own.length > 0 ? list('Tenant keys', own, tenant.peek()) : h(NoKeys, {}),
      ),
      h(Section, { title: 'Admin keys' }, list('Admin keys', admins, null)),
      ended > 0 &&
        !withEnded &&
        html`<p><a href=${link('keys', { ended: 'yes' })}>Show ${plural(ended, 'revoked or expired key')}</a></p>`,
    )
  },
)

function NoKeys(): VNode {
  return h(EmptyState, {
    title: 'No keys yet.',
    text: 'Create one above, or on the command line:',
    command: `npm run kontor -- key create --tenant ${tenant.value} --kind private`,
  })
}

function CreatedKeyNotice({ created: { kind, key } }: { created: CreatedKey }): VNode {
  const command =
    kind === 'tracking' ? trackCommand(key) : kind === 'private' ? recordCommand('contacts', key) : null
  return h(
    ShownOnce,
    { title: `New ${kind} key` },
    html`<p>The key is shown only once. Save it now.</p>`,
    h(Copyable, { text: key, label: 'Copy the key' }),
    command && [html`<p>Try it:</p>`, h(Copyable, { text: command, label: 'Copy the command' })],
  )
}

/** Those that are good first, and of those the newest. */
function sorted(list: Key[]): Key[] {
  return list.toSorted(
    (a, b) => Number(hasEnded(a)) - Number(hasEnded(b)) || b.created_at.localeCompare(a.created_at),
  )
}
