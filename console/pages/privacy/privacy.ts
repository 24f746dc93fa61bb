import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { privacy } from '../../api/admin.ts'
import type { ErasureReceipt, Suppression, SuppressionList } from '../../api/types.ts'
import { announce } from '../../components/announcer.ts'
import { confirmed } from '../../components/dialog.ts'
import { ActionButton } from '../../components/form.ts'
import { Badge, EmptyState, ProblemArea } from '../../components/notice.ts'
import { Page, Section } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Ago, Time } from '../../components/time.ts'
import { plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import { inWords } from '../people/erase-form.ts'
import { RecordAgainForm, SuppressForm } from './suppress-forms.ts'

/** Who was erased, and who is not recorded again. */
export const page = definePage(
  'privacy',
  async ({ signal }) => {
    const id = tenant.peek() ?? ''
    const [suppressed, erasures] = await Promise.all([
      privacy.suppressions(id, signal),
      privacy.erasures(id, signal),
    ])
    return { suppressed, erasures }
  },
  ({ data: { suppressed, erasures }, refresh }) => {
    const problem = useSignal<unknown>(null)
    const csv = (path: string) =>
      ({ api: 'admin', path: `/${path}`, query: { tenant: tenant.peek() }, name: path }) as const
    return h(
      Page,
      {
        title: 'Privacy',
        lead: html`Erasures, and people who are not tracked. To erase one person, find them in <a href=${link('people')}>People</a>.`,
      },
      h(ProblemArea, { problem }),
      h(
        Section,
        { title: 'Suppressed people' },
        suppressed.results.length > 0 && h(NotRecorded, { left: suppressed.not_recorded }),
        suppressed.results.length === 0
          ? h(EmptyState, { title: 'No suppressed people.' })
          : h(Table<Suppression>, {
              ...{ caption: 'Suppressed people', columns: suppressedColumns(problem, refresh) },
              ...{ rows: suppressed.results, keyOf: ({ id }) => id, csv: csv('suppressions') },
            }),
      ),
      h(Section, { title: 'Stop tracking a person' }, h(SuppressForm, { refresh })),
      suppressed.results.length > 0 &&
        h(Section, { title: 'Resume tracking a person' }, h(RecordAgainForm, { refresh })),
      h(
        Section,
        { title: 'Erasures' },
        erasures.results.length === 0
          ? h(EmptyState, { title: 'No erasures.' })
          : h(Table<ErasureReceipt>, {
              ...{ caption: 'Erasures', columns: erasureColumns, rows: erasures.results },
              ...{ keyOf: ({ id }) => id, csv: csv('erasures') },
            }),
      ),
    )
  },
)

function NotRecorded({ left }: { left: SuppressionList['not_recorded'] }): VNode {
  const what = `${plural(left.events, 'event')} and ${plural(left.records, 'record')}`
  return html`
    <p class="faint">
      Only hashes of their identifiers are stored. ${what} about these people were discarded${
        left.last_at && html`, most recently ${h(Ago, { at: left.last_at })}`
      }.
    </p>
  `
}

function suppressedColumns(problem: Signal<unknown>, refresh: () => Promise<void>): Column<Suppression>[] {
  const recordAgain = async ({ id, names }: Suppression) => {
    const title = `Resume tracking this person (${plural(names.length, 'identifier')})?`
    const text = 'New data is recorded from now on. Data that was discarded cannot be restored.'
    if (!(await confirmed({ title, text, yes: 'Resume tracking' }))) return
    await privacy.recordAgain(tenant.peek() ?? '', id)
    announce('Tracking resumed')
    await refresh()
  }
  return [
    { label: 'Since', cell: ({ suppressed_at }) => h(Time, { at: suppressed_at }) },
    { label: 'Identifiers', cell: namesOf },
    { label: 'Erasure', cell: ({ id }) => html`<code>${id}</code>`, kind: 'long', isMinor: true },
    {
      label: 'Action',
      cell: row =>
        h(ActionButton, { label: 'Resume tracking', run: () => recordAgain(row), problem, kind: 'link' }),
    },
  ]
}

/** 2 visitors, 1 email */
function namesOf({ names }: Suppression): string {
  const kinds = Map.groupBy(names, ({ kind }) => kind)
  return [...kinds].map(([kind, own]) => plural(own.length, kind)).join(', ')
}

const erasureColumns: Column<ErasureReceipt>[] = [
  { label: 'Requested', cell: ({ requested_at }) => h(Time, { at: requested_at }) },
  {
    label: 'State',
    cell: ({ status }) => h(Badge, { text: status, tone: status === 'completed' ? 'good' : 'neutral' }),
  },
  { label: 'Erased data', cell: tookOf, kind: 'text' },
  { label: 'Receipt', cell: ({ id }) => html`<code>${id}</code>`, kind: 'long', isMinor: true },
]

function tookOf({ erased, suppressed_names: names }: ErasureReceipt): ComponentChildren {
  return html`
    ${inWords(erased)}
    ${names !== undefined && html`<span class="reason faint">${plural(names, 'identifier')} suppressed</span>`}
  `
}
