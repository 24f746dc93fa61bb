import type { ComponentChildren } from 'preact'
import { audit } from '../api/admin.ts'
import type { AuditRow } from '../api/types.ts'
import { RefreshButton, SelectFilter } from '../components/form.ts'
import { EmptyState } from '../components/notice.ts'
import { Page } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Time } from '../components/time.ts'
import { NONE, text } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'

const ROWS = 50
const SCOPES = [
  ['', 'This tenant'],
  ['all', 'Whole installation'],
] as const

const filterOf = (query: URLSearchParams) => ({
  tenant: query.get('of') === 'all' ? null : tenant.peek(),
  limit: ROWS,
})

export const auditPage = definePage(
  'audit',
  ({ route, signal }) => audit.list(filterOf(route.query), signal),
  ({ data, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Audit log',
        actions: h(RefreshButton, { refresh }),
        lead: 'All changes made through the command line, the admin API or the console. Entries cannot be modified.',
      },
      h(SelectFilter, {
        id: 'of',
        label: 'Scope',
        options: SCOPES,
        value: query.get('of') ?? '',
        onChange: of => go(link('audit', { of })),
      }),
      h(GrowingTable<AuditRow>, {
        caption: 'Changes',
        columns: COLUMNS,
        rowKey: ({ id }) => id,
        first: data,
        csv: { api: 'admin', path: '/audit', query: filterOf(query), name: 'audit' },
        load: cursor => audit.list({ ...filterOf(query), cursor }),
        empty: h(EmptyState, { title: 'No changes yet.' }),
      }),
    ),
)

const COLUMNS: Column<AuditRow>[] = [
  { label: 'Action', cell: ({ action }) => html`<span class="whole">${action}</span>` },
  { label: 'Time', cell: ({ at }) => h(Time, { at }) },
  { label: 'Actor', cell: ({ actor }) => html`<code>${actor}</code>` },
  { label: 'Target', cell: targetCell, kind: 'long' },
  { label: 'Changes', cell: changesCell, kind: 'long', isMinor: true },
  { label: 'IP address', cell: ({ ip }) => text(ip), isMinor: true },
]

function targetCell({ action, target }: AuditRow): ComponentChildren {
  if (target === null) return NONE
  const [kind, verb] = action.split('.')
  const shown = html`<code>${target}</code>`
  if (verb === 'delete' || (kind !== 'source' && kind !== 'destination')) return shown
  return html`<a href=${link(kind, { id: target })}>${shown}</a>`
}

/** The old and new values of a change; nothing for a creation or deletion. */
function changesCell({ before, after }: AuditRow): ComponentChildren {
  if (!before || !after) return NONE
  const old = before as Record<string, unknown>
  return Object.entries(after).map(([name, value]) =>
    // Tokens and secrets are lists of hints, whose comparison says nothing.
    Array.isArray(value)
      ? html`<div>${name}</div>`
      : html`<div>${name}: <code>${JSON.stringify(old[name])}</code> → <code>${JSON.stringify(value)}</code></div>`,
  )
}
