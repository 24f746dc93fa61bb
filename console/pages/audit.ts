import type { ComponentChildren } from 'preact'
import { audit, destinations, keys, sources } from '../api/admin.ts'
import { nullOn } from '../api/request.ts'
import type { AuditRow } from '../api/types.ts'
import { RefreshButton, SelectFilter } from '../components/form.ts'
import { EmptyState } from '../components/notice.ts'
import { Page } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Actor, type Hints, keyName } from '../components/text.ts'
import { Time } from '../components/time.ts'
import { lowerWords, NONE, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { tenant } from '../session.ts'
import { knownTenants } from '../tenant-list.ts'

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
  async ({ route, signal }) => {
    const [list, admins, names] = await Promise.all([
      audit.list(filterOf(route.query), signal),
      nullOn(403, keys.list(null, signal)),
      readNames(tenant.peek(), signal),
    ])
    return { list, names, hints: new Map(admins?.results.map(key => [key.id, keyName(key)])) }
  },
  ({ data: { list, names, hints }, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Audit log',
        actions: h(RefreshButton, { refresh }),
        lead: 'All changes made through the command line, the admin API or the console. Entries cannot be modified.',
      },
      h(SelectFilter, {
        id: 'of',
        label: 'Show',
        options: SCOPES,
        value: query.get('of') ?? '',
        onChange: of => go(link('audit', { of })),
      }),
      h(GrowingTable<AuditRow>, {
        caption: 'Changes',
        columns: auditColumns(hints, names),
        rowKey: ({ id }) => id,
        first: list,
        csv: { api: 'admin', path: '/audit', query: filterOf(query), name: 'audit' },
        load: cursor => audit.list({ ...filterOf(query), cursor }),
        empty: h(EmptyState, { title: 'No changes yet.' }),
      }),
    ),
)

/** By id. What was deleted, or belongs to another tenant, has none. */
type Names = ReadonlyMap<string, string>

async function readNames(whose: string | null, signal: AbortSignal): Promise<Names> {
  const [ownSources, ownDestinations, ownKeys] =
    whose === null
      ? []
      : await Promise.all([
          nullOn(403, sources.list(whose, signal)),
          nullOn(403, destinations.list(whose, signal)),
          nullOn(403, keys.list(whose, signal)),
        ])
  return new Map([
    ...(knownTenants.peek() ?? []).map(({ id, name }) => [id, name] as const),
    ...(ownSources?.results ?? []).map(({ id, name }) => [id, name] as const),
    ...(ownDestinations?.results ?? []).map(({ id, name }) => [id, name] as const),
    ...(ownKeys?.results ?? []).map(key => [key.id, keyName(key)] as const),
  ])
}

function auditColumns(hints: Hints, names: Names): Column<AuditRow>[] {
  return [
    { label: 'Action', cell: ({ action }) => html`<span class="whole">${describeAction(action)}</span>` },
    { label: 'Who', cell: ({ actor }) => h(Actor, { actor, hints }), kind: 'long' },
    { label: 'Target', cell: row => targetCell(row, names), kind: 'long' },
    { label: 'Changes', cell: changesCell, kind: 'long' },
    { label: 'Time', cell: ({ at }) => h(Time, { at }) },
    { label: 'IP address', cell: ({ ip }) => text(ip) },
  ]
}

/** source.rotate → Rotate source */
function describeAction(action: string): string {
  const [kind = '', verb = ''] = action.split('.')
  return verb === '' ? words(kind) : `${words(verb)} ${lowerWords(kind)}`
}

function targetCell({ action, target }: AuditRow, names: Names): ComponentChildren {
  if (target === null) return NONE
  const [kind, verb] = action.split('.')
  const name = names.get(target)
  const shown = name ? html`<span title=${target}>${name}</span>` : html`<code>${target}</code>`
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
